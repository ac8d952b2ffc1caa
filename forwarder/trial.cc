#include "forwarder/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>

#include "forwarder/code.h"
#include "spool/identity.h"

namespace holdfast {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr auto kGrace = std::chrono::seconds(3);  // for a delivery to return: beyond its deadline, and interrupted
constexpr auto kStopLook = milliseconds(100);     // whether to stop
constexpr auto kFirstPause = milliseconds(50);    // between two tries
constexpr auto kLongestPause = std::chrono::seconds(2);
constexpr auto kLook = milliseconds(50);               // between two looks for a record that was confirmed
constexpr auto kLookLimit = std::chrono::seconds(30);  // for one look or removal
constexpr const char* kStream = "holdfast-certification";

bool is_accepted(const std::optional<Outcome>& outcome) {
  return outcome && (outcome->kind == OutcomeKind::delivered || outcome->kind == OutcomeKind::duplicate);
}

std::vector<Delivery> deliveries_of(const TrialBatch& batch) {
  std::vector<Delivery> window;
  for (const TrialRecord& record : batch) window.push_back({record.get(), wire_key(record->key)});
  return window;
}

std::string payload_text(const std::string& run, std::uint64_t number, std::string_view check, std::size_t filler,
                         std::string_view text) {
  std::string payload = fmt::format(R"({{"holdfast_certification":"{}","record":{},"check":"{}")", run, number, check);
  if (!text.empty()) payload += fmt::format(R"(,"text":"{}")", text);
  if (filler > 0) payload += fmt::format(R"(,"filler":"{}")", std::string(filler, '.'));
  return payload + "}";
}

// In our words: never a peer's.
std::string why_not(const Attempt& attempt) {
  if (!attempt.returned) return "a delivery did not return";
  for (const auto& outcome : attempt.outcomes) {
    if (is_accepted(outcome) || !outcome) continue;
    if (outcome->kind == OutcomeKind::rejected)
      return fmt::format("it rejects a record ({})", reason_text(outcome->reason));
    return fmt::format("{} ({})", code_text(outcome->state), outcome->state);
  }
  if (attempt.result.ok()) return "it said nothing of some records";
  return fmt::format("{} ({})", code_text(code_of(attempt.result.error())), code_of(attempt.result.error()));
}

Error no_answer() {
  return {ErrorKind::unavailable, "no answer in time"};
}

}  // namespace

bool Attempt::accepted(std::size_t place) const {
  return is_accepted(outcomes[place]);
}

bool Attempt::rejected(std::size_t place) const {
  return outcomes[place] && outcomes[place]->kind == OutcomeKind::rejected;
}

std::size_t Attempt::count_accepted() const {
  return static_cast<std::size_t>(std::count_if(outcomes.begin(), outcomes.end(), is_accepted));
}

bool Carried::all() const {
  return !broke_promise && std::all_of(accepted.begin(), accepted.end(), [](bool one) { return one; });
}

// --- One delivery

// Owned by the thread that delivers, too: a late one may still report.
struct Delivering::Work {
  std::shared_ptr<Target> target;
  TrialBatch batch;
  std::vector<Delivery> window;
  std::mutex mutex;
  Attempt attempt;

  void run() {
    Result<void> result = target->deliver(window, [this](std::size_t place, Outcome outcome) {
      const std::lock_guard lock(mutex);
      const bool once = place < window.size() && !attempt.outcomes[place];
      if (once) attempt.outcomes[place] = std::move(outcome);
      attempt.broke_promise = attempt.broke_promise || !once;
    });
    const std::lock_guard lock(mutex);
    const bool all = std::all_of(attempt.outcomes.begin(), attempt.outcomes.end(), [](const auto& one) { return one; });
    attempt.broke_promise = attempt.broke_promise || (result.ok() && !all);
    attempt.result = std::move(result);
  }
};

Delivering::Delivering(std::shared_ptr<Target> target, TrialBatch batch) : work_(std::make_shared<Work>()) {
  work_->target = std::move(target);
  work_->batch = std::move(batch);
  work_->window = deliveries_of(work_->batch);
  work_->attempt.outcomes.resize(work_->window.size());
  work_->attempt.result = no_answer();
  call_ = BoundedCall::start([work = work_] { work->run(); });
}

const TrialBatch& Delivering::batch() const {
  return work_->batch;
}

Attempt Delivering::finish(Moment deadline, const std::stop_token& stop) {
  bool ended = false;
  while (call_ && !ended && !stop.stop_requested() && steady_clock::now() < deadline)
    ended = call_->wait_until(std::min<Moment>(deadline, steady_clock::now() + kStopLook));
  const bool returned = ended || (call_ && steady_clock::now() < deadline);
  if (call_ && !ended) {
    work_->target->interrupt();
    ended = call_->wait_until(steady_clock::now() + kGrace);
  }
  const std::lock_guard lock(work_->mutex);
  Attempt attempt = work_->attempt;
  attempt.returned = returned && ended;
  attempt.usable = ended;
  return attempt;
}

// --- The trial

Trial::Trial(CertifiedTarget target, const CertificationOptions& options)
    : target_(std::move(target)),
      readback_(std::move(target_.readback)),
      options_(options),
      end_(steady_clock::now() + options.limit) {}

TrialRecord Trial::make_record(std::string_view check, std::size_t filler, std::string_view text) {
  const std::uint64_t number = made_.size() + 1;
  const auto record = std::make_shared<DueRecord>();
  // Its place in the spool stays 0: it was in none, and what consumers see of spool sequences must go on growing.
  record->key = fmt::format("certify:{}:{}:{}", escape_component(options_.site), options_.run, number);
  record->envelope.source = kStream;
  record->envelope.subject = options_.subject;
  record->envelope.headers = {{"Holdfast-Certification", options_.run}};
  const std::string payload = payload_text(options_.run, number, check, filler, text);
  record->envelope.payload = options_.payload.value_or(Bytes(as_bytes(payload).begin(), as_bytes(payload).end()));
  record->envelope.origin = {kStream, number, 0};
  record->bytes = record->envelope.payload.size();
  made_.push_back(record);
  return record;
}

TrialBatch Trial::make_records(std::string_view check, std::size_t count) {
  TrialBatch batch;
  for (std::size_t n = 0; n < count; ++n) batch.push_back(make_record(check));
  return batch;
}

Moment Trial::give_up() const {
  return steady_clock::now() + target_.deadline + kGrace;
}

Attempt Trial::finish(Delivering& delivering, Moment deadline) {
  Attempt attempt = delivering.finish(deadline, options_.stop);
  for (std::size_t place = 0; place < delivering.batch().size(); ++place) {
    if (attempt.accepted(place)) confirmed_.insert(delivering.batch()[place]);
  }
  return attempt;
}

Attempt Trial::deliver(const std::shared_ptr<Target>& target, const TrialBatch& batch) {
  Delivering delivering(target, batch);
  return finish(delivering, give_up());
}

Carried Trial::carry(const std::shared_ptr<Target>& target, const TrialBatch& batch) {
  Carried carried;
  carried.accepted.resize(batch.size());
  const Moment patience = steady_clock::now() + options_.patience;
  Nanoseconds wait = kFirstPause;
  while (!carried.all()) {
    TrialBatch left;
    std::vector<std::size_t> places;
    for (std::size_t place = 0; place < batch.size(); ++place) {
      if (carried.accepted[place]) continue;
      left.push_back(batch[place]);
      places.push_back(place);
    }
    const Attempt attempt = deliver(target, left);
    std::optional<Nanoseconds> asked;
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (attempt.accepted(i)) carried.accepted[places[i]] = true;
      if (attempt.accepted(i) && attempt.outcomes[i]->kind == OutcomeKind::duplicate) ++carried.duplicates;
      if (attempt.rejected(i)) carried.rejected = true;
      if (attempt.outcomes[i]) asked = std::max(asked, attempt.outcomes[i]->retry_after);
    }
    carried.hung = !attempt.returned;
    carried.broke_promise = attempt.broke_promise;
    if (carried.all()) return carried;
    carried.why = why_not(attempt);
    const Nanoseconds left_of_it = patience - steady_clock::now();
    if (carried.broke_promise || carried.rejected || carried.hung || over() || left_of_it <= Nanoseconds(0))
      return carried;
    pause(std::min(std::max<Nanoseconds>(asked.value_or(wait), kFirstPause), left_of_it));
    wait = std::min<Nanoseconds>(wait * 2, kLongestPause);
  }
  return carried;
}

void Trial::go_blind(const std::string& why) {
  readback_.reset();
  target_.to_see = why;
}

template <typename Answer>
Result<Answer> Trial::ask(std::function<Result<Answer>()> question) {
  if (readback_hangs_) return no_answer();
  const auto answer = std::make_shared<std::optional<Result<Answer>>>();
  auto call = BoundedCall::start([answer, question = std::move(question)] { *answer = question(); });
  readback_hangs_ = call && !call->wait_until(steady_clock::now() + kLookLimit);
  if (!call || readback_hangs_) return no_answer();
  return **std::move(answer);
}

Result<std::vector<Held>> Trial::look(const TrialBatch& batch) {
  auto held = ask<std::vector<Held>>([readback = readback_, batch] { return readback->look(deliveries_of(batch)); });
  if (held.ok() && held->size() != batch.size())
    return Error{ErrorKind::unavailable, "the read-back does not answer for each record"};
  return held;
}

Result<void> Trial::remove(const TrialBatch& batch) {
  return ask<void>([readback = readback_, batch] { return readback->remove(deliveries_of(batch)); });
}

// What was confirmed should be there at once; where it comes later, that is noted.
Result<std::vector<Held>> Trial::look_until_there(const TrialBatch& batch) {
  const Moment began = steady_clock::now();
  for (bool late = false;; late = true) {
    auto held = look(batch);
    if (!held.ok()) return held;
    const bool there = std::all_of(held->begin(), held->end(), [](const Held& one) { return one.copies > 0; });
    const Nanoseconds waited = steady_clock::now() - began;
    if (there && late) seen_late_ = std::max(seen_late_, waited);
    if (there || waited >= options_.patience || over()) return held;
    pause(kLook);
  }
}

Judgement Trial::judge(const TrialBatch& batch, const std::string& passed) {
  if (!sees()) {
    std::string reason = passed + ", by its own word: what it stores cannot be seen";
    if (!target_.to_see.empty()) reason += "; " + target_.to_see;
    return {Proof::conditional, std::move(reason)};
  }
  const auto held = look_until_there(batch);
  if (!held.ok()) return {Proof::unproven, "what it holds could not be asked: " + held.error().text};
  for (const Held& one : *held) {
    if (one.copies == 0 && over()) return {Proof::unproven, "there was no more time to look for what it confirmed"};
    if (one.copies == 0) return {Proof::failed, "it confirmed a record that it does not hold"};
    if (one.copies > 1) return {Proof::failed, fmt::format("it holds {} copies of one record", one.copies)};
    if (!one.as_sent) return {Proof::failed, "what it holds of a record is not what was sent"};
  }
  return {Proof::passed, passed};
}

bool Trial::over() const {
  return options_.stop.stop_requested() || steady_clock::now() >= end_;
}

void Trial::pause(Nanoseconds time) const {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  const Nanoseconds left = std::max(Nanoseconds(0), std::min<Nanoseconds>(time, end_ - steady_clock::now()));
  (void)never.wait_for(lock, options_.stop, left, [] { return false; });
}

Judgement judge_untaken(const Trial& trial, const Carried& carried) {
  if (carried.hung) return {Proof::failed, "a delivery did not return within its deadline"};
  if (carried.broke_promise) return {Proof::failed, "it did not report each record once"};
  if (carried.rejected) return {Proof::failed, carried.why};
  if (trial.over()) return {Proof::unproven, "there was no more time"};
  return {Proof::unproven, "not taken: " + carried.why};
}

}  // namespace holdfast
