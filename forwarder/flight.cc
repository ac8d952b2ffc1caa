#include "forwarder/flight.h"

namespace holdfast {

bool is_accepted(const std::optional<Outcome>& outcome) {
  return outcome && (outcome->kind == OutcomeKind::delivered || outcome->kind == OutcomeKind::duplicate);
}

const char* code_of(const Outcome& outcome) {
  if (outcome.kind == OutcomeKind::rejected) return "rejected_unproven";
  return outcome.state != nullptr && *outcome.state != '\0' ? outcome.state : "refused";
}

Answers hear(const std::vector<Flown>& flight) {
  Answers answers;
  for (const Flown& flown : flight) {
    answers.scouted |= flown.entry->refused;
    answers.unreported |= !flown.outcome;
    if (!flown.outcome) continue;
    const OutcomeKind kind = flown.outcome->kind;
    answers.accepted |= is_accepted(flown.outcome);
    answers.answered |= kind != OutcomeKind::hold_target;
    answers.lane_refused |= kind == OutcomeKind::hold_lane;
    if (kind == OutcomeKind::hold_target && answers.hold == nullptr) answers.hold = &*flown.outcome;
  }
  return answers;
}

}  // namespace holdfast
