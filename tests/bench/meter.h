// How fast the program gets on, seen from outside.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>

#include "spool/check.h"
#include "spool/clock.h"

namespace holdfast {

// How fast a count grows, between its first tenth and its end: the start of a process is no throughput.
class Meter {
 public:
  explicit Meter(std::uint64_t end) : end_(end) {}
  // True when the end is reached.
  bool see(std::uint64_t count) {
    const Seen now{system_clock().monotonic(), count};
    if (count >= end_ / 10 && first_.count == 0) first_ = now;
    if (count > first_.count && first_.count > 0 && (count < end_ || last_.count == 0)) last_ = now;
    return count >= end_;
  }
  double rate() const {
    CHECK(last_.count > first_.count);
    return static_cast<double>(last_.count - first_.count) /
           std::chrono::duration<double>(last_.when - first_.when).count();
  }

 private:
  struct Seen {
    Nanoseconds when{0};
    std::uint64_t count = 0;
  };
  const std::uint64_t end_;
  Seen first_, last_;
};

// Until the end is reached. Asked seldom enough that asking costs nothing that could be measured.
void watch(Meter& meter, const std::function<std::uint64_t()>& count);

// Resident memory of a process.
double mebibytes_of(pid_t pid);

}  // namespace holdfast
