#include "forwarder/backoff.h"

#include <algorithm>
#include <limits>

namespace holdfast {

Nanoseconds Backoff::ceiling(const BackoffOptions& options, std::uint32_t failures) {
  const Nanoseconds cap = std::max(options.cap, Nanoseconds(0));
  Nanoseconds ceiling = std::clamp(options.first, Nanoseconds(0), cap);
  if (failures == 0) return Nanoseconds(0);
  for (std::uint32_t doubled = 1; doubled < failures; ++doubled) {
    if (ceiling > cap / 2) return cap;
    if (ceiling == Nanoseconds(0)) break;
    ceiling *= 2;
  }
  return ceiling;
}

Nanoseconds Backoff::next(const BackoffOptions& options, std::uint64_t random, std::optional<Nanoseconds> asked) {
  if (failures_ < std::numeric_limits<std::uint32_t>::max()) ++failures_;
  // The remainder's bias towards short waits is below one in a hundred million for a cap of a minute.
  const auto choices = static_cast<std::uint64_t>(ceiling(options, failures_).count()) + 1;
  return asked_wait(options, asked) + Nanoseconds(static_cast<Nanoseconds::rep>(random % choices));
}

Nanoseconds asked_wait(const BackoffOptions& options, std::optional<Nanoseconds> asked) {
  if (!asked) return Nanoseconds(0);
  return std::clamp(*asked, Nanoseconds(0), std::max(options.longest_asked, Nanoseconds(0)));
}

}  // namespace holdfast
