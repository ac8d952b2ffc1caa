// One thing that can happen to bytes that should have stayed as they were.
#pragma once

#include <algorithm>

#include "crypto/bytes.h"
#include "tests/support/simulated_loss.h"

namespace holdfast {

inline void mutate(Bytes& bytes, Dice& dice) {
  if (bytes.empty()) {
    bytes.push_back(static_cast<std::uint8_t>(dice.roll()));
    return;
  }
  const auto at = static_cast<std::ptrdiff_t>(dice.below(bytes.size()));
  const auto rest = static_cast<std::ptrdiff_t>(bytes.size()) - at;
  const auto length =
      1 + static_cast<std::ptrdiff_t>(dice.below(std::min<std::uint64_t>(static_cast<std::uint64_t>(rest), 16)));
  switch (dice.below(7)) {
    case 0:  // a bit flips
      bytes[static_cast<std::size_t>(at)] ^= static_cast<std::uint8_t>(1U << dice.below(8));
      break;
    case 1:  // a byte becomes another
      bytes[static_cast<std::size_t>(at)] = static_cast<std::uint8_t>(dice.roll());
      break;
    case 2:  // the end is gone
      bytes.resize(static_cast<std::size_t>(at));
      break;
    case 3:  // some are missing
      bytes.erase(bytes.begin() + at, bytes.begin() + at + length);
      break;
    case 4: {  // some are there twice
      const Bytes twice(bytes.begin() + at, bytes.begin() + at + length);
      bytes.insert(bytes.begin() + at, twice.begin(), twice.end());
      break;
    }
    case 5:  // a run of ones: lengths and counts become huge
      std::fill_n(bytes.begin() + at, length, std::uint8_t{0xff});
      break;
    default:  // a run of zeros
      std::fill_n(bytes.begin() + at, length, std::uint8_t{0});
  }
}

}  // namespace holdfast
