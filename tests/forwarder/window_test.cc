// What one target is given, when, and what is made of its answers: without a spool and without a target.
#include "forwarder/window.h"

#include <gtest/gtest.h>

#include "tests/forwarder/window_model.h"
#include "tests/support/simulated_loss.h"

namespace holdfast {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using Sequences = std::vector<Sequence>;

const Error kBroken{ErrorKind::unavailable, "the connection broke"};

Outcome deliver(const DueRecord&) {
  return outcome(OutcomeKind::delivered);
}

// Delivers all but those of some sequences or subjects.
WindowModel::Answer except(std::set<Sequence> sequences, Outcome otherwise) {
  return [sequences, otherwise](const DueRecord& record) {
    return sequences.contains(record.sequence) ? otherwise : outcome(OutcomeKind::delivered);
  };
}
WindowModel::Answer except_lanes(std::set<std::string> subjects, Outcome otherwise) {
  return [subjects, otherwise](const DueRecord& record) {
    return subjects.contains(record.envelope.subject) ? otherwise : outcome(OutcomeKind::delivered);
  };
}
WindowModel::Answer always(Outcome answer) {
  return [answer](const DueRecord&) { return answer; };
}

TEST(Window, DeliversInOrder_AndSettlesWhatWasReported) {
  WindowModel model;
  for (int n = 0; n < 5; ++n) model.put("a");
  EXPECT_EQ(model.round(deliver), (Sequences{1, 2, 3, 4, 5}));
  EXPECT_EQ(model.settled.size(), 5U);
  EXPECT_EQ(model.window.status().records, 0U);
  EXPECT_EQ(model.window.status().fates.delivered, 5U);
  EXPECT_EQ(model.window.next(), Nanoseconds::max());
}

TEST(Window, SettlesBeforeTheFlightHasLanded) {
  WindowModel model;
  model.put("a");
  model.put("a");
  model.top_up();
  ASSERT_EQ(model.window.take(model.now).size(), 2U);
  model.window.report(1, outcome(OutcomeKind::delivered));
  EXPECT_EQ(model.window.unsettled(), 1U);
  const auto settlements = model.window.settlements();
  ASSERT_EQ(settlements.size(), 1U);
  EXPECT_EQ(settlements[0].sequence, 2U);
  EXPECT_EQ(model.window.unsettled(), 0U);
}

TEST(Window, WhatIsSettledMakesRoom_WhileTheFlightGoesOn) {
  WindowModel model({.records = 4, .bytes = 1000});
  for (int n = 0; n < 4; ++n) model.put("a", 250);
  model.top_up();
  const auto flight = model.window.take(model.now);
  ASSERT_EQ(flight.size(), 4U);
  EXPECT_EQ(model.window.room().records, 0U);
  model.window.report(0, outcome(OutcomeKind::delivered));
  model.window.report(1, outcome(OutcomeKind::retry));
  model.settle();
  EXPECT_EQ(model.window.room().records, 1U);
  EXPECT_EQ(model.window.room().bytes, 250U);
  EXPECT_EQ(flight[0].record->sequence, 1U);  // a target may hold on to its window, payloads apart
  model.put("a", 250);
  model.top_up();
  EXPECT_EQ(model.window.room().records, 0U);
  for (std::size_t place = 2; place < 4; ++place) model.window.report(place, outcome(OutcomeKind::delivered));
  model.window.land({}, model.now);
  model.settle();
  EXPECT_EQ(model.round(deliver), (Sequences{5}));
  model.forward();
  EXPECT_EQ(model.round(deliver), (Sequences{2}));
}

// However often it fails, until it leaves: delivered, or with its lane.
TEST(Window, WhatWasRefusedIsCountedOnce_WhileItIsThere) {
  WindowModel model;
  model.put("a");
  model.put("b");
  const auto refused = [&] { return model.window.status().refused; };
  for (int time = 0; time < 2; ++time) {
    model.round(except({1}, outcome(OutcomeKind::retry)));
    EXPECT_EQ(refused(), 1U);
    model.window.kick();
  }
  model.round(deliver);
  EXPECT_EQ(refused(), 0U);
  model.put("a");
  model.put("b");
  model.round(except({3}, outcome(OutcomeKind::retry)));
  EXPECT_EQ(refused(), 1U);
  model.window.kick();
  model.put("b");
  model.round(except_lanes({"a"}, outcome(OutcomeKind::hold_lane)));
  EXPECT_EQ(model.window.status().records, 0U);
  EXPECT_EQ(refused(), 0U);
}

TEST(Window, IsBoundedInRecordsAndBytes) {
  WindowModel model({.records = 4, .bytes = 1000});
  for (int n = 0; n < 10; ++n) model.put("a", 300);
  EXPECT_EQ(model.round(deliver).size(), 4U);  // three fit, and the one that was asked for while there was room
  model.put("a", 50'000);
  for (int turn = 0; turn < 10; ++turn) model.round(deliver);
  EXPECT_EQ(model.settled.size(), 11U);
}

TEST(Window, ARecordLargerThanTheWindowGoes) {
  WindowModel model({.records = 4, .bytes = 1000});
  model.put("a", 50'000);
  EXPECT_EQ(model.round(deliver), (Sequences{1}));
}

TEST(Window, UrgentRecordsOvertake_WhereTheDrainSaysSo) {
  WindowModel model({.records = 2, .drain = Drain::priority});
  for (int n = 0; n < 6; ++n) model.put("a", 100, 5);
  EXPECT_EQ(model.round(deliver), (Sequences{1, 2}));
  const Sequence urgent = model.put("a", 100, 0);
  EXPECT_EQ(model.round(deliver), (Sequences{urgent, 3}));
}

TEST(Window, DuplicateIsUnexpectedOnlyForWhatWasNeverSent) {
  WindowModel model;
  model.put("a");
  model.put("a");
  model.round([](const DueRecord& record) {
    return outcome(record.sequence == 1 ? OutcomeKind::duplicate : OutcomeKind::retry);
  });
  EXPECT_EQ(model.settled[1].fate, Fate::duplicate_unexpected);
  model.forward();
  model.round(always(outcome(OutcomeKind::duplicate)));
  EXPECT_EQ(model.settled[2].fate, Fate::duplicate);
  EXPECT_EQ(model.window.status().fates.duplicates, 1U);
  EXPECT_EQ(model.window.status().fates.duplicates_unexpected, 1U);
}

TEST(Window, AfterAnError_WhatWasNotReportedGoesAgain_AndADuplicateIsExpected) {
  WindowModel model;
  for (int n = 0; n < 3; ++n) model.put("a");
  model.top_up();
  ASSERT_EQ(model.window.take(model.now).size(), 3U);
  model.window.report(1, outcome(OutcomeKind::delivered));
  model.window.land(kBroken, model.now);
  model.settle();
  EXPECT_EQ(model.settled.size(), 1U);
  EXPECT_EQ(model.window.status().standing, StandingKind::cut_off);
  while (model.settled.size() < 3 && model.forward()) model.round(always(outcome(OutcomeKind::duplicate)));
  EXPECT_EQ(model.settled[1].fate, Fate::duplicate);
  EXPECT_EQ(model.settled[3].fate, Fate::duplicate);
}

TEST(Window, WhatATargetLeavesOutIsTriedAgain_ThoughItSaysThatAllIsWell) {
  WindowModel model;
  model.put("a");
  model.round(nullptr);
  EXPECT_EQ(model.settled.size(), 0U);
  EXPECT_STREQ(model.window.status().code, "unreported");
  ASSERT_TRUE(model.forward());
  EXPECT_EQ(model.round(deliver), (Sequences{1}));
}

TEST(Window, TheFirstReportOfARecordCounts) {
  WindowModel model;
  model.put("a");
  model.top_up();
  ASSERT_EQ(model.window.take(model.now).size(), 1U);
  model.window.report(0, outcome(OutcomeKind::delivered));
  model.window.report(0, outcome(OutcomeKind::rejected));
  model.window.land({}, model.now);
  model.settle();
  EXPECT_EQ(model.settled[1].fate, Fate::delivered);
}

// --- The target as a whole

TEST(Window, CutOff_NothingGoesBeforeTheProbe_ThenOneRecord_ThenAll) {
  WindowModel model;
  for (int n = 0; n < 9; ++n) model.put("a");
  model.round(nullptr, kBroken);
  EXPECT_TRUE(model.round(deliver).empty());
  EXPECT_EQ(model.probes, 0);
  model.forward();
  model.probe = kBroken;
  EXPECT_TRUE(model.round(deliver).empty());
  EXPECT_EQ(model.probes, 1);
  model.forward();
  model.probe = {};
  EXPECT_EQ(model.round(deliver), (Sequences{1}));
  EXPECT_EQ(model.round(deliver).size(), 8U);
}

TEST(Window, CutOff_WaitsGrowToTheCap_AndStartAnewAfterSuccess) {
  WindowModel model({.backoff = {.first = seconds(1), .cap = seconds(60)}});
  model.put("a");
  model.round(nullptr, kBroken);
  Nanoseconds longest{0};
  for (int failures = 0; failures < 500; ++failures) {
    const Nanoseconds before = model.now;
    ASSERT_TRUE(model.forward());
    longest = std::max(longest, model.now - before);
    model.round(nullptr, kBroken);
  }
  EXPECT_GT(longest, seconds(50));
  EXPECT_LE(longest, seconds(60));
  EXPECT_EQ(model.window.status().failed_flights, 501U);
  model.forward();
  model.round(deliver);
  EXPECT_EQ(model.window.status().failed_flights, 0U);
  model.put("a");
  model.round(nullptr, kBroken);
  EXPECT_LE(model.window.next() - model.now, seconds(1));
}

TEST(Window, HoldTarget_KeepsEverything_AndSaysWhy) {
  WindowModel model;
  for (int n = 0; n < 3; ++n) model.put("a");
  model.round(always(outcome(OutcomeKind::hold_target, "credentials")));
  const WindowStatus status = model.window.status();
  EXPECT_EQ(status.standing, StandingKind::cut_off);
  EXPECT_STREQ(status.code, "credentials");
  EXPECT_EQ(status.records, 3U);
  EXPECT_EQ(status.refused, 0U);
  model.forward();
  EXPECT_EQ(model.round(deliver), (Sequences{1}));
  EXPECT_EQ(model.round(deliver), (Sequences{2, 3}));
}

TEST(Window, AFlappingLink_MakesProgressEachTime_AndDoesNotWaitLonger) {
  WindowModel model;
  for (int n = 0; n < 40; ++n) model.put("a");
  for (int turn = 0; turn < 100 && !model.waiting.empty(); ++turn) {
    model.top_up();
    if (model.window.wants_probe(model.now)) model.window.probed({}, model.now);
    const auto flight = model.window.take(model.now);
    if (!flight.empty()) model.window.report(0, outcome(OutcomeKind::delivered));
    model.window.land(kBroken, model.now);
    model.settle();
    EXPECT_LE(model.window.next() - model.now, seconds(1));
    model.forward();
  }
  EXPECT_TRUE(model.waiting.empty());
}

TEST(Window, ManyFailTogether_ThenOneAtATimeFindsOut_AndSuccessLetsAllGoAtOnce) {
  WindowModel model({.records = 100});
  for (int n = 0; n < 40; ++n) model.put("a" + std::to_string(n % 3));
  EXPECT_EQ(model.round(always(outcome(OutcomeKind::retry, "busy"))).size(), 40U);
  EXPECT_EQ(model.window.status().standing, StandingKind::doubted);
  for (int turn = 0; turn < 20; ++turn) {
    ASSERT_TRUE(model.forward());
    EXPECT_EQ(model.round(always(outcome(OutcomeKind::retry, "busy"))).size(), 1U);
  }
  ASSERT_TRUE(model.forward());
  EXPECT_EQ(model.round(deliver).size(), 1U);
  EXPECT_EQ(model.window.status().standing, StandingKind::good);
  EXPECT_EQ(model.round(deliver).size(), 39U);
}

TEST(Window, InDoubt_WhatWasNeverTriedStillGoesAtOnce) {
  WindowModel model;
  model.put("a");
  model.put("a");
  model.round(always(outcome(OutcomeKind::retry)));
  ASSERT_EQ(model.window.status().standing, StandingKind::doubted);
  const Sequence fresh = model.put("a");
  EXPECT_EQ(model.round(except({1, 2}, outcome(OutcomeKind::retry))), (Sequences{fresh}));
  EXPECT_EQ(model.window.status().standing, StandingKind::good);
}

// Two records that always fail must not be tried again at each record that passes by.
TEST(Window, InAndOutOfDoubt_PoisonKeepsItsOwnBackoff) {
  WindowModel model({.backoff = {.first = seconds(1), .cap = seconds(60)}});
  const Sequence one = model.put("a");
  const Sequence two = model.put("a");
  int tries = 0;
  const auto answer = [&](const DueRecord& record) {
    const bool poison = record.sequence == one || record.sequence == two;
    tries += poison;
    return outcome(poison ? OutcomeKind::retry : OutcomeKind::delivered);
  };
  for (int second = 0; second < 3600; ++second) {
    model.put("a");
    model.now += seconds(1);
    model.round(answer);
  }
  EXPECT_EQ(model.waiting.size(), 2U);
  EXPECT_LT(tries, 2 * (3600 / 15));
  EXPECT_GT(tries, 2 * (3600 / 60) / 2);
}

// --- Single records

TEST(Window, Retry_WaitsInTheWindow_AndOthersPass) {
  WindowModel model;
  for (int n = 0; n < 3; ++n) model.put("a");
  model.round(except({2}, outcome(OutcomeKind::retry, "busy")));
  EXPECT_EQ(model.settled.size(), 2U);
  EXPECT_STREQ(model.window.status().code, "busy");
  EXPECT_EQ(model.window.status().refused, 1U);
  EXPECT_LE(model.window.next() - model.now, seconds(1));
  ASSERT_TRUE(model.forward());
  EXPECT_EQ(model.round(deliver), (Sequences{2}));
}

TEST(Window, Retry_IsNotBeforeWhatTheTargetAskedFor) {
  WindowModel model;
  model.put("a");
  Outcome later = outcome(OutcomeKind::retry);
  later.retry_after = minutes(5);
  model.round(always(later));
  EXPECT_GE(model.window.next(), model.now + minutes(5));
  model.now += minutes(5) - seconds(1);
  model.put("a");
  EXPECT_EQ(model.round(deliver), (Sequences{2}));  // a success of another changes nothing of it
  EXPECT_TRUE(model.round(deliver).empty());
  ASSERT_TRUE(model.forward());
  EXPECT_EQ(model.round(deliver), (Sequences{1}));
}

TEST(Window, Retry_TheOperatorCutsEveryWaitShort) {
  WindowModel model;
  model.put("a");
  Outcome later = outcome(OutcomeKind::retry);
  later.retry_after = minutes(5);
  model.round(always(later));
  model.window.kick();
  EXPECT_EQ(model.round(deliver), (Sequences{1}));
}

TEST(Window, Kick_ACutOffTargetIsProbedNow) {
  WindowModel model;
  model.put("a");
  for (int failures = 0; failures < 9; ++failures) {
    model.forward();
    model.round(nullptr, kBroken);
  }
  model.window.kick();
  EXPECT_EQ(model.round(deliver), (Sequences{1}));
}

// More records fail for ever than the window holds; the good ones behind them pass.
TEST(Window, PoisonNeverFillsTheWindow) {
  WindowModel model({.records = 8, .held = 1000});
  std::set<Sequence> poison;
  for (int n = 0; n < 200; ++n) poison.insert(model.put("a"));
  for (int n = 0; n < 20; ++n) model.put("a");
  for (int turn = 0; turn < 2000 && model.waiting.size() > 200; ++turn) {
    ASSERT_TRUE(model.forward());
    model.round(except(poison, outcome(OutcomeKind::retry)));
    EXPECT_LE(model.window.status().records, 9U);
  }
  EXPECT_EQ(model.waiting.size(), 200U);
  while (!model.waiting.empty() && model.forward()) model.round(deliver);
  EXPECT_EQ(model.settled.size(), 220U);
}

TEST(Window, ALargeRecordThatWaitsDoesNotStopTheRest) {
  WindowModel model({.records = 8, .bytes = 1000});
  model.put("a", 5000);
  Outcome later = outcome(OutcomeKind::retry);
  later.retry_after = minutes(30);
  model.round(always(later));
  model.put("a");
  EXPECT_EQ(model.round(deliver), (Sequences{2}));
  ASSERT_TRUE(model.forward());
  EXPECT_EQ(model.round(deliver), (Sequences{1}));
}

TEST(Window, NoRoomOutside_TheWindowFills_AndItIsStillBounded) {
  WindowModel model({.records = 8, .held = 4});
  for (int n = 0; n < 100; ++n) model.put("a" + std::to_string(n));
  for (int turn = 0; turn < 300; ++turn) {
    ASSERT_TRUE(model.forward());
    model.round(always(outcome(turn % 2 == 0 ? OutcomeKind::hold_lane : OutcomeKind::retry)));
    const WindowStatus status = model.window.status();
    EXPECT_LE(status.records, 9U);
    EXPECT_LE(status.lanes_held, 4U);
    EXPECT_LE(status.apart, 4U);
  }
  while (!model.waiting.empty() && model.forward()) model.round(deliver);
  EXPECT_EQ(model.settled.size(), 100U);
}

// --- Rejected

TEST(Window, Rejected_IsFinalOnlyWhenAnotherWasAcceptedSince_AndItWasTriedAgain) {
  WindowModel model;
  for (int n = 0; n < 4; ++n) model.put("a");
  Outcome no = outcome(OutcomeKind::rejected);
  no.reason = Reason::oversize;
  no.words = "too large";
  model.round(except({2}, no));
  EXPECT_EQ(model.settled.size(), 3U);
  EXPECT_EQ(model.window.status().apart, 1U);
  EXPECT_EQ(model.round(except({2}, no)), (Sequences{2}));
  ASSERT_EQ(model.settled.size(), 4U);
  EXPECT_EQ(model.settled[2].fate, Fate::rejected);
  EXPECT_EQ(model.settled[2].reason, Reason::oversize);
  EXPECT_EQ(model.settled[2].words, "too large");
}

TEST(Window, Rejected_WithoutAReasonHasTheGeneralOne) {
  WindowModel model;
  model.put("a");
  model.put("a");
  model.round(except({1}, outcome(OutcomeKind::rejected)));
  model.round(except({1}, outcome(OutcomeKind::rejected)));
  EXPECT_EQ(model.settled[1].reason, Reason::rejected);
}

TEST(Window, Rejected_AndAcceptedWhenTriedAgain_IsDelivered) {
  WindowModel model;
  for (int n = 0; n < 3; ++n) model.put("a");
  model.round(except({1}, outcome(OutcomeKind::rejected)));
  model.round(deliver);
  EXPECT_EQ(model.settled[1].fate, Fate::delivered);
}

TEST(Window, Rejected_TheOnlyRecordIsHeldForEver_AndSeen) {
  WindowModel model;
  model.put("a");
  for (int turn = 0; turn < 200; ++turn) {
    ASSERT_TRUE(model.forward());
    model.round(always(outcome(OutcomeKind::rejected)));
    const WindowStatus status = model.window.status();
    EXPECT_EQ(status.apart, 1U);
    EXPECT_STREQ(status.code, "rejected_unproven");
  }
  EXPECT_EQ(model.settled.size(), 0U);
  model.put("b");
  model.round(except({1}, outcome(OutcomeKind::rejected)));
  model.round(except({1}, outcome(OutcomeKind::rejected)));
  EXPECT_EQ(model.settled[1].fate, Fate::rejected);
}

// A target that began to refuse everything (a broken schema, a proxy) has proved nothing by what it took before.
TEST(Window, Rejected_EverythingFromNowOn_QuarantinesNothing) {
  WindowModel model({.records = 64});
  for (int n = 0; n < 50; ++n) model.put("a");
  model.round(deliver);
  for (int n = 0; n < 50; ++n) model.put("a");
  for (int turn = 0; turn < 200; ++turn) {
    ASSERT_TRUE(model.forward());
    model.round(always(outcome(OutcomeKind::rejected)));
  }
  EXPECT_EQ(model.settled.size(), 50U);
  EXPECT_EQ(model.window.status().standing, StandingKind::doubted);
  while (!model.waiting.empty() && model.forward()) model.round(deliver);
  EXPECT_EQ(model.window.status().fates.rejected, 0U);
  EXPECT_EQ(model.window.status().fates.delivered, 100U);
}

TEST(Window, Rejected_InTheMiddleOfAFlight_WhatCameAfterIsNotLost) {
  WindowModel model;
  for (int n = 0; n < 100; ++n) model.put("a");
  const auto breaks_at_50 = [](const DueRecord& record) {
    return outcome(record.sequence < 50 ? OutcomeKind::delivered : OutcomeKind::rejected);
  };
  for (int turn = 0; turn < 50 && model.forward(); ++turn) model.round(breaks_at_50);
  EXPECT_EQ(model.settled.size(), 49U);
}

TEST(Window, Rejected_ALargePoisonRecordAlone_DoesNotStopTheProof) {
  WindowModel model({.records = 8, .bytes = 1000});
  model.put("a", 5000);
  model.round(always(outcome(OutcomeKind::rejected)));
  model.put("a");
  EXPECT_EQ(model.round(deliver), (Sequences{2}));
  EXPECT_EQ(model.round(always(outcome(OutcomeKind::rejected))), (Sequences{1}));
  EXPECT_EQ(model.settled[1].fate, Fate::rejected);
}

// --- Lanes

TEST(Window, HoldLane_ItsRecordsWaitOutside_AndOthersGoOn) {
  WindowModel model({.records = 10});
  for (int n = 0; n < 100; ++n) model.put(n % 2 == 0 ? "bad" : "good");
  for (int turn = 0; turn < 30; ++turn)
    model.round(except_lanes({"bad"}, outcome(OutcomeKind::hold_lane, "no_stream")));
  EXPECT_EQ(model.settled.size(), 50U);
  const WindowStatus status = model.window.status();
  EXPECT_EQ(status.lanes_held, 1U);
  EXPECT_EQ(status.lane_records, 50U);
  EXPECT_EQ(status.records, 0U);
  EXPECT_EQ(status.standing, StandingKind::good);
  EXPECT_STREQ(status.code, "no_stream");
}

TEST(Window, HoldLane_IsProbedWithOneRecord_AndReadAgainFromItsFirst) {
  WindowModel model({.records = 10});
  for (int n = 0; n < 30; ++n) model.put("bad");
  while (model.window.status().lane_records < 30) {
    model.forward();
    model.round(always(outcome(OutcomeKind::hold_lane)));
  }
  ASSERT_TRUE(model.forward());
  const auto probe = model.round(deliver);
  ASSERT_EQ(probe.size(), 1U);
  EXPECT_EQ(model.window.status().lanes_held, 0U);
  std::vector<Sequence> flew = probe;
  while (!model.waiting.empty()) {
    for (const Sequence sequence : model.round(deliver)) flew.push_back(sequence);
  }
  EXPECT_EQ(flew.size(), 30U);
  EXPECT_TRUE(std::is_sorted(flew.begin() + 1, flew.end()));
}

TEST(Window, HoldLane_ProbesBackOff_AndNeverStop) {
  WindowModel model({.backoff = {.first = seconds(1), .cap = seconds(60)}});
  for (int n = 0; n < 30; ++n) model.put("bad");
  model.round(always(outcome(OutcomeKind::hold_lane)));
  for (int turn = 0; turn < 300; ++turn) {
    const Nanoseconds before = model.now;
    ASSERT_TRUE(model.forward());
    EXPECT_LE(model.now - before, seconds(60));
    EXPECT_EQ(model.round(always(outcome(OutcomeKind::hold_lane))).size(), 1U);
    EXPECT_EQ(model.window.status().standing, StandingKind::good);  // one lane says nothing of the target
  }
}

TEST(Window, HoldLane_AnothersProbeFailsToo_TheTargetIsInDoubt_AndOneSuccessLetsAllGo) {
  WindowModel model({.records = 64});
  for (int n = 0; n < 50; ++n) model.put("lane" + std::to_string(n));
  model.round(always(outcome(OutcomeKind::hold_lane)));
  EXPECT_EQ(model.window.status().lanes_held, 50U);
  EXPECT_EQ(model.window.status().standing, StandingKind::doubted);
  for (int turn = 0; turn < 20; ++turn) {
    ASSERT_TRUE(model.forward());
    EXPECT_EQ(model.round(always(outcome(OutcomeKind::hold_lane))).size(), 1U);
  }
  ASSERT_TRUE(model.forward());
  EXPECT_EQ(model.round(deliver).size(), 1U);
  model.now += seconds(1);  // the wait of a first failure
  EXPECT_EQ(model.round(deliver).size(), 49U);
}

TEST(Window, HoldLane_TwoMissingStreams_DoNotHoldTheRest) {
  WindowModel model;
  std::uint64_t good = 0;
  for (int turn = 0; turn < 1000; ++turn) {
    model.put("bad1");
    model.put("bad2");
    model.put("good");
    model.now += seconds(7);
    model.round(except_lanes({"bad1", "bad2"}, outcome(OutcomeKind::hold_lane)));
    EXPECT_EQ(model.settled.size(), ++good);
  }
}

// A lane whose first record can never go, for a reason that looks like its lane's.
TEST(Window, HoldLane_OneRecordThatNeverGoes_DoesNotHoldItsLane) {
  WindowModel model;
  for (int n = 0; n < 10; ++n) {
    model.put("a");
    if (n == 0) model.round(always(outcome(OutcomeKind::hold_lane)));
  }
  for (int turn = 0; turn < 100; ++turn) {
    ASSERT_TRUE(model.forward());
    model.round(except({1}, outcome(OutcomeKind::hold_lane)));
  }
  EXPECT_EQ(model.settled.size(), 9U);
  const Nanoseconds before = model.now;
  for (int turn = 0; turn < 100; ++turn) {
    ASSERT_TRUE(model.forward());
    model.round(except({1}, outcome(OutcomeKind::hold_lane)));
  }
  EXPECT_GT(model.now - before, minutes(10));  // and is not tried without end
}

TEST(Window, HoldLane_ARejectedProbe_IsAboutTheRecord) {
  WindowModel model;
  for (int n = 0; n < 5; ++n) model.put("a");
  model.round(always(outcome(OutcomeKind::hold_lane)));
  ASSERT_TRUE(model.forward());
  EXPECT_EQ(model.round(always(outcome(OutcomeKind::rejected))), (Sequences{1}));
  EXPECT_EQ(model.window.status().lanes_held, 0U);
  EXPECT_EQ(model.round(except({1}, outcome(OutcomeKind::rejected))), (Sequences{2, 3, 4, 5}));
  EXPECT_EQ(model.round(except({1}, outcome(OutcomeKind::rejected))), (Sequences{1}));
  EXPECT_EQ(model.settled[1].fate, Fate::rejected);
}

TEST(Window, HoldLane_ItsFirstRecordHasLeftByAnOperatorsHand_TheRestIsReadAgain) {
  WindowModel model;
  for (int n = 0; n < 5; ++n) model.put("a");
  model.round(always(outcome(OutcomeKind::hold_lane)));
  model.waiting.erase(1);
  ASSERT_TRUE(model.forward());
  for (int turn = 0; turn < 3; ++turn) model.round(deliver);
  EXPECT_EQ(model.settled.size(), 4U);
}

TEST(Window, ARecordApartThatHasLeft_IsForgotten) {
  WindowModel model;
  model.put("a");
  model.round(always(outcome(OutcomeKind::rejected)));
  model.waiting.clear();
  ASSERT_TRUE(model.forward());
  EXPECT_TRUE(model.round(deliver).empty());
  EXPECT_EQ(model.window.status().apart, 0U);
  EXPECT_FALSE(model.forward());
}

// --- Anything

struct Chances {
  unsigned retry, hold_lane, hold_target, rejected, error, unreported;
};

// Whatever a target answers, for as long as it likes: nothing is settled twice, nothing is lost, the bounds hold, it
// never spins, and when the target is well everything is delivered.
void survive(std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Dice dice(seed);
  WindowOptions options{.records = 1 + dice.below(12), .bytes = 1 + dice.below(3000), .held = 1 + dice.below(8)};
  if (dice.percent(50)) options.drain = Drain::priority;
  WindowModel model(options, seed);
  const auto chance = [&] { return static_cast<unsigned>(dice.below(40)); };
  const Chances chances{chance(), chance(), chance() / 4, chance(), chance(), chance() / 4};
  Sequence put = 0;
  for (int turn = 0; turn < 150; ++turn) {
    for (std::uint64_t n = dice.below(4); n > 0; --n) {
      put = model.put("s" + std::to_string(dice.below(6)), 1 + dice.below(600), static_cast<Priority>(dice.below(10)));
    }
    if (dice.percent(3)) model.window.kick();
    model.probe = dice.percent(50) ? Result<void>() : Result<void>(kBroken);
    model.top_up();
    if (model.window.wants_probe(model.now)) model.window.probed(model.probe, model.now);
    const auto flight = model.window.take(model.now);
    std::set<Sequence> seen;
    for (std::size_t place = 0; place < flight.size(); ++place) {
      EXPECT_TRUE(seen.insert(flight[place].record->sequence).second);
      EXPECT_TRUE(model.waiting.contains(flight[place].record->sequence));
      if (dice.percent(chances.unreported)) continue;
      Outcome said = outcome(OutcomeKind::delivered);
      if (dice.percent(20)) said.kind = OutcomeKind::duplicate;
      if (dice.percent(chances.retry)) said.kind = OutcomeKind::retry;
      if (dice.percent(chances.hold_lane)) said.kind = OutcomeKind::hold_lane;
      if (dice.percent(chances.hold_target)) said.kind = OutcomeKind::hold_target;
      if (dice.percent(chances.rejected)) said.kind = OutcomeKind::rejected;
      if (dice.percent(10)) said.retry_after = seconds(dice.below(100));
      model.window.report(place, said);
    }
    model.window.land(dice.percent(chances.error) ? Result<void>(kBroken) : Result<void>(), model.now);
    model.settle();
    EXPECT_LE(model.window.status().records, options.records + 1);
    EXPECT_LE(model.window.status().lanes_held, options.held);
    EXPECT_LE(model.window.status().apart, options.held);
    if (dice.percent(70)) model.forward();
  }
  model.probe = {};
  int turns = 0;
  while (!model.waiting.empty() && turns++ < 3000) {
    ASSERT_TRUE(model.forward()) << "nothing is to be tried, and " << model.waiting.size() << " wait";
    model.round(deliver);
  }
  EXPECT_TRUE(model.waiting.empty());
  EXPECT_EQ(model.settled.size(), put);
}

TEST(Window, WhateverTheTargetAnswers_NothingIsLost_NothingIsSettledTwice) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    survive(seed);
    if (HasFailure()) return;
  }
}

// forward() goes to next(): a round there that neither reads nor tries would be a spin.
TEST(Window, NeverSpins) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Dice dice(seed);
    WindowModel model({.records = 1 + dice.below(6), .held = 1 + dice.below(4)}, seed);
    for (int n = 0; n < 40; ++n) model.put("s" + std::to_string(dice.below(12)));
    int idle = 0;
    for (int turn = 0; turn < 400 && model.forward(); ++turn) {
      const std::uint64_t read = model.read;
      const int probes = model.probes;
      const auto flew = model.round([&](const DueRecord&) {
        const std::array kinds{OutcomeKind::retry, OutcomeKind::hold_lane, OutcomeKind::rejected};
        return outcome(kinds.at(dice.below(kinds.size())));
      });
      const bool idled = flew.empty() && read == model.read && probes == model.probes;
      idle = idled ? idle + 1 : 0;
      ASSERT_LT(idle, 3);
    }
  }
}

}  // namespace
}  // namespace holdfast
