#include "forwarder/forwarder.h"

#include <algorithm>

namespace holdfast {
namespace {

constexpr Nanoseconds kLongestSleep = std::chrono::minutes(1);
constexpr Nanoseconds kSpoolPause = std::chrono::seconds(1);  // the spool is out of descriptors or memory
// What one step reads at most, so that it ends in its time however much of it is set aside.
constexpr int kReadsPerStep = 16;
constexpr int kRecallsPerStep = 64;
// Settled, and replaced, while the flight goes on: what a crash in a long flight can cost in duplicates.
constexpr std::size_t kSettleTogether = 128;

}  // namespace

const char* forwarder_state_text(ForwarderState state) {
  switch (state) {
    case ForwarderState::idle:
      return "idle";
    case ForwarderState::flowing:
      return "flowing";
    case ForwarderState::retrying:
      return "retrying";
    case ForwarderState::holding:
      return "holding";
    case ForwarderState::held_by_operator:
      return "held_by_operator";
  }
  return "unknown";
}

Forwarder::Forwarder(Spool& spool, Target& target, const Clock& clock, ForwarderOptions options, std::uint64_t seed)
    : spool_(spool), target_(target), clock_(clock), options_(std::move(options)), window_(options_.window, seed) {
  status_.target = options_.name;
  status_.since = clock_.monotonic();
}

Result<Nanoseconds> Forwarder::step() {
  obey();
  settled_ = false;
  Nanoseconds sleep = kLongestSleep;
  if (!held_) {
    const Nanoseconds now = clock_.monotonic();
    const Result<void> recalled = recall(now);
    const Result<bool> more = recalled.ok() ? read(kReadsPerStep) : Result<bool>(recalled.error());
    if (!more.ok() && more.error().kind == ErrorKind::io) return more.error();
    const auto read_up_to = window_.cursor().after;
    probe(now);
    const Result<void> delivered = deliver();
    if (!delivered.ok() && delivered.error().kind == ErrorKind::io) return delivered.error();
    // On, while a long flight made room; or back, to the first record of a lane that is well again.
    const bool moved = window_.cursor().after != read_up_to;
    const bool read_on = more.ok() && (*more || moved) && window_.room().records > 0;
    sleep = read_on ? Nanoseconds(0) : window_.next() - std::min(clock_.monotonic(), window_.next());
    if (!more.ok()) sleep = std::max(sleep, pause(more.error()));
    if (!delivered.ok()) sleep = std::max(sleep, pause(delivered.error()));
  }
  publish();
  const std::lock_guard lock(mutex_);
  status_.step_entered.reset();
  return std::min(sleep, kLongestSleep);
}

void Forwarder::obey() {
  bool kick = false;
  {
    const std::lock_guard lock(mutex_);
    status_.step_entered = clock_.monotonic();
    held_ = hold_ordered_;
    kick = std::exchange(kick_ordered_, false);
  }
  if (kick) window_.kick();
}

// True: there may be more than there was room or time for.
Result<bool> Forwarder::read(int turns) {
  for (int turn = 0; turn < turns; ++turn) {
    const Window::Room room = window_.room();
    if (room.records == 0) return true;
    const auto before = window_.cursor().after;
    auto due = spool_.due(options_.number, options_.window.drain, window_.cursor(), room.records, room.bytes);
    if (!due.ok()) return due.error();
    for (DueRecord& record : *due) window_.offer(std::move(record));
    // Records that cannot be opened are passed over: only a cursor that stands still says that there is nothing.
    if (due->empty() && window_.cursor().after == before) return false;
  }
  return true;
}

Result<void> Forwarder::recall(Nanoseconds now) {
  for (int turn = 0; turn < kRecallsPerStep; ++turn) {
    const std::optional<Recall> recall = window_.recall(now);
    if (!recall) return {};
    DueCursor cursor = window_.recall_cursor(*recall);
    auto due = spool_.due(options_.number, options_.window.drain, cursor, 1, options_.window.bytes);
    if (!due.ok()) return due.error();
    window_.recalled(*recall, due->empty() ? std::nullopt : std::optional(std::move(due->front())));
  }
  return {};
}

void Forwarder::probe(Nanoseconds now) {
  if (!window_.wants_probe(now)) return;
  publish();
  const Result<void> result = target_.probe();
  if (!result.ok()) note_error(result.error());
  window_.probed(result, clock_.monotonic());
}

Result<void> Forwarder::deliver() {
  const std::span<const Delivery> flight = window_.take(clock_.monotonic());
  if (flight.empty()) return {};
  publish();
  Result<void> spool_goes_on;
  const Report report = [&](std::size_t place, Outcome outcome) {
    window_.report(place, std::move(outcome));
    if (spool_goes_on.ok() && window_.unsettled() >= kSettleTogether) spool_goes_on = go_on();
  };
  const Result<void> result = target_.deliver(flight, report);
  if (!result.ok()) note_error(result.error());
  window_.land(result, clock_.monotonic());
  const Result<void> rest = settle();
  return spool_goes_on.ok() ? rest : spool_goes_on;
}

// In the middle of a flight. What was reported is settled before anything is read, or it would be read again.
Result<void> Forwarder::go_on() {
  HOLDFAST_TRY(settle());
  const Result<bool> more = read(1);
  if (!more.ok() && more.error().kind == ErrorKind::io) return more.error();
  return {};
}

// A spool that had no room to write it down has it in memory; should it not, the records are read, and delivered,
// again: after a pause.
Result<void> Forwarder::settle() {
  const std::vector<Settlement> settlements = window_.settlements();
  if (settlements.empty()) return {};
  const Result<void> settled = spool_.settle(options_.number, settlements);
  if (!settled.ok()) {
    for (const Settlement& settlement : settlements) window_.read_again(settlement.sequence);
    return settled;
  }
  settled_ = true;
  publish();
  return {};
}

Nanoseconds Forwarder::pause(const Error& error) {
  note_error(error);
  return kSpoolPause;
}

void Forwarder::note_error(const Error& error) {
  const std::lock_guard lock(mutex_);
  status_.last_error = error.text;
  status_.last_error_at = clock_.monotonic();
}

ForwarderState Forwarder::state_of(const WindowStatus& window) const {
  if (held_) return ForwarderState::held_by_operator;
  if (window.standing == StandingKind::cut_off) return ForwarderState::holding;
  const bool in_doubt = window.standing == StandingKind::doubted;
  if (!in_doubt && (settled_ || window.records > window.refused)) return ForwarderState::flowing;
  if (window.refused > 0) return ForwarderState::retrying;
  return in_doubt || window.lanes_held + window.apart > 0 ? ForwarderState::holding : ForwarderState::idle;
}

void Forwarder::publish() {
  const WindowStatus window = window_.status();
  const ForwarderState state = state_of(window);
  const Nanoseconds now = clock_.monotonic();
  const Nanoseconds next = window_.next();
  const std::lock_guard lock(mutex_);
  // A trouble lasts through the tries in it, until something is settled.
  const bool troubled = state == ForwarderState::retrying || state == ForwarderState::holding;
  if (settled_ || state == ForwarderState::idle) trouble_began_.reset();
  if (troubled && !trouble_began_) trouble_began_ = now;
  if (state != status_.state) status_.since = troubled ? *trouble_began_ : now;
  status_.state = state;
  status_.window = window;
  status_.next_attempt = held_ || next == Nanoseconds::max() ? std::nullopt : std::optional(std::max(next, now));
  if (settled_) status_.last_settled = now;
}

ForwarderStatus Forwarder::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

void Forwarder::hold() {
  {
    const std::lock_guard lock(mutex_);
    hold_ordered_ = true;
  }
  if (wake_) wake_();
}

void Forwarder::resume() {
  {
    const std::lock_guard lock(mutex_);
    hold_ordered_ = false;
    kick_ordered_ = true;
  }
  if (wake_) wake_();
}

void Forwarder::kick() {
  {
    const std::lock_guard lock(mutex_);
    kick_ordered_ = true;
  }
  if (wake_) wake_();
}

}  // namespace holdfast
