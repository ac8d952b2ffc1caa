// Below which sequence a stream could not redeliver anything any more, as it was told from time to time. Pure.
//
// A stream can go back: a restored copy, or a store that a power cut set back, hands out again what had gone. So a
// floor counts only when it was never told lower for a whole window of running time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "crypto/bytes.h"
#include "spool/clock.h"

namespace holdfast {

// Sequences of a stream below which nothing can come again.
struct PositionFloor {
  std::uint64_t gone = 0;          // the stream has them no more, and all are acknowledged
  std::uint64_t acknowledged = 0;  // all are acknowledged; a consumer that is made again could hand them out
};

class FloorHistory {
 public:
  // True: what encode() says has changed. At most some kFloorSamples are kept for a window.
  bool note(std::uint64_t floor, Nanoseconds now, Nanoseconds window);

  // The lowest of a whole window, up to now; 0 while that is not known.
  std::uint64_t aged(Nanoseconds now, Nanoseconds window) const;

  Bytes encode() const;
  static std::optional<FloorHistory> decode(ByteView bytes);

 private:
  struct Sample {
    Nanoseconds since{0};
    std::uint64_t floor = 0;  // the lowest that was told from then until the next sample
  };
  std::vector<Sample> samples_;  // in order of time
  std::optional<std::uint64_t> told_;
};

inline constexpr int kFloorSamples = 16;

}  // namespace holdfast
