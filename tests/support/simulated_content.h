// The bytes of one simulated file, twice: as the cache shows them, and as the medium has them. In pages of 4 KiB that
// are shared and never changed once made, so that copies, holes and zeros cost nothing. Rules: simulated_file_system.h.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "crypto/bytes.h"
#include "tests/support/simulated_loss.h"

namespace holdfast {

inline constexpr std::size_t kPageSize = 4096;
inline constexpr std::size_t kSectorSize = 512;
using Page = std::array<std::uint8_t, kPageSize>;
using PagePtr = std::shared_ptr<const Page>;  // null: a hole, reads as zeros

// One power cut, for all files and names of a disk.
class LossPlan {
 public:
  LossPlan(Loss loss, std::uint64_t seed, bool tears_blocks);

  // Which state survives of a page that was `medium`, then each of `earlier`, and is `now`.
  PagePtr page(const PagePtr& medium, const std::vector<PagePtr>& earlier, const PagePtr& now);
  // Which of `count` unsynced states survives; 0 = none, `count` = the last.
  std::size_t size(std::size_t count) { return choose(count, keep_sizes_); }
  std::size_t name(std::size_t count) { return choose(count, keep_names_); }

 private:
  std::size_t choose(std::size_t count, unsigned keep_percent);
  PagePtr damaged(const PagePtr& one, const PagePtr& other);

  Dice dice_;
  bool tears_blocks_;
  // Percent. One cut keeps most, another little: drawn once for each.
  unsigned keep_pages_ = 0;
  unsigned keep_sizes_ = 0;
  unsigned keep_names_ = 0;
  unsigned damage_pages_ = 0;
};

class SimulatedContent {
 public:
  std::uint64_t size() const { return size_; }
  std::uint64_t medium_size() const { return medium_size_; }
  std::uint64_t blocks() const { return blocks_; }  // allocated, of kPageSize
  bool unsynced() const { return !unsynced_.empty() || size_ != medium_size_ || !earlier_sizes_.empty(); }
  // How many blocks a write there would add.
  std::uint64_t new_blocks(std::uint64_t offset, std::uint64_t length) const;

  enum class From : std::uint8_t { cache, direct, medium };
  std::size_t read(From from, std::uint64_t offset, std::span<std::uint8_t> out) const;
  void write(std::uint64_t offset, ByteView bytes);
  void truncate(std::uint64_t size);

  void sync();
  // The pages become clean without being on the medium; with `dice`, half of them are on it.
  void fail_sync(Dice* dice);
  void lose_power(LossPlan& plan);

  // Both images and every state between.
  void overwrite(std::uint64_t offset, ByteView bytes);
  void flip(std::uint64_t offset, std::uint8_t mask);
  void cut_to(std::uint64_t size);
  bool holds(ByteView text) const;

 private:
  // A page whose cached state the medium may not have.
  struct Unsynced {
    PagePtr medium;
    std::vector<PagePtr> earlier;  // states since the last sync, the cached one left out
    bool lost = false;             // a failed sync: the medium has `medium` for certain
  };

  PagePtr cached(std::uint64_t index) const { return index < pages_.size() ? pages_[index] : nullptr; }
  PagePtr page(From from, std::uint64_t index) const;
  void put(std::uint64_t index, PagePtr page);
  void replace(std::uint64_t index, PagePtr page);
  void resize(std::uint64_t size);
  void trim_tail();
  template <typename Change>  // PagePtr(const PagePtr&)
  void change_all_states(std::uint64_t index, Change change);

  std::vector<PagePtr> pages_;  // the cache; may be shorter than the size says
  std::uint64_t size_ = 0;
  std::uint64_t blocks_ = 0;
  std::map<std::uint64_t, Unsynced> unsynced_;
  std::uint64_t medium_size_ = 0;
  std::vector<std::uint64_t> earlier_sizes_;
};

}  // namespace holdfast
