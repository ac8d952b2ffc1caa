// What a forwarder tells of itself: values only. Codes and texts are ours; no subject, key, payload or word of a target
// is in them (I7). Times are monotonic.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "forwarder/standing.h"

namespace holdfast {

// Records settled since the forwarder was made.
struct FateCounts {
  std::uint64_t delivered = 0, duplicates = 0, duplicates_unexpected = 0, rejected = 0;
  // Of those delivered: the outcome of an earlier try is not known, so the target may have them twice.
  std::uint64_t maybe_repeated = 0;
};

struct WindowStatus {
  StandingKind standing = StandingKind::good;
  const char* code = "";  // why something waits: the target's standing, else what failed; "" when nothing does
  std::uint32_t failed_flights = 0;  // in a row, without an accepted record
  std::size_t records = 0;           // in the window
  std::size_t bytes = 0;
  std::size_t refused = 0;  // of those: that wait for another try
  std::size_t lanes_held = 0;
  std::uint64_t lane_records = 0;  // set aside with their lanes, as far as they have been read
  std::size_t apart = 0;           // single records outside the window
  FateCounts fates;
};

enum class ForwarderState : std::uint8_t {
  idle,              // nothing waits
  flowing,           // what is due goes; a lane or a record may still be held: see `window`
  retrying,          // the target answers, and wants what it was given later
  holding,           // it does not answer, or refuses what does not depend on the record, or all that is left is held
  held_by_operator,  // until resume()
};
const char* forwarder_state_text(ForwarderState state);

struct ForwarderStatus {
  std::string target;
  ForwarderState state = ForwarderState::idle;
  Nanoseconds since{0};                     // in this state
  std::optional<Nanoseconds> next_attempt;  // when something that waits is tried again
  std::optional<Nanoseconds> step_entered;  // a step is running since then: a hung target is seen by it
  std::optional<Nanoseconds> last_settled;  // when a record was last reported to the spool
  WindowStatus window;
  std::string last_error;  // the last text of a failed call, kept after it is over
  Nanoseconds last_error_at{0};
};

}  // namespace holdfast
