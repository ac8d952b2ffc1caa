// Whether a loop still gets anywhere: each of its steps says how long it may take, and the watchdog asks who is
// overdue.
//
// Time is steady_clock's, which stands still while the machine is suspended: a box that slept an hour has hung nowhere.
// Threads: one begins and ends, any asks.
#pragma once

#include <atomic>
#include <cstdint>

#include "spool/clock.h"

namespace holdfast {

class Progress {
 public:
  // What is done next is over within `bound`.
  void begin(Nanoseconds bound);
  // At rest: nothing is under way that could hang.
  void end();
  bool overdue(Nanoseconds now) const;

  static Nanoseconds now();

 private:
  static constexpr std::int64_t kAtRest = 0;
  std::atomic<std::int64_t> deadline_{kAtRest};
};

}  // namespace holdfast
