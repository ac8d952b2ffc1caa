#include "spool/floor_history.h"

#include <algorithm>
#include <limits>

namespace holdfast {

bool FloorHistory::note(std::uint64_t floor, Nanoseconds now, Nanoseconds window) {
  told_ = floor;
  if (samples_.empty() || now - samples_.back().since >= window / kFloorSamples) {
    samples_.push_back({now, floor});
    // Of those that are a window old only the youngest says something.
    while (samples_.size() > 1 && now - samples_[1].since >= window) samples_.erase(samples_.begin());
    return true;
  }
  if (floor >= samples_.back().floor) return false;
  samples_.back().floor = floor;
  return true;
}

std::uint64_t FloorHistory::aged(Nanoseconds now, Nanoseconds window) const {
  const auto is_old = [&](const Sample& sample) { return now - sample.since >= window; };
  const auto oldest_that_counts = std::find_if(samples_.rbegin(), samples_.rend(), is_old);
  if (oldest_that_counts == samples_.rend() || !told_) return 0;
  std::uint64_t lowest = *told_;
  for (auto sample = samples_.rbegin(); sample <= oldest_that_counts; ++sample)
    lowest = std::min(lowest, sample->floor);
  return lowest;
}

Bytes FloorHistory::encode() const {
  Bytes bytes;
  ByteWriter writer(bytes);
  for (const Sample& sample : samples_) {
    writer.u64(static_cast<std::uint64_t>(sample.since.count()));
    writer.u64(sample.floor);
  }
  return bytes;
}

std::optional<FloorHistory> FloorHistory::decode(ByteView bytes) {
  FloorHistory history;
  ByteReader reader(bytes);
  while (reader.remaining() > 0) {
    const auto since = Nanoseconds(static_cast<std::int64_t>(reader.u64()));
    history.samples_.push_back({since, reader.u64()});
    if (!reader.good()) return std::nullopt;
  }
  return history;
}

}  // namespace holdfast
