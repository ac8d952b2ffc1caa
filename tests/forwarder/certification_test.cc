// Certification, over an upstream behind a real socket that is safe, or unsafe in one way each: what is unsafe must
// fail, and at the property that it breaks.
#include "forwarder/certification.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "tests/support/patience.h"
#include "tests/support/wire_upstream.h"

namespace holdfast {

std::ostream& operator<<(std::ostream& out, const CertificationReport& report) {
  out << safety_text(report.safety) << '\n';
  for (const Property& one : report.properties)
    out << "  " << one.name << ": " << proof_text(one.verdict) << ", " << one.reason << '\n';
  return out;
}

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const Property& property(const CertificationReport& report, std::string_view name) {
  static const Property kNone{"none", Proof::unproven, "not tried"};
  const auto found = std::find_if(report.properties.begin(), report.properties.end(),
                                  [&](const Property& one) { return one.name == name; });
  return found == report.properties.end() ? kNone : *found;
}

std::set<std::string> with(const CertificationReport& report, Proof verdict) {
  std::set<std::string> names;
  for (const Property& one : report.properties) {
    if (one.verdict == verdict) names.insert(one.name);
  }
  return names;
}

CertificationOptions options() {
  CertificationOptions options;
  options.site = "truck-07";
  options.run = "0f1e2d3c";
  options.subject = "telemetry.certify";
  options.limit = seconds(60);
  options.patience = milliseconds(500);
  return options;
}

CertifiedTarget about(WireUpstream& upstream, WireTargetManner manner = {}) {
  CertifiedTarget target;
  target.make = [place = upstream.place(), manner](const std::string& connect_to) {
    return std::make_unique<WireTarget>(connect_to.empty() ? place : connect_to, manner);
  };
  target.upstream_address = upstream.place();
  target.readback = upstream.readback();
  target.keeps_order = true;
  target.deadline = 2 * manner.deadline + milliseconds(100);  // connect and answer
  return target;
}

struct Case {
  std::string name;
  UpstreamManner upstream;
  WireTargetManner target;
  std::set<std::string> fails;  // at these properties, all of them, and at no other
};

std::ostream& operator<<(std::ostream& out, const Case& one) {
  return out << one.name;
}

class UnsafeEndpoint : public testing::TestWithParam<Case> {};

TEST_P(UnsafeEndpoint, Fails_AtThePropertyThatItBreaks) {
  WireUpstream upstream(GetParam().upstream);
  const CertificationReport report = certify(about(upstream, GetParam().target), options());
  EXPECT_EQ(report.safety, Safety::not_safe) << report;
  EXPECT_EQ(with(report, Proof::failed), GetParam().fails) << report;
}

std::vector<Case> unsafe_cases() {
  std::vector<Case> cases;
  const auto upstream = [&](std::string name, bool UpstreamManner::*how, std::set<std::string> fails) {
    Case one{std::move(name), {}, {}, std::move(fails)};
    one.upstream.*how = true;
    cases.push_back(std::move(one));
  };
  const auto target = [&](std::string name, bool WireTargetManner::*how, std::set<std::string> fails) {
    Case one{std::move(name), {}, {}, std::move(fails)};
    one.target.*how = true;
    cases.push_back(std::move(one));
  };
  using U = UpstreamManner;
  using T = WireTargetManner;
  upstream("IgnoresTheKey", &U::ignores_key,
           {"repeat", "concurrent", "batch", "lost_answer", "slow_answer", "in_the_end"});
  upstream("LooksThenStores", &U::looks_then_stores, {"concurrent", "in_the_end"});
  upstream("ConfirmsAndLoses", &U::confirms_and_loses, {"delivery"});
  upstream("LosesRepeats", &U::loses_repeats,
           {"repeat", "concurrent", "batch", "lost_answer", "slow_answer", "in_the_end"});
  upstream("RejectsRepeats", &U::rejects_repeats, {"repeat", "concurrent", "batch", "lost_answer", "slow_answer"});
  upstream("Truncates", &U::truncates, {"content", "in_the_end"});
  upstream("RecodesText", &U::recodes_text, {"content", "in_the_end"});
  upstream("LastFirst", &U::last_first, {"order"});
  upstream("KnowsItsConnectionOnly", &U::per_connection,
           {"repeat", "concurrent", "lost_answer", "slow_answer", "in_the_end"});
  upstream("RejectsEverything", &U::rejects_all, {"delivery"});
  target("BelievesSilence", &T::believes_silence, {"slow_answer"});
  target("TakesCutsForRefusals", &T::takes_cuts_for_refusals, {"lost_answer", "unreachable", "silence"});
  target("Hangs", &T::hangs, {"slow_answer", "silence"});
  target("CannotBeInterrupted", &T::cannot_be_interrupted, {"slow_answer", "silence"});
  target("ReportsTwice", &T::reports_twice, {"delivery"});
  target("SaysNothing", &T::says_nothing, {"lost_answer", "unreachable", "slow_answer", "silence"});
  // Between the record and its repeat lies the deadline: so long must a key be known.
  Case forgetful{"ForgetsTheKey", {}, {}, {"slow_answer", "in_the_end"}};
  forgetful.upstream.forgets_after = seconds(1);
  forgetful.target.deadline = milliseconds(1500);
  cases.push_back(std::move(forgetful));
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Certification, UnsafeEndpoint, testing::ValuesIn(unsafe_cases()),
                         [](const auto& chosen) { return chosen.param.name; });

TEST(Certification, ASafeUpstream_IsSafe_AndIsLeftAsItWas) {
  WireUpstream upstream;
  const CertificationReport report = certify(about(upstream), options());
  EXPECT_EQ(report.safety, Safety::safe) << report;
  for (const char* name : {"delivery", "content", "repeat", "concurrent", "batch", "order", "lost_answer",
                           "unreachable", "slow_answer", "silence", "in_the_end", "removal"})
    EXPECT_EQ(property(report, name).verdict, Proof::passed) << name << '\n' << report;
  EXPECT_NE(property(report, "lost_answer").reason.find("2 answers"), std::string::npos) << "greeting and answer";
  EXPECT_NE(property(report, "lost_answer").reason.find("1 stored it"), std::string::npos) << report;
  EXPECT_EQ(upstream.copies(), 0u);
  EXPECT_FALSE(report.may_be_left);
  EXPECT_GT(report.records, 20u);
}

TEST(Certification, WithKeep_TheRecordsStay_AndNameTheRun) {
  WireUpstream upstream;
  CertificationOptions kept = options();
  kept.keep = true;
  const CertificationReport report = certify(about(upstream), kept);
  EXPECT_EQ(report.safety, Safety::safe) << report;
  EXPECT_GT(upstream.copies(), 20u);
  EXPECT_TRUE(report.may_be_left);
  EXPECT_TRUE(remove_certification_records(about(upstream), kept).ok());
  EXPECT_EQ(upstream.copies(), 0u);
}

TEST(Certification, OfWhatCannotBeSeen_NothingIsCalledProven) {
  WireUpstream upstream;
  CertifiedTarget blind = about(upstream);
  blind.readback = nullptr;
  blind.to_see = "give it a verify_url";
  const CertificationReport report = certify(std::move(blind), options());
  EXPECT_EQ(report.safety, Safety::safe_with_conditions) << report;
  EXPECT_EQ(property(report, "repeat").verdict, Proof::conditional);
  EXPECT_NE(property(report, "repeat").reason.find("verify_url"), std::string::npos) << report;
  EXPECT_TRUE(report.may_be_left);
  EXPECT_EQ(with(report, Proof::passed), std::set<std::string>{});
}

TEST(Certification, ARecordThatIsSeenLate_IsACondition) {
  UpstreamManner manner;
  manner.shows_after = milliseconds(120);
  WireUpstream upstream(manner);
  const CertificationReport report = certify(about(upstream), options());
  EXPECT_EQ(report.safety, Safety::safe_with_conditions) << report;
  EXPECT_EQ(property(report, "in_the_end").verdict, Proof::conditional) << report;
}

TEST(Certification, AnUpstreamThatIsNotThere_IsUnproven_AndNothingElseIsTried) {
  std::string place;
  {
    const WireUpstream gone;
    place = gone.place();
  }
  WireUpstream other;
  CertifiedTarget target = about(other);
  target.make = [place](const std::string&) { return std::make_unique<WireTarget>(place, WireTargetManner{}); };
  const CertificationReport report = certify(std::move(target), options());
  EXPECT_EQ(report.safety, Safety::unproven) << report;
  EXPECT_EQ(report.properties.size(), 2u) << report;
  EXPECT_NE(property(report, "delivery").reason.find("unreachable"), std::string::npos) << report;
}

TEST(Certification, AnUpstreamThatTakesNothingNow_IsUnproven) {
  UpstreamManner manner;
  manner.busy = true;
  WireUpstream upstream(manner);
  const CertificationReport report = certify(about(upstream), options());
  EXPECT_EQ(report.safety, Safety::unproven) << report;
  EXPECT_NE(property(report, "delivery").reason.find("in_progress"), std::string::npos) << report;
}

TEST(Certification, WithoutAConnection_FaultsDoNotApply) {
  WireUpstream upstream;
  CertifiedTarget local = about(upstream);
  local.local = true;
  local.keeps_order = false;
  const CertificationReport report = certify(std::move(local), options());
  EXPECT_EQ(report.safety, Safety::safe) << report;
  EXPECT_EQ(with(report, Proof::not_applicable),
            (std::set<std::string>{"order", "lost_answer", "unreachable", "slow_answer", "silence"}));
}

TEST(Certification, WhatCannotBeLedThroughAProxy_IsACondition) {
  WireUpstream upstream;
  CertifiedTarget target = about(upstream);
  target.upstream_address.clear();
  const CertificationReport report = certify(std::move(target), options());
  EXPECT_EQ(report.safety, Safety::safe_with_conditions) << report;
  EXPECT_EQ(property(report, "lost_answer").verdict, Proof::conditional);
}

TEST(Certification, WhatTheUpstreamSaysOfItself_IsACondition) {
  WireUpstream upstream;
  CertifiedTarget target = about(upstream);
  target.conditions = [] { return std::vector<Condition>{{"replicas", "one machine holds it"}}; };
  const CertificationReport report = certify(std::move(target), options());
  EXPECT_EQ(report.safety, Safety::safe_with_conditions) << report;
  EXPECT_EQ(property(report, "replicas").verdict, Proof::conditional) << report;
}

TEST(Certification, AProvokedRefusal_MustBeOne) {
  WireUpstream upstream;
  CertifiedTarget target = about(upstream);
  target.provocations.push_back({"oversize", [](DueRecord&) {}, OutcomeKind::rejected, "is refused"});
  const CertificationReport report = certify(std::move(target), options());
  EXPECT_EQ(with(report, Proof::failed), std::set<std::string>{"oversize"}) << report;
}

class LyingReadback : public Readback {
 public:
  Result<std::vector<Held>> look(std::span<const Delivery> records) override {
    return std::vector<Held>(records.size(), Held{1, true, {}});
  }
  Result<void> remove(std::span<const Delivery>) override { return {}; }
};

TEST(Certification, AReadBackThatSeesWhatWasNeverSent_IsNotBelieved) {
  UpstreamManner manner;
  manner.confirms_and_loses = true;
  WireUpstream upstream(manner);
  CertifiedTarget target = about(upstream);
  target.readback = std::make_unique<LyingReadback>();
  const CertificationReport report = certify(std::move(target), options());
  EXPECT_EQ(report.safety, Safety::unproven) << report;
  EXPECT_NE(property(report, "delivery").reason.find("never sent"), std::string::npos) << report;
}

TEST(Certification, TheTimeIsBounded_AndWhatWasNotTriedIsUnproven) {
  WireUpstream upstream;
  CertificationOptions hurried = options();
  hurried.limit = milliseconds(1);
  const CertificationReport report = certify(about(upstream), hurried);
  EXPECT_EQ(report.safety, Safety::unproven) << report;
  EXPECT_NE(property(report, "repeat").verdict, Proof::passed);
  EXPECT_EQ(upstream.copies(), 0u) << "what was sent is removed all the same";
}

TEST(Certification, Stopped_ItReturnsSoon_AndRemovesWhatItSent) {
  WireUpstream upstream;
  std::stop_source stop;
  CertificationOptions stopped = options();
  stopped.stop = stop.get_token();
  stopped.on_begin = [&](std::string_view name) {
    if (name == "concurrent") stop.request_stop();
  };
  const CertificationReport report = certify(about(upstream), stopped);
  EXPECT_EQ(report.safety, Safety::unproven) << report;
  EXPECT_EQ(property(report, "lost_answer").verdict, Proof::unproven);
  EXPECT_EQ(property(report, "removal").verdict, Proof::passed) << report;
  EXPECT_EQ(upstream.copies(), 0u);
}

TEST(Certification, StoppedInADeliveryThatWaits_ItReturnsSoon_AndBlamesNobody) {
  WireUpstream upstream;
  std::stop_source stop;
  CertificationOptions stopped = options();
  stopped.stop = stop.get_token();
  std::jthread stopping;
  stopped.on_begin = [&](std::string_view name) {
    if (name != "silence") return;
    stopping = std::jthread([&] {
      EXPECT_TRUE(stays([] { return true; }, milliseconds(300)));
      stop.request_stop();
    });
  };
  WireTargetManner patient;
  patient.deadline = seconds(3);
  CertifiedTarget target = about(upstream, patient);
  const auto began = std::chrono::steady_clock::now();
  const CertificationReport report = certify(std::move(target), stopped);
  EXPECT_LT(std::chrono::steady_clock::now() - began, seconds(20));
  EXPECT_EQ(property(report, "silence").verdict, Proof::unproven) << report;
  EXPECT_EQ(upstream.copies(), 0u);
}

class FailingReadback : public Readback {
 public:
  FailingReadback(std::unique_ptr<Readback> of, std::atomic<bool>& fails) : of_(std::move(of)), fails_(fails) {}
  Result<std::vector<Held>> look(std::span<const Delivery> records) override {
    if (fails_) return Error{ErrorKind::unavailable, "it is not allowed"};
    return of_->look(records);
  }
  Result<void> remove(std::span<const Delivery> records) override { return of_->remove(records); }

 private:
  const std::unique_ptr<Readback> of_;
  std::atomic<bool>& fails_;
};

TEST(Certification, WhoMaySendButNotLook_IsToldSo) {
  WireUpstream upstream;
  std::atomic<bool> fails = true;
  CertifiedTarget target = about(upstream);
  target.readback = std::make_unique<FailingReadback>(upstream.readback(), fails);
  const CertificationReport report = certify(std::move(target), options());
  EXPECT_EQ(report.safety, Safety::safe_with_conditions) << report;
  EXPECT_NE(property(report, "repeat").reason.find("it is not allowed"), std::string::npos) << report;
}

TEST(Certification, AReadBackThatFailsInTheMiddle_LeavesThingsUnproven) {
  WireUpstream upstream;
  std::atomic<bool> fails = false;
  CertifiedTarget target = about(upstream);
  target.readback = std::make_unique<FailingReadback>(upstream.readback(), fails);
  CertificationOptions watched = options();
  watched.on_begin = [&](std::string_view name) { fails = name == "batch"; };
  const CertificationReport report = certify(std::move(target), watched);
  EXPECT_EQ(report.safety, Safety::unproven) << report;
  EXPECT_EQ(with(report, Proof::unproven), std::set<std::string>{"batch"}) << report;
}

TEST(Certification, ATargetThatGoesAroundTheProxy_IsNotBlamed) {
  WireUpstream upstream;
  CertifiedTarget target = about(upstream);
  target.make = [place = upstream.place()](const std::string&) {
    return std::make_unique<WireTarget>(place, WireTargetManner{});
  };
  const CertificationReport report = certify(std::move(target), options());
  EXPECT_EQ(report.safety, Safety::safe_with_conditions) << report;
  EXPECT_EQ(with(report, Proof::conditional),
            (std::set<std::string>{"lost_answer", "unreachable", "silence", "slow_answer"}));
}

TEST(Certification, AGivenPayload_IsSentAsItIs) {
  WireUpstream upstream;
  CertificationOptions given = options();
  const std::string payload = R"({"order":{"id":1}})";
  given.payload = Bytes(payload.begin(), payload.end());
  const CertificationReport report = certify(about(upstream), given);
  EXPECT_EQ(report.safety, Safety::safe) << report;
  EXPECT_EQ(property(report, "content").verdict, Proof::not_applicable);
}

TEST(SafetyOf, TheWorstDecides) {
  const auto of = [](std::vector<Proof> verdicts) {
    std::vector<Property> properties;
    for (const Proof verdict : verdicts) properties.push_back({"p", verdict, ""});
    return safety_of(properties);
  };
  EXPECT_EQ(of({}), Safety::unproven);
  EXPECT_EQ(of({Proof::not_applicable}), Safety::unproven);
  EXPECT_EQ(of({Proof::passed, Proof::not_applicable}), Safety::safe);
  EXPECT_EQ(of({Proof::passed, Proof::conditional}), Safety::safe_with_conditions);
  EXPECT_EQ(of({Proof::passed, Proof::conditional, Proof::unproven}), Safety::unproven);
  EXPECT_EQ(of({Proof::passed, Proof::unproven, Proof::failed}), Safety::not_safe);
}

}  // namespace
}  // namespace holdfast
