// How fast a count grows, lately: over the last ten seconds. Pure. Threads: one.
#pragma once

#include <cstdint>
#include <deque>

#include "spool/clock.h"

namespace holdfast {

class RateMeter {
 public:
  // The count as it is now; returns the growth per second. A count that went back begins anew.
  double note(Nanoseconds now, std::uint64_t count);

 private:
  struct Reading {
    Nanoseconds at;
    std::uint64_t count;
  };
  std::deque<Reading> readings_;
};

}  // namespace holdfast
