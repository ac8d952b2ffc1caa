#include <fmt/format.h>

#include "forwarder/certification_checks.h"
#include "forwarder/fault_proxy.h"

namespace holdfast {
namespace {

constexpr auto kResolveLimit = std::chrono::seconds(10);
constexpr auto kBeyondDeadline = std::chrono::seconds(2);  // how much later than the deadline a slow answer comes
constexpr std::uint64_t kMostAnswers = 24;                 // of one delivery, its connect included

// A target that reaches its upstream through a proxy; or why there is none.
struct Led {
  std::unique_ptr<FaultProxy> proxy;
  Judgement without;

  std::shared_ptr<Target> make_target(const Trial& trial) const { return trial.make_target(proxy->address()); }
};

Led lead(const Trial& trial) {
  const CertifiedTarget& about = trial.about();
  if (about.local) return {nullptr, {Proof::not_applicable, "there is no connection that could fail"}};
  if (about.upstream_address.empty())
    return {nullptr, {Proof::conditional, "its connection cannot be led through a proxy, so none was cut"}};
  auto proxy = FaultProxy::start(about.upstream_address, kResolveLimit);
  if (!proxy.ok()) return {nullptr, {Proof::unproven, "it cannot be reached through a proxy: " + proxy.error().text}};
  return {*std::move(proxy), {}};
}

// A delivery that was interrupted for it shows nothing.
Judgement stopped() {
  return {Proof::unproven, "it was stopped"};
}

// What one delivery may not say while nothing of its answer can have come; nothing: it said nothing of the kind.
std::optional<Judgement> judge_unanswered(const Attempt& attempt) {
  if (!attempt.returned)
    return Judgement{Proof::failed, attempt.usable ? "a delivery came back only when it was interrupted"
                                                   : "a delivery did not return, interrupted either"};
  if (attempt.broke_promise) return Judgement{Proof::failed, "it did not report each record once"};
  if (attempt.count_accepted() > 0)
    return Judgement{Proof::failed, "it called a record delivered of which no answer had come"};
  if (attempt.rejected(0)) return Judgement{Proof::failed, "it takes a bad link for a rejection of the record"};
  return std::nullopt;
}

// Under a fault that lets no answer through: nothing is confirmed. Without it: the same records are taken, once.
Judgement withstand(Trial& trial, Led& led, const std::shared_ptr<Target>& target, Fault fault, const char* check,
                    const std::string& passed) {
  const TrialBatch batch = trial.make_records(check, 1);
  led.proxy->set(fault);
  const Attempt attempt = trial.deliver(target, batch);
  led.proxy->set({});
  if (trial.options().stop.stop_requested()) return stopped();
  if (led.proxy->counts().accepted == 0) return {Proof::conditional, "its connections do not go through the proxy"};
  if (auto bad = judge_unanswered(attempt)) return *std::move(bad);
  const Carried carried = trial.carry(target, batch);
  if (!carried.all()) return judge_untaken(trial, carried);
  return trial.judge(batch, passed);
}

// --- A connection that is cut

// What has been seen of the points at which a delivery was cut.
struct Cuts {
  TrialBatch batch;
  std::uint64_t points = 0;
  std::uint64_t stored = 0;  // the upstream had the record then, though nobody was told
};

// At the n-th answer since the target was made. False: there is none so late; the delivery was whole.
std::optional<Judgement> cut_at(Trial& trial, const Led& led, std::uint64_t answer, Cuts& cuts, bool& was_cut) {
  const auto target = led.make_target(trial);
  const TrialBatch batch = trial.make_records("lost_answer", 1);
  cuts.batch.push_back(batch.front());
  const std::uint64_t before = led.proxy->counts().cut;
  led.proxy->set({FaultKind::cut, answer, {}});
  const Attempt attempt = trial.deliver(target, batch);
  was_cut = led.proxy->counts().cut > before;
  led.proxy->set({});
  if (trial.options().stop.stop_requested()) return stopped();
  if (!attempt.returned) return Judgement{Proof::failed, "a delivery whose connection was cut did not return"};
  if (attempt.broke_promise) return Judgement{Proof::failed, "it did not report each record once"};
  if (attempt.rejected(0)) return Judgement{Proof::failed, "it takes a cut connection for a rejection of the record"};
  cuts.points += was_cut ? 1 : 0;
  const bool unanswered = was_cut && !attempt.accepted(0);
  if (unanswered && trial.sees()) {
    const auto held = trial.look(batch);
    if (held.ok() && held->front().copies > 0) ++cuts.stored;
  }
  const Carried carried = trial.carry(target, batch);
  if (!carried.all()) return judge_untaken(trial, carried);
  if (unanswered && !trial.sees() && carried.duplicates > 0) ++cuts.stored;
  return std::nullopt;
}

Judgement check_lost_answer(Trial& trial) {
  const Led led = lead(trial);
  if (!led.proxy) return led.without;
  Cuts cuts;
  bool was_cut = true;
  for (std::uint64_t answer = 1; was_cut && answer <= kMostAnswers; ++answer) {
    if (trial.over()) return {Proof::unproven, "there was no more time"};
    if (auto bad = cut_at(trial, led, answer, cuts, was_cut)) return *std::move(bad);
  }
  if (cuts.points == 0) return {Proof::conditional, "nothing that it answers could be withheld"};
  const Judgement judged =
      trial.judge(cuts.batch, fmt::format("cut before each of {} answers and sent again: one copy each; {} stored it "
                                          "with the answer lost",
                                          cuts.points, cuts.stored));
  if (judged.verdict == Proof::passed && cuts.stored == 0)
    return {Proof::conditional,
            fmt::format("cut before each of {} answers, but it never had the record by then", cuts.points)};
  return judged;
}

// --- Waits

Judgement check_slow_answer(Trial& trial) {
  Led led = lead(trial);
  if (!led.proxy) return led.without;
  const auto target = led.make_target(trial);
  const Carried warm = trial.carry(target, trial.make_records("slow_answer", 1));
  if (!warm.all()) return judge_untaken(trial, warm);
  const Fault slow{FaultKind::delay, 1, trial.about().deadline + kBeyondDeadline};
  return withstand(trial, led, target, slow, "slow_answer",
                   "an answer beyond the deadline confirms nothing; sent again, one copy");
}

Judgement check_silence(Trial& trial) {
  Led led = lead(trial);
  if (!led.proxy) return led.without;
  return withstand(trial, led, led.make_target(trial), {FaultKind::silence, 1, {}}, "silence",
                   "a peer that says nothing is given up in time; sent again, one copy");
}

Judgement check_unreachable(Trial& trial) {
  Led led = lead(trial);
  if (!led.proxy) return led.without;
  return withstand(trial, led, led.make_target(trial), {FaultKind::refuse, 1, {}}, "unreachable",
                   "no connection confirms nothing and rejects nothing; sent again, one copy");
}

constexpr Check kChecks[] = {{"lost_answer", check_lost_answer},
                             {"unreachable", check_unreachable},
                             {"slow_answer", check_slow_answer},
                             {"silence", check_silence}};

}  // namespace

std::span<const Check> fault_checks() {
  return kChecks;
}

}  // namespace holdfast
