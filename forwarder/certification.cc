#include "forwarder/certification.h"

#include <fmt/format.h>

#include <algorithm>

#include "forwarder/certification_checks.h"

namespace holdfast {
namespace {

constexpr std::size_t kRemovedAtOnce = 64;
// More than a run makes: what an earlier one may have left is removed by its number.
constexpr std::size_t kMostRecords = 256;

class Certification {
 public:
  Certification(CertifiedTarget target, const CertificationOptions& options)
      : trial_(std::move(target), options), options_(options) {}

  CertificationReport run() {
    begin("delivery");
    add("delivery", check_delivery(trial_));
    const Proof delivered = report_.properties.front().verdict;
    if (delivered == Proof::passed || delivered == Proof::conditional) {
      for (const Check& check : stored_checks()) try_out(check);
      for (const Check& check : fault_checks()) try_out(check);
      provoke();
      ask_conditions();
      try_out({"in_the_end", check_in_the_end});
    }
    remove();
    report_.records = trial_.made().size();
    report_.safety = safety_of(report_.properties);
    return std::move(report_);
  }

  // Only by their keys: they were made by another process.
  Result<void> remove_earlier() {
    (void)trial_.make_records("removal", kMostRecords);
    return remove_all();
  }

 private:
  void begin(std::string_view name) const {
    if (options_.on_begin) options_.on_begin(name);
  }
  void add(std::string name, Judgement judgement) {
    report_.properties.push_back({std::move(name), judgement.verdict, std::move(judgement.reason)});
  }

  void try_out(const Check& check) {
    if (trial_.over()) return add(check.name, {Proof::unproven, "there was no more time"});
    begin(check.name);
    add(check.name, check.run(trial_));
  }

  void provoke() {
    for (const Provocation& provocation : trial_.about().provocations) {
      if (trial_.over()) {
        add(provocation.name, {Proof::unproven, "there was no more time"});
        continue;
      }
      begin(provocation.name);
      add(provocation.name, judge(provocation));
    }
  }

  Judgement judge(const Provocation& provocation) {
    DueRecord altered = *trial_.make_record(provocation.name);
    provocation.alter(altered);
    const TrialBatch batch{std::make_shared<const DueRecord>(std::move(altered))};
    const Attempt attempt = trial_.deliver(trial_.make_target(), batch);
    if (!attempt.returned) return {Proof::failed, "a delivery did not return within its deadline"};
    if (attempt.accepted(0)) return {Proof::failed, "it called a record delivered that cannot be"};
    if (!attempt.outcomes[0]) return {Proof::unproven, "it said nothing of the record"};
    if (attempt.outcomes[0]->kind != provocation.expected)
      return {Proof::failed, "it sorts the record among what it is not"};
    return {Proof::passed, provocation.passed};
  }

  void ask_conditions() {
    if (!trial_.about().conditions || trial_.over()) return;
    begin("conditions");
    const auto conditions = trial_.about().conditions();
    if (!conditions.ok())
      return add("conditions", {Proof::unproven, "it could not be asked about itself: " + conditions.error().text});
    for (const Condition& condition : *conditions) add(condition.name, {Proof::conditional, condition.text});
  }

  void remove() {
    report_.may_be_left = true;
    if (options_.keep) return add("removal", {Proof::not_applicable, "its records were to be kept"});
    if (!trial_.sees())
      return add("removal",
                 {Proof::conditional, "what it has of them stays there: it can be neither seen nor removed"});
    begin("removal");
    const Result<void> removed = remove_all();
    if (!removed.ok())
      return add("removal", {Proof::conditional, "its records may be left there: " + removed.error().text});
    report_.may_be_left = false;
    add("removal", {Proof::passed, "its records were removed"});
  }

  Result<void> remove_all() {
    const TrialBatch& made = trial_.made();
    for (std::size_t begun = 0; begun < made.size(); begun += kRemovedAtOnce) {
      const auto from = made.begin() + static_cast<std::ptrdiff_t>(begun);
      const TrialBatch part(from, from + static_cast<std::ptrdiff_t>(std::min(kRemovedAtOnce, made.size() - begun)));
      HOLDFAST_TRY(trial_.remove(part));
      const auto held = trial_.look(part);
      if (!held.ok()) return held.error();
      const bool gone = std::all_of(held->begin(), held->end(), [](const Held& one) { return one.copies == 0; });
      if (!gone) return Error{ErrorKind::unavailable, "some are still there"};
    }
    return {};
  }

  Trial trial_;
  const CertificationOptions& options_;
  CertificationReport report_;
};

}  // namespace

std::string_view proof_text(Proof proof) {
  switch (proof) {
    case Proof::passed:
      return "passed";
    case Proof::conditional:
      return "conditional";
    case Proof::failed:
      return "failed";
    case Proof::unproven:
      return "unproven";
    case Proof::not_applicable:
      return "not_applicable";
  }
  return "";
}

std::string_view safety_text(Safety safety) {
  switch (safety) {
    case Safety::safe:
      return "safe";
    case Safety::safe_with_conditions:
      return "safe_with_conditions";
    case Safety::not_safe:
      return "not_safe";
    case Safety::unproven:
      return "unproven";
  }
  return "";
}

Safety safety_of(const std::vector<Property>& properties) {
  const auto any = [&](Proof proof) {
    return std::any_of(properties.begin(), properties.end(),
                       [&](const Property& property) { return property.verdict == proof; });
  };
  if (any(Proof::failed)) return Safety::not_safe;
  if (any(Proof::unproven)) return Safety::unproven;
  if (any(Proof::conditional)) return Safety::safe_with_conditions;
  return any(Proof::passed) ? Safety::safe : Safety::unproven;
}

CertificationReport certify(CertifiedTarget target, const CertificationOptions& options) {
  return Certification(std::move(target), options).run();
}

Result<void> remove_certification_records(CertifiedTarget target, const CertificationOptions& options) {
  if (!target.readback) return Error{ErrorKind::invalid, "what this target holds can be neither seen nor removed"};
  return Certification(std::move(target), options).remove_earlier();
}

}  // namespace holdfast
