#include "tests/support/simulated_clock.h"

#include "spool/check.h"

namespace holdfast {

WallTime SimulatedClock::wall() const {
  const std::lock_guard guard(mutex_);
  return wall_;
}

Nanoseconds SimulatedClock::monotonic() const {
  const std::lock_guard guard(mutex_);
  return monotonic_;
}

void SimulatedClock::advance(Nanoseconds by) {
  CHECK(by >= Nanoseconds(0));
  const std::lock_guard guard(mutex_);
  wall_.since_1970 += by;
  monotonic_ += by;
}

void SimulatedClock::set_wall(Nanoseconds since_1970, bool trusted) {
  const std::lock_guard guard(mutex_);
  wall_ = {since_1970, trusted};
}

void SimulatedClock::set_trusted(bool trusted) {
  const std::lock_guard guard(mutex_);
  wall_.trusted = trusted;
}

void SimulatedClock::reboot() {
  const std::lock_guard guard(mutex_);
  monotonic_ = std::chrono::seconds(5);
}

}  // namespace holdfast
