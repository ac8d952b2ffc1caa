// The part of the window that makes something of what a target said.
#include <algorithm>

#include "forwarder/code.h"
#include "forwarder/window.h"

namespace holdfast {
namespace {

// Codes for status, of what is no answer.
constexpr const char* kUnreported = "unreported";  // it said that all was well, and nothing of some records

}  // namespace

void Window::report(std::size_t place, Outcome outcome) {
  CHECK(place < flight_.size());
  Flown& flown = flight_[place];
  if (flown.outcome) return;
  flown.outcome = std::move(outcome);
  const bool accepted = is_accepted(flown.outcome);
  if (accepted) ++accepted_;
  flown.accepted = accepted_;
  flown.settled = accepted || is_final(flown);
  if (!flown.settled) return;
  settle(flown);
  make_room(*flown.entry);
}

// The target may still hold the view of its window, and lanes are named by the records.
void Window::make_room(WindowRecord& entry) {
  bytes_ -= entry.record.bytes;
  if (entry.refused) --refused_;
  Bytes().swap(entry.record.envelope.payload);
  landed_.push_back(entries_.extract(place_of(entry.record)));
}

bool Window::is_final(const Flown& flown) const {
  return flown.outcome->kind == OutcomeKind::rejected && flown.entry->wait.proven(flown.accepted);
}

void Window::settle(const Flown& flown) {
  const DueRecord& record = flown.entry->record;
  const Outcome& outcome = *flown.outcome;
  Settlement settlement;
  settlement.sequence = record.sequence;
  if (outcome.kind == OutcomeKind::duplicate) {
    settlement.fate = record.surely_unsent ? Fate::duplicate_unexpected : Fate::duplicate;
    ++(record.surely_unsent ? fates_.duplicates_unexpected : fates_.duplicates);
  } else if (outcome.kind == OutcomeKind::rejected) {
    settlement.fate = Fate::rejected;
    settlement.reason = outcome.reason == Reason::none ? Reason::rejected : outcome.reason;
    settlement.words = outcome.words;
    ++fates_.rejected;
  } else {
    ++fates_.delivered;
    fates_.maybe_repeated += record.surely_unsent ? 0u : 1u;
  }
  settlements_.push_back(std::move(settlement));
}

void Window::land(const Result<void>& result, Nanoseconds now) {
  if (flight_.empty()) return;
  const Answers answers = hear(flight_);
  flight_accepted_ = answers.accepted;
  failed_flights_ = answers.accepted ? 0 : failed_flights_ + 1;
  if (answers.accepted) standing_.accepted();
  if (answers.answered) standing_.answered();
  if (answers.lane_refused || outside_.lanes() > 0) release_accepted();
  for (const Flown& flown : flight_) judge_record(flown, now);
  judge_target(result, answers, now);
  accepted_lanes_.clear();
  landed_.clear();
  flight_.clear();
  deliveries_.clear();
  make_way();
}

void Window::release_accepted() {
  for (const Flown& flown : flight_) {
    if (!is_accepted(flown.outcome)) continue;
    const std::string& subject = flown.entry->record.envelope.subject;
    accepted_lanes_.insert(subject);
    release(subject);
  }
}

void Window::judge_record(const Flown& flown, Nanoseconds now) {
  WindowRecord& entry = *flown.entry;
  if (flown.settled) return;
  entry.flying = false;
  entry.record.surely_unsent = false;
  if (!flown.outcome) return;
  switch (flown.outcome->kind) {
    case OutcomeKind::delivered:
    case OutcomeKind::duplicate:
    case OutcomeKind::hold_target:
      return;
    case OutcomeKind::retry:
      return refuse(entry, *flown.outcome, now);
    case OutcomeKind::hold_lane:
      return refuse_lane(entry, *flown.outcome, now);
    case OutcomeKind::rejected:
      return reject(entry, flown, now);
  }
}

void Window::judge_target(const Result<void>& result, const Answers& answers, Nanoseconds now) {
  if (!result.ok() || answers.unreported) {
    standing_.cut_off(result.ok() ? kUnreported : code_of(result.error()), random_(), std::nullopt, now);
  } else if (answers.hold != nullptr) {
    standing_.cut_off(code_of(*answers.hold), random_(), answers.hold->retry_after, now);
  } else if (!answers.accepted) {
    standing_.judge(answers.scouted, random_(), now);
  }
}

// In doubt a failure counts against the target: when it is back, what it failed with is not made to wait.
void Window::charge(Wait& wait, const Outcome& outcome, Nanoseconds now) {
  wait.code = code_of(outcome);
  wait.tried_at = now;
  wait.asked_until = now + asked_wait(options_.backoff, outcome.retry_after);
  if (standing_.kind() == StandingKind::doubted) return;
  wait.until = now + wait.backoff.next(options_.backoff, random_(), outcome.retry_after);
}

void Window::blame(const WindowRecord& entry, const Outcome& outcome) {
  if (flight_accepted_) return;
  const bool lane = outcome.kind == OutcomeKind::hold_lane;
  standing_.failed(entry.record.sequence, entry.record.envelope.subject, lane, code_of(outcome));
}

void Window::refuse(WindowRecord& entry, const Outcome& outcome, Nanoseconds now) {
  blame(entry, outcome);
  if (Lane* lane = outside_.find_lane(entry.record.envelope.subject)) {
    if (entry.probe) charge(lane->wait, outcome, now);
    return set_aside(*lane, entry);
  }
  charge(entry.wait, outcome, now);
  set_refused(entry);
}

// Where another of the lane was accepted in the same flight, the lane is well and the record has failed alone.
void Window::refuse_lane(WindowRecord& entry, const Outcome& outcome, Nanoseconds now) {
  const std::string subject = entry.record.envelope.subject;
  Lane* lane = accepted_lanes_.contains(subject) ? nullptr : outside_.hold_lane(subject);
  if (lane == nullptr) return refuse(entry, outcome, now);
  blame(entry, outcome);
  const bool is_new = lane->failed_in == 0;
  if (lane->failed_in != flights_) charge(lane->wait, outcome, now);
  lane->failed_in = flights_;
  set_aside(*lane, entry);
  if (is_new) set_aside_others(*lane, subject);
}

// The rest of its lane goes on: that the target refuses this record says that it would look at another.
void Window::reject(WindowRecord& entry, const Flown& flown, Nanoseconds now) {
  blame(entry, *flown.outcome);
  if (entry.probe) {
    release(entry.record.envelope.subject);
    entry.wait = {};
  }
  charge(entry.wait, *flown.outcome, now);
  if (!entry.wait.rejected_after) entry.wait.rejected_after = flown.accepted;
  set_refused(entry);
  if (outside_.set_apart(entry.record, entry.wait)) forget(entry);
}

void Window::set_aside(Lane& lane, WindowRecord& entry) {
  if (entry.probe) lane.probe.reset();
  outside_.set_aside(lane, entry.record);
  forget(entry);
}

// Those that fly have their own outcome, or none and go on as they are.
void Window::set_aside_others(Lane& lane, const std::string& subject) {
  for (auto next = entries_.begin(); next != entries_.end();) {
    WindowRecord& entry = (next++)->second;
    if (!entry.flying && entry.record.envelope.subject == subject) set_aside(lane, entry);
  }
}

void Window::release(const std::string& subject) {
  const Lane* lane = outside_.find_lane(subject);
  if (lane == nullptr) return;
  if (lane->probe) {
    const auto probe = entries_.find(place_of(*lane->probe));
    if (probe != entries_.end()) probe->second.probe = false;
  }
  read_again(lane->lowest.sequence);
  outside_.release_lane(subject);
}

// What waits for another try may have half of the window, so that it never stops what has not been tried (I6). Those
// that wait longest leave.
void Window::make_way() {
  std::vector<const WindowRecord*> waiting;
  std::size_t bytes = 0;
  for (const auto& [place, entry] : entries_) {
    if (!entry.refused || entry.probe) continue;
    waiting.push_back(&entry);
    bytes += entry.record.bytes;
  }
  std::sort(waiting.begin(), waiting.end(),
            [](const WindowRecord* a, const WindowRecord* b) { return a->wait.end() < b->wait.end(); });
  while (waiting.size() > options_.records / 2 || bytes > options_.bytes / 2) {
    const WindowRecord& last = *waiting.back();
    if (!outside_.set_apart(last.record, last.wait)) return;
    bytes -= last.record.bytes;
    forget(last);
    waiting.pop_back();
  }
}

}  // namespace holdfast
