#include "tests/support/simulated_content.h"

#include <algorithm>
#include <cstring>

#include "spool/check.h"

namespace holdfast {

namespace {

// A page or a size that is changed again and again without a sync: this many of its states may come back.
constexpr std::size_t kStatesKept = 8;

const PagePtr& zero_page() {
  static const PagePtr page = std::make_shared<const Page>(Page{});
  return page;
}

const Page& shown(const PagePtr& page) {
  return page ? *page : *zero_page();
}

template <typename State>
void remember(std::vector<State>& states, State state) {
  if (states.size() == kStatesKept) states.erase(states.begin());
  states.push_back(std::move(state));
}

// The page with `bytes` laid over it; whole pages of zeros are all the same one.
PagePtr laid_over(const PagePtr& page, std::size_t at, ByteView bytes) {
  if (bytes.size() == kPageSize && std::memcmp(bytes.data(), zero_page()->data(), kPageSize) == 0) return zero_page();
  auto changed = std::make_shared<Page>(bytes.size() == kPageSize ? *zero_page() : shown(page));
  std::memcpy(changed->data() + at, bytes.data(), bytes.size());
  return changed;
}

// Calls with each page that the range touches: its index, where in the page, how much of it, how far into the range.
template <typename Visit>
void each_piece(std::uint64_t offset, std::uint64_t length, Visit visit) {
  for (std::uint64_t done = 0; done < length;) {
    const std::size_t at = static_cast<std::size_t>((offset + done) % kPageSize);
    const std::size_t count = static_cast<std::size_t>(std::min<std::uint64_t>(kPageSize - at, length - done));
    visit((offset + done) / kPageSize, at, count, static_cast<std::size_t>(done));
    done += count;
  }
}

std::uint64_t pages_for(std::uint64_t size) {
  return (size + kPageSize - 1) / kPageSize;
}

}  // namespace

LossPlan::LossPlan(Loss loss, std::uint64_t seed, bool tears_blocks) : dice_(seed), tears_blocks_(tears_blocks) {
  const auto mood = [&] {
    constexpr unsigned kMoods[] = {0, 10, 50, 90, 100};
    return kMoods[dice_.below(std::size(kMoods))];
  };
  switch (loss) {
    case Loss::random:
      keep_pages_ = mood();
      keep_sizes_ = mood();
      keep_names_ = mood();
      damage_pages_ = mood() / 4;
      break;
    case Loss::drop_all:
      break;
    case Loss::keep_all:
      keep_pages_ = keep_sizes_ = keep_names_ = 100;
      break;
    case Loss::keep_names:
      keep_names_ = 100;
      break;
    case Loss::keep_names_and_sizes:
      keep_names_ = keep_sizes_ = 100;
      break;
    case Loss::keep_bytes:
      keep_pages_ = keep_sizes_ = 100;
      break;
  }
}

std::size_t LossPlan::choose(std::size_t count, unsigned keep_percent) {
  if (dice_.percent(keep_percent)) return count;
  // What is not kept is dropped altogether, or an earlier state was already on its way.
  return keep_percent == 0 || count <= 1 ? 0 : static_cast<std::size_t>(dice_.below(count));
}

PagePtr LossPlan::page(const PagePtr& medium, const std::vector<PagePtr>& earlier, const PagePtr& now) {
  const std::size_t count = earlier.size() + 1;
  const auto state = [&](std::size_t which) -> const PagePtr& {
    return which == 0 ? medium : which == count ? now : earlier[which - 1];
  };
  const PagePtr& kept = state(choose(count, keep_pages_));
  const bool being_written = now != nullptr;
  if (!being_written || !dice_.percent(damage_pages_)) return kept;
  return damaged(kept, state(static_cast<std::size_t>(dice_.below(count + 1))));
}

PagePtr LossPlan::damaged(const PagePtr& one, const PagePtr& other) {
  auto page = std::make_shared<Page>(shown(one));
  const std::size_t sector = static_cast<std::size_t>(dice_.below(kPageSize / kSectorSize)) * kSectorSize;
  std::size_t garbage_from = sector;
  std::size_t garbage_to = sector + kSectorSize;
  switch (dice_.below(tears_blocks_ ? 3 : 2)) {
    case 0:  // torn: another state from that sector on
      std::copy(shown(other).begin() + static_cast<std::ptrdiff_t>(sector), shown(other).end(),
                page->begin() + static_cast<std::ptrdiff_t>(sector));
      return page;
    case 1:  // one sector is garbage
      break;
    default:  // flash tears the block it is programming
      garbage_from = 0;
      garbage_to = kPageSize;
      break;
  }
  for (std::size_t i = garbage_from; i < garbage_to; ++i) (*page)[i] = static_cast<std::uint8_t>(dice_.roll());
  return page;
}

PagePtr SimulatedContent::page(From from, std::uint64_t index) const {
  if (from != From::cache) {
    const auto unsynced = unsynced_.find(index);
    if (unsynced != unsynced_.end() && (from == From::medium || unsynced->second.lost)) return unsynced->second.medium;
  }
  return cached(index);
}

std::uint64_t SimulatedContent::new_blocks(std::uint64_t offset, std::uint64_t length) const {
  std::uint64_t count = 0;
  each_piece(offset, length, [&](std::uint64_t index, std::size_t, std::size_t, std::size_t) {
    if (cached(index) == nullptr) ++count;
  });
  return count;
}

std::size_t SimulatedContent::read(From from, std::uint64_t offset, std::span<std::uint8_t> out) const {
  const std::uint64_t size = from == From::medium ? medium_size_ : size_;
  if (offset >= size) return 0;
  const std::uint64_t length = std::min<std::uint64_t>(out.size(), size - offset);
  each_piece(offset, length, [&](std::uint64_t index, std::size_t at, std::size_t count, std::size_t done) {
    const PagePtr source = page(from, index);
    if (source) {
      std::memcpy(out.data() + done, source->data() + at, count);
    } else {
      std::memset(out.data() + done, 0, count);
    }
  });
  return static_cast<std::size_t>(length);
}

// Into the cache, nothing else.
void SimulatedContent::put(std::uint64_t index, PagePtr page) {
  if (index >= pages_.size()) {
    if (!page) return;
    pages_.resize(static_cast<std::size_t>(index) + 1);
  }
  PagePtr& place = pages_[index];
  if (place) --blocks_;
  if (page) ++blocks_;
  place = std::move(page);
}

// Into the cache, for the medium to catch up with.
void SimulatedContent::replace(std::uint64_t index, PagePtr page) {
  const auto [place, first] = unsynced_.try_emplace(index);
  Unsynced& unsynced = place->second;
  if (first) {
    unsynced.medium = cached(index);
  } else if (!unsynced.lost) {
    remember(unsynced.earlier, cached(index));
  }
  unsynced.lost = false;
  put(index, std::move(page));
}

void SimulatedContent::resize(std::uint64_t size) {
  if (size == size_) return;
  if (size_ != medium_size_) remember(earlier_sizes_, size_);
  size_ = size;
}

void SimulatedContent::write(std::uint64_t offset, ByteView bytes) {
  if (bytes.empty()) return;
  each_piece(offset, bytes.size(), [&](std::uint64_t index, std::size_t at, std::size_t count, std::size_t done) {
    replace(index, laid_over(cached(index), at, bytes.subspan(done, count)));
  });
  resize(std::max(size_, offset + bytes.size()));
}

void SimulatedContent::truncate(std::uint64_t size) {
  if (size < size_) {
    const std::uint64_t kept = pages_for(size);
    for (std::uint64_t index = kept; index < pages_.size(); ++index) {
      if (pages_[index]) replace(index, nullptr);
    }
    const std::size_t tail = static_cast<std::size_t>(size % kPageSize);
    if (tail != 0 && cached(kept - 1)) {
      const Bytes zeros(kPageSize - tail);
      replace(kept - 1, laid_over(cached(kept - 1), tail, zeros));
    }
  }
  resize(size);
}

void SimulatedContent::sync() {
  std::erase_if(unsynced_, [](const auto& entry) { return !entry.second.lost; });
  medium_size_ = size_;
  earlier_sizes_.clear();
}

void SimulatedContent::fail_sync(Dice* dice) {
  for (auto entry = unsynced_.begin(); entry != unsynced_.end();) {
    Unsynced& unsynced = entry->second;
    const bool cut_off = cached(entry->first) == nullptr;  // not a page to write, but a size to note
    if (!cut_off && !unsynced.lost && dice != nullptr && dice->percent(50)) {
      entry = unsynced_.erase(entry);
      continue;
    }
    if (!cut_off) {
      unsynced.lost = true;
      unsynced.earlier.clear();
    }
    ++entry;
  }
}

void SimulatedContent::lose_power(LossPlan& plan) {
  for (const auto& [index, unsynced] : unsynced_) {
    put(index, unsynced.lost ? unsynced.medium : plan.page(unsynced.medium, unsynced.earlier, cached(index)));
  }
  unsynced_.clear();
  if (size_ != medium_size_ || !earlier_sizes_.empty()) {
    std::vector<std::uint64_t> sizes = {medium_size_};
    sizes.insert(sizes.end(), earlier_sizes_.begin(), earlier_sizes_.end());
    sizes.push_back(size_);
    size_ = sizes[plan.size(sizes.size() - 1)];
  }
  medium_size_ = size_;
  earlier_sizes_.clear();
  trim_tail();
}

// What the size leaves out is gone: it must read as zeros should the file grow again.
void SimulatedContent::trim_tail() {
  for (std::uint64_t index = pages_for(size_); index < pages_.size(); ++index) put(index, nullptr);
  pages_.resize(std::min<std::size_t>(pages_.size(), static_cast<std::size_t>(pages_for(size_))));
  const std::size_t tail = static_cast<std::size_t>(size_ % kPageSize);
  const std::uint64_t last = size_ / kPageSize;
  if (tail == 0 || !cached(last)) return;
  const Bytes zeros(kPageSize - tail);
  put(last, laid_over(cached(last), tail, zeros));
}

template <typename Change>
void SimulatedContent::change_all_states(std::uint64_t index, Change change) {
  put(index, change(cached(index)));
  const auto entry = unsynced_.find(index);
  if (entry == unsynced_.end()) return;
  entry->second.medium = change(entry->second.medium);
  for (PagePtr& state : entry->second.earlier) state = change(state);
}

void SimulatedContent::overwrite(std::uint64_t offset, ByteView bytes) {
  each_piece(offset, bytes.size(), [&](std::uint64_t index, std::size_t at, std::size_t count, std::size_t done) {
    change_all_states(index, [&](const PagePtr& page) { return laid_over(page, at, bytes.subspan(done, count)); });
  });
  size_ = std::max(size_, offset + bytes.size());
  medium_size_ = std::max(medium_size_, offset + bytes.size());
}

void SimulatedContent::flip(std::uint64_t offset, std::uint8_t mask) {
  const std::size_t at = static_cast<std::size_t>(offset % kPageSize);
  change_all_states(offset / kPageSize, [&](const PagePtr& page) {
    const std::uint8_t flipped = shown(page)[at] ^ mask;
    return laid_over(page, at, {&flipped, 1});
  });
}

void SimulatedContent::cut_to(std::uint64_t size) {
  LossPlan as_it_is(Loss::keep_all, 0, false);
  lose_power(as_it_is);
  size_ = medium_size_ = size;
  trim_tail();
}

bool SimulatedContent::holds(ByteView text) const {
  const auto found_in = [&](ByteView bytes) {
    return std::search(bytes.begin(), bytes.end(), text.begin(), text.end()) != bytes.end();
  };
  for (const From from : {From::cache, From::medium}) {
    Bytes image(pages_.size() * kPageSize);
    for (std::size_t index = 0; index < pages_.size(); ++index) {
      const PagePtr source = page(from, index);
      if (source)
        std::copy(source->begin(), source->end(), image.begin() + static_cast<std::ptrdiff_t>(index * kPageSize));
    }
    if (found_in(image)) return true;
  }
  return std::any_of(unsynced_.begin(), unsynced_.end(), [&](const auto& entry) {
    const Unsynced& unsynced = entry.second;
    return (unsynced.medium && found_in(*unsynced.medium)) ||
           std::any_of(unsynced.earlier.begin(), unsynced.earlier.end(),
                       [&](const PagePtr& state) { return state && found_in(*state); });
  });
}

}  // namespace holdfast
