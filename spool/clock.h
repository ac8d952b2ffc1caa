// The clock seam. Two clocks that are never mixed: order, age and retries go by the monotonic one; the wall clock is
// only written down, together with whether it could be believed.
#pragma once

#include <chrono>
#include <cstdint>

namespace holdfast {

using Nanoseconds = std::chrono::nanoseconds;

struct WallTime {
  Nanoseconds since_1970{0};
  bool trusted = false;  // the kernel says that the clock is synchronised (adjtimex(2), STA_UNSYNC clear)
};

// Threads: any.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual WallTime wall() const = 0;
  // Since boot, suspend included (CLOCK_BOOTTIME). Never goes back within a boot.
  virtual Nanoseconds monotonic() const = 0;
};

// The machine's clocks. Whether the wall clock is trusted is asked at most once a second.
const Clock& system_clock();

}  // namespace holdfast
