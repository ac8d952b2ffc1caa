// How long to wait after the n-th failure in a row: pure, no clock, no dice of its own.
//
// Exponential and capped; the jitter is full (anything from nothing to the ceiling) and applied after the cap, so that
// a fleet that failed together does not return together, however long it has been failing. A success starts it anew.
//
// What a target asked for (Retry-After) is honoured, up to a bound of ours: never earlier, and the jitter comes on top,
// or everybody who was told the same would return in the same instant.
#pragma once

#include <cstdint>
#include <optional>

#include "spool/clock.h"

namespace holdfast {

struct BackoffOptions {
  Nanoseconds first = std::chrono::seconds(1);  // the ceiling after the first failure; doubles with each
  Nanoseconds cap = std::chrono::seconds(60);
  Nanoseconds longest_asked = std::chrono::hours(1);  // a target cannot send us away for years
};

class Backoff {
 public:
  // Counts a failure and says how long to wait for it. `random`: 64 random bits from outside.
  Nanoseconds next(const BackoffOptions& options, std::uint64_t random, std::optional<Nanoseconds> asked = {});
  void reset() { failures_ = 0; }
  std::uint32_t failures() const { return failures_; }

  // The longest wait after so many failures in a row, without what a target asked for.
  static Nanoseconds ceiling(const BackoffOptions& options, std::uint32_t failures);

 private:
  std::uint32_t failures_ = 0;
};

// What a target asked for, within the bound; nothing asked and a time that is over are no wait.
Nanoseconds asked_wait(const BackoffOptions& options, std::optional<Nanoseconds> asked);

}  // namespace holdfast
