// What a power cut does to everything that was not synced, and the dice it is decided by.
#pragma once

#include <cstdint>
#include <vector>

namespace holdfast {

enum class Loss : std::uint8_t {
  random,      // every unsynced page, size and name on its own: kept, dropped, an earlier state, torn, garbage
  drop_all,    // only what was synced
  keep_all,    // as if everything had been synced
  keep_names,  // names only: new files are empty, changed ones old
  keep_names_and_sizes,  // new files have their size and are all zeros
  keep_bytes,            // bytes and sizes only: a new file has lost its name, a removed one is back
};

// A small generator of our own (splitmix64): the same seed gives the same disk on every machine and library.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}

  std::uint64_t roll() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }
  std::uint64_t below(std::uint64_t bound) { return roll() % bound; }
  bool percent(unsigned chance) { return below(100) < chance; }

 private:
  std::uint64_t state_;
};

}  // namespace holdfast
