#include "tests/support/scripted_target.h"

#include <utility>

namespace holdfast {
namespace {

Error broken() {
  return {ErrorKind::unavailable, "the connection broke, as the script says"};
}

}  // namespace

Outcome ScriptedTarget::take(const Delivery& delivery) {
  Outcome outcome;
  if (script_) {
    if (auto scripted = script_(delivery)) outcome = *std::move(scripted);
  }
  if (outcome.kind != OutcomeKind::delivered && outcome.kind != OutcomeKind::duplicate) return outcome;
  const Envelope& envelope = delivery.record->envelope;
  const auto [known, is_new] = taken_.try_emplace(delivery.wire_key, TakenRecord{envelope.subject, envelope.payload});
  if (is_new) {
    order_.push_back(delivery.wire_key);
    return outcome;
  }
  const bool same = known->second.subject == envelope.subject && known->second.payload == envelope.payload;
  outcome.kind = same ? OutcomeKind::duplicate : OutcomeKind::rejected;
  outcome.reason = same ? Reason::none : Reason::exists_otherwise;
  return outcome;
}

Result<void> ScriptedTarget::deliver(std::span<const Delivery> window, const Report& report) {
  Fault fault;
  {
    const std::lock_guard lock(mutex_);
    ++deliveries_;
    delivered_records_ += window.size();
    if (cut_off_) return broken();
    fault = std::exchange(fault_, Fault{});
  }
  if (fault.hang) {
    std::unique_lock lock(mutex_);
    hanging_ = true;
    changed_.wait(lock, [this] { return interrupted_; });
    hanging_ = interrupted_ = false;
    return Error{ErrorKind::unavailable, "interrupted"};
  }
  for (std::size_t place = 0; place < window.size(); ++place) {
    if (fault.break_after == place || fault.break_after_taking == place) return broken();
    std::unique_lock lock(mutex_);
    Outcome outcome = take(window[place]);
    lock.unlock();
    if (!fault.break_after_taking && fault.leave_out != place) report(place, std::move(outcome));
  }
  return fault.break_after || fault.break_after_taking ? Result<void>(broken()) : Result<void>();
}

Result<void> ScriptedTarget::probe() {
  const std::lock_guard lock(mutex_);
  ++probes_;
  return cut_off_ ? Result<void>(broken()) : Result<void>();
}

void ScriptedTarget::interrupt() {
  const std::lock_guard lock(mutex_);
  interrupted_ = hanging_;
  changed_.notify_all();
}

void ScriptedTarget::script(Script script) {
  const std::lock_guard lock(mutex_);
  script_ = std::move(script);
}

void ScriptedTarget::break_after(std::size_t reports) {
  const std::lock_guard lock(mutex_);
  fault_.break_after = reports;
}

void ScriptedTarget::break_after_taking(std::size_t records) {
  const std::lock_guard lock(mutex_);
  fault_.break_after_taking = records;
}

void ScriptedTarget::leave_out(std::size_t place) {
  const std::lock_guard lock(mutex_);
  fault_.leave_out = place;
}

void ScriptedTarget::hang() {
  const std::lock_guard lock(mutex_);
  fault_.hang = true;
}

void ScriptedTarget::cut_off(bool off) {
  const std::lock_guard lock(mutex_);
  cut_off_ = off;
}

std::map<std::string, TakenRecord> ScriptedTarget::taken() const {
  const std::lock_guard lock(mutex_);
  return taken_;
}

std::vector<std::string> ScriptedTarget::order() const {
  const std::lock_guard lock(mutex_);
  return order_;
}

std::size_t ScriptedTarget::deliveries() const {
  const std::lock_guard lock(mutex_);
  return deliveries_;
}

std::size_t ScriptedTarget::delivered_records() const {
  const std::lock_guard lock(mutex_);
  return delivered_records_;
}

std::size_t ScriptedTarget::probes() const {
  const std::lock_guard lock(mutex_);
  return probes_;
}

bool ScriptedTarget::hanging() const {
  const std::lock_guard lock(mutex_);
  return hanging_;
}

}  // namespace holdfast
