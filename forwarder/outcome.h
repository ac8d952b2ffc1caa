// What became of one record at one target. Sorted by what could make it succeed later: an answer that is not known is
// never a verdict on the record (docs/targets.md has every answer of every target).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "spool/clock.h"
#include "spool/reason.h"

namespace holdfast {

enum class OutcomeKind : std::uint8_t {
  delivered,
  duplicate,    // the target had it already
  retry,        // not now; the record and the target are well (5xx, 429, 409 in progress)
  hold_lane,    // what refuses may lie with this subject (no stream, 404): its lane waits, others go on
  hold_target,  // what refuses cannot depend on the record (credentials, redirect, clock skew): all wait
  rejected,     // the record itself will never be taken (400, too large); quarantined once the target has proved it
                // accepts others
};

struct Outcome {
  OutcomeKind kind = OutcomeKind::delivered;
  Reason reason = Reason::none;  // rejected
  const char* state = "";        // retry and holds: a fixed code of ours for status ("no_stream"), never a peer's words
  std::optional<Nanoseconds> retry_after;  // retry: as the target asked, from now
  std::string words;                       // rejected: the target's own, kept sealed beside the record
};

inline Outcome accepted(OutcomeKind kind = OutcomeKind::delivered) {
  return {kind, Reason::none, "", std::nullopt, {}};
}
inline Outcome retry(const char* state, std::optional<Nanoseconds> after = std::nullopt) {
  return {OutcomeKind::retry, Reason::none, state, after, {}};
}
inline Outcome hold_lane(const char* state) {
  return {OutcomeKind::hold_lane, Reason::none, state, std::nullopt, {}};
}
inline Outcome hold_target(const char* state) {
  return {OutcomeKind::hold_target, Reason::none, state, std::nullopt, {}};
}
inline Outcome rejected(Reason reason, std::string words = {}) {
  return {OutcomeKind::rejected, reason, "", std::nullopt, std::move(words)};
}

}  // namespace holdfast
