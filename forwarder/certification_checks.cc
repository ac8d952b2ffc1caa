#include <fmt/format.h>

#include <algorithm>

#include "forwarder/certification_checks.h"

namespace holdfast {
namespace {

constexpr std::size_t kAtOnce = 4;        // deliveries of one record
constexpr std::size_t kRoundsAtOnce = 3;  // each with a record of its own: a race is not lost at the first try
constexpr std::size_t kInOrder = 16;      // records of the window whose order is looked at
constexpr int kTriesInOrder = 3;          // of that window: one that was cut has no order
constexpr std::size_t kLookedAtOnce = 64;
constexpr std::size_t kFiller = 60'000;  // a large record that every upstream takes
// Characters of two, three and four bytes, and what JSON escapes.
constexpr const char* kText = "\xc3\xa4\xe2\x82\xac\xf0\x9f\x9a\x9a \\\" \\\\ \\n \\u0001 '%;--";

std::string also_recognised(std::size_t duplicates) {
  return duplicates == 0 ? "" : ", and it says that it had it";
}

Judgement check_content(Trial& trial) {
  if (trial.options().payload) return {Proof::not_applicable, "the payload was given"};
  const TrialBatch batch{trial.make_record("content", 0, kText), trial.make_record("content", kFiller)};
  const Carried carried = trial.carry(trial.make_target(), batch);
  if (!carried.all()) return judge_untaken(trial, carried);
  return trial.judge(batch, "text of every kind and a payload of 60 kB arrive as they were sent");
}

// Looked at each time: one that a repeat takes away is there again after the next.
Judgement check_repeat(Trial& trial) {
  const TrialBatch batch = trial.make_records("repeat", 1);
  const auto target = trial.make_target();
  std::size_t duplicates = 0;
  Judgement judged;
  for (const auto& by : {target, target, trial.make_target()}) {
    const Carried carried = trial.carry(by, batch);
    if (!carried.all()) return judge_untaken(trial, carried);
    duplicates += carried.duplicates;
    judged = trial.judge(batch, "sent three times, by two processes, one copy" + also_recognised(duplicates));
    if (judged.verdict == Proof::failed) return judged;
  }
  return judged;
}

// All begin before any is waited for. What is not taken then (it is being stored, says one that knows) is tried again.
Judgement check_concurrent(Trial& trial) {
  TrialBatch all;
  std::vector<std::shared_ptr<Target>> targets;
  for (std::size_t n = 0; n < kAtOnce; ++n) targets.push_back(trial.make_target());
  // So that what follows meets connections that are there already.
  for (const auto& target : targets) {
    const TrialBatch first = trial.make_records("concurrent", 1);
    const Carried carried = trial.carry(target, first);
    if (!carried.all()) return judge_untaken(trial, carried);
    all.push_back(first.front());
  }
  for (std::size_t round = 0; round < kRoundsAtOnce; ++round) {
    const TrialBatch batch = trial.make_records("concurrent", 1);
    all.push_back(batch.front());
    std::vector<std::unique_ptr<Delivering>> deliveries;
    for (const auto& target : targets) deliveries.push_back(std::make_unique<Delivering>(target, batch));
    const Moment deadline = trial.give_up();
    for (std::size_t n = 0; n < deliveries.size(); ++n) {
      const Attempt attempt = trial.finish(*deliveries[n], deadline);
      if (!attempt.returned) return {Proof::failed, "a delivery did not return within its deadline"};
      if (attempt.broke_promise) return {Proof::failed, "it did not report each record once"};
      if (attempt.rejected(0)) return {Proof::failed, "it rejects a record that it is given twice at once"};
      if (attempt.accepted(0)) continue;
      const Carried carried = trial.carry(targets[n], batch);
      if (!carried.all()) return judge_untaken(trial, carried);
    }
  }
  return trial.judge(all, fmt::format("sent {} times at the same moment, one copy each", kAtOnce));
}

Judgement check_batch(Trial& trial) {
  const auto target = trial.make_target();
  const TrialBatch earlier = trial.make_records("batch", 1);
  const Carried first = trial.carry(target, earlier);
  if (!first.all()) return judge_untaken(trial, first);
  TrialBatch batch = trial.make_records("batch", 4);
  batch.insert(batch.begin() + 2, earlier.front());
  const Carried carried = trial.carry(target, batch);
  if (!carried.all()) return judge_untaken(trial, carried);
  return trial.judge(batch, "five at once, one of them sent before: one copy of each");
}

bool ascending(const std::vector<Held>& held) {
  return std::is_sorted(held.begin(), held.end(), [](const Held& a, const Held& b) { return a.position < b.position; });
}

Judgement check_order(Trial& trial) {
  if (!trial.about().keeps_order) return {Proof::not_applicable, "no order is promised"};
  const auto target = trial.make_target();
  for (int tries = 0; tries < kTriesInOrder && !trial.over(); ++tries) {
    const TrialBatch batch = trial.make_records("order", kInOrder);
    const Attempt attempt = trial.deliver(target, batch);
    if (!attempt.returned) return {Proof::failed, "a delivery did not return within its deadline"};
    if (attempt.count_accepted() < batch.size()) continue;
    const Judgement stored = trial.judge(batch, "");
    if (!trial.sees()) return {Proof::conditional, "what it stores cannot be seen, nor in which order"};
    if (stored.verdict != Proof::passed) return stored;
    const auto held = trial.look(batch);
    if (!held.ok()) return {Proof::unproven, "what it holds could not be asked: " + held.error().text};
    const bool told = std::all_of(held->begin(), held->end(), [](const Held& one) { return one.position.has_value(); });
    if (!told) return {Proof::conditional, "in which order it keeps records cannot be seen"};
    if (!ascending(*held)) return {Proof::failed, "it keeps records in another order than they were sent in"};
    return {Proof::passed, fmt::format("{} records are kept in the order in which they were sent", kInOrder)};
  }
  return {Proof::unproven, "no window was taken whole"};
}

constexpr Check kChecks[] = {{"content", check_content},
                             {"repeat", check_repeat},
                             {"concurrent", check_concurrent},
                             {"batch", check_batch},
                             {"order", check_order}};

}  // namespace

std::span<const Check> stored_checks() {
  return kChecks;
}

// Late copies are found here: of a request that was on its way all the time, or that the upstream tried again itself.
Judgement check_in_the_end(Trial& trial) {
  const TrialBatch confirmed = trial.confirmed();
  const std::string passed =
      fmt::format("of all {} records that it confirmed it holds one copy each", confirmed.size());
  for (std::size_t begun = 0; begun < confirmed.size(); begun += kLookedAtOnce) {
    const auto from = confirmed.begin() + static_cast<std::ptrdiff_t>(begun);
    const std::size_t count = std::min(kLookedAtOnce, confirmed.size() - begun);
    const Judgement judged = trial.judge({from, from + static_cast<std::ptrdiff_t>(count)}, passed);
    if (judged.verdict != Proof::passed) return judged;
  }
  const auto late = std::chrono::duration_cast<std::chrono::milliseconds>(trial.seen_late());
  if (late.count() == 0) return {Proof::passed, passed};
  return {
      Proof::conditional,
      fmt::format("a record that it had confirmed could be seen only {} ms later: safe if it is stored before it is "
                  "confirmed, and only shown late",
                  late.count())};
}

// The read-back is believed once it has said that a record is not there which was never sent.
Judgement check_delivery(Trial& trial) {
  const TrialBatch batch = trial.make_records("delivery", 2);
  const TrialBatch sent{batch[0]};
  const TrialBatch unsent{batch[1]};
  if (trial.sees()) {
    const auto held = trial.look(batch);
    // Who may send need not be allowed to look.
    if (!held.ok()) trial.go_blind(held.error().text);
    if (held.ok() && (*held)[0].copies + (*held)[1].copies > 0)
      return {Proof::unproven, "the read-back sees records that were never sent"};
  }
  const Carried carried = trial.carry(trial.make_target(), sent);
  if (!carried.all()) return judge_untaken(trial, carried);
  const Judgement judged = trial.judge(sent, "confirmed, and there, as it was sent");
  if (judged.verdict != Proof::passed) return judged;
  const auto held = trial.look(unsent);
  if (held.ok() && held->front().copies > 0) return {Proof::unproven, "the read-back takes one record for another"};
  return judged;
}

}  // namespace holdfast
