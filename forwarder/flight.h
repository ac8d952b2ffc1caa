// A flight: the records that are with the target, and what it says of each. Pure.
#pragma once

#include <optional>
#include <vector>

#include "forwarder/target.h"
#include "forwarder/wait.h"

namespace holdfast {

// A record in the window.
struct WindowRecord {
  DueRecord record;
  Wait wait;
  bool refused = false;  // tried, and to be tried again
  bool probe = false;    // of its lane
  bool flying = false;
};

struct Flown {
  WindowRecord* entry = nullptr;
  std::optional<Outcome> outcome;
  std::uint64_t accepted = 0;  // records that the target had accepted by then
  bool settled = false;
};

// A flight's outcomes taken together.
struct Answers {
  bool accepted = false;  // a record
  bool answered = false;  // something about a record
  bool scouted = false;   // one flew that had failed before
  bool lane_refused = false;
  bool unreported = false;
  const Outcome* hold = nullptr;  // the first that stops everything; lives in the flight
};
Answers hear(const std::vector<Flown>& flight);

bool is_accepted(const std::optional<Outcome>& outcome);
// The fixed code for status: the target's, or ours where it gave none.
const char* code_of(const Outcome& outcome);

}  // namespace holdfast
