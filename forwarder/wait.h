// Why, and until when, something is not tried again: a record, a lane, a target. A value; times are monotonic.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "forwarder/backoff.h"

namespace holdfast {

struct Wait {
  Backoff backoff;
  Nanoseconds until{0};
  Nanoseconds asked_until{0};  // the target asked for it; nobody but the operator cuts it short
  Nanoseconds tried_at{0};
  const char* code = "";  // a fixed word of ours; "" is that of something that never failed
  // Rejected, and how many records the target had accepted by then: it is final only when that number has grown.
  std::optional<std::uint64_t> rejected_after;

  Nanoseconds end() const { return std::max(until, asked_until); }
  bool over(Nanoseconds now) const { return now >= end(); }
  // The target has accepted another record since it rejected this one.
  bool proven(std::uint64_t accepted) const { return rejected_after && accepted > *rejected_after; }
};

}  // namespace holdfast
