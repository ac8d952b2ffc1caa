// A clock that stands still until the test moves it.
//
// Threads: any.
#pragma once

#include <mutex>

#include "spool/clock.h"

namespace holdfast {

class SimulatedClock : public Clock {
 public:
  WallTime wall() const override;
  Nanoseconds monotonic() const override;

  // Time passes on both clocks.
  void advance(Nanoseconds by);
  // The wall clock is set, stepped or lost; the monotonic one does not notice.
  void set_wall(Nanoseconds since_1970, bool trusted = true);
  void set_trusted(bool trusted);
  // A new boot: the monotonic clock begins again.
  void reboot();

 private:
  mutable std::mutex mutex_;
  WallTime wall_{std::chrono::seconds(1'700'000'000), true};
  Nanoseconds monotonic_ = std::chrono::seconds(100);
};

}  // namespace holdfast
