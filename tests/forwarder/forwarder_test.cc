// A spool, a forwarder and a target that fails in every way it can: everything that was acknowledged arrives once.
#include "forwarder/forwarder.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "forwarder/code.h"
#include "tests/support/scripted_target.h"
#include "tests/support/spool_world.h"

namespace holdfast {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

Outcome say(OutcomeKind kind, const char* state = "") {
  Outcome outcome;
  outcome.kind = kind;
  outcome.state = state;
  return outcome;
}

// One box: a spool on a simulated disk, and a forwarder for each of its targets.
class Box {
 public:
  explicit Box(std::uint64_t seed = 1) : world(seed), seed_(seed) {}

  void start(WindowOptions window = {}) {
    window_ = window;
    ASSERT_TRUE(world.open()) << world.last_error;
    hub = std::make_unique<Forwarder>(*world.spool, upstream, world.clock, ForwarderOptions{world.hub, "hub", window},
                                      seed_);
    if (!world.two_targets) return;
    shore = std::make_unique<Forwarder>(*world.spool, other, world.clock,
                                        ForwarderOptions{world.shore, "shore", window}, seed_ + 1);
  }

  void stop() {
    hub.reset();
    shore.reset();
    world.forget();
  }

  void lose_power_and_start(std::uint64_t seed) {
    stop();
    world.fs.lose_power(seed);
    start(window_);
  }

  Nanoseconds step(Forwarder& forwarder) {
    const auto slept = forwarder.step();
    EXPECT_TRUE(slept.ok()) << slept.error().text;
    return slept.ok() ? *slept : Nanoseconds(0);
  }

  // Steps, sleeps as long as it is told, keeps house; until nothing is in custody.
  bool run_dry(int most = 3000) {
    for (int turn = 0; turn < most; ++turn) {
      Nanoseconds sleep = step(*hub);
      if (shore) sleep = std::min(sleep, step(*shore));
      if (!world.maintain()) return false;
      if (world.spool->status().in_custody == 0) return true;
      world.clock.advance(sleep);
    }
    return false;
  }

  std::size_t in_custody() const { return world.spool->status().in_custody; }

  SpoolWorld world;
  ScriptedTarget upstream;
  ScriptedTarget other;
  std::unique_ptr<Forwarder> hub;
  std::unique_ptr<Forwarder> shore;

 private:
  const std::uint64_t seed_;
  WindowOptions window_;
};

// Every acknowledged message is upstream, as it was.
void expect_all_upstream(const Box& box, const ScriptedTarget& target) {
  const auto taken = target.taken();
  for (const std::uint64_t number : box.world.acknowledged) {
    const Arrival sent = box.world.message(number);
    const auto found = taken.find(wire_key(sent.identity.key));
    ASSERT_NE(found, taken.end()) << "message " << number;
    EXPECT_EQ(found->second.payload, sent.envelope.payload) << "message " << number;
    EXPECT_EQ(found->second.subject, sent.envelope.subject) << "message " << number;
  }
}

TEST(Forwarder, DeliversWhatIsThere_AndItLeavesTheSpool) {
  Box box;
  box.start({.records = 64});
  ASSERT_TRUE(box.world.put(1, 300));
  ASSERT_TRUE(box.run_dry());
  expect_all_upstream(box, box.upstream);
  EXPECT_EQ(box.upstream.order().size(), 300U);
  const ForwarderStatus status = box.hub->status();
  EXPECT_EQ(status.window.fates.delivered, 300U);
  EXPECT_EQ(status.window.fates.duplicates + status.window.fates.duplicates_unexpected, 0U);
  EXPECT_EQ(status.target, "hub");
  auto audit = box.world.spool->audit();
  ASSERT_TRUE(audit.ok());
  EXPECT_TRUE(audit->balanced());
}

// A target that takes its time is not waited for twice: what it has taken is replaced while it goes on.
TEST(Forwarder, ReadsWhileItDelivers_WithinTheWindow) {
  Box box;
  box.start({.records = 300});
  ASSERT_TRUE(box.world.put(1, 900));
  std::size_t most = 0;
  box.upstream.script([&](const Delivery&) -> std::optional<Outcome> {
    most = std::max(most, box.hub->status().window.records);
    return std::nullopt;
  });
  box.step(*box.hub);
  EXPECT_GT(box.hub->status().window.records, 200U);
  EXPECT_LE(most, 300U);
  ASSERT_TRUE(box.run_dry());
  EXPECT_EQ(box.upstream.delivered_records(), 900U);
}

TEST(Forwarder, NothingToDo_SleepsLong) {
  Box box;
  box.start();
  EXPECT_EQ(box.step(*box.hub), minutes(1));
  EXPECT_EQ(box.hub->status().state, ForwarderState::idle);
  EXPECT_FALSE(box.hub->status().next_attempt);
  EXPECT_FALSE(box.hub->status().step_entered);
}

TEST(Forwarder, SettlesExactlyWhatWasReported_WhereverTheConnectionBreaks) {
  for (std::size_t reports = 0; reports <= 10; ++reports) {
    Box box;
    box.start();
    ASSERT_TRUE(box.world.put(1, 10));
    box.upstream.break_after(reports);
    box.step(*box.hub);
    EXPECT_EQ(box.hub->status().window.fates.delivered, reports);
    ASSERT_TRUE(box.world.settle_down());
    EXPECT_EQ(box.in_custody(), 10 - reports);
    EXPECT_EQ(box.hub->status().state, ForwarderState::holding);
    EXPECT_FALSE(box.hub->status().last_error.empty());
    ASSERT_TRUE(box.run_dry());
    EXPECT_EQ(box.upstream.delivered_records(), 20 - reports);
    EXPECT_EQ(box.upstream.order().size(), 10U);
  }
}

TEST(Forwarder, TakenButNotReported_IsADuplicateTheNextTime_AndExpected) {
  Box box;
  box.start();
  ASSERT_TRUE(box.world.put(1, 10));
  box.upstream.break_after_taking(7);
  ASSERT_TRUE(box.run_dry());
  EXPECT_EQ(box.hub->status().window.fates.duplicates, 7U);
  EXPECT_EQ(box.hub->status().window.fates.duplicates_unexpected, 0U);
}

TEST(Forwarder, ADuplicateOfWhatWasNeverSent_IsCountedApart) {
  Box box;
  box.start();
  ASSERT_TRUE(box.world.put(1, 3));
  box.upstream.script([](const Delivery&) { return say(OutcomeKind::duplicate); });
  ASSERT_TRUE(box.run_dry());
  EXPECT_EQ(box.world.spool->status().targets.at(0).duplicates_unexpected, 3U);
}

TEST(Forwarder, ARecordThatWasLeftOut_GoesAgain) {
  Box box;
  box.start();
  ASSERT_TRUE(box.world.put(1, 5));
  box.upstream.leave_out(2);
  ASSERT_TRUE(box.run_dry());
  EXPECT_EQ(box.hub->status().window.fates.delivered, 4U);
  EXPECT_EQ(box.hub->status().window.fates.duplicates, 1U);
}

TEST(Forwarder, ARecordLargerThanTheWindow_Goes) {
  Box box;
  box.start({.records = 4, .bytes = 100});
  ASSERT_TRUE(box.world.put(1, 9));
  EXPECT_TRUE(box.run_dry());
}

TEST(Forwarder, DownForWeeks_ThenBack_EverythingGoes_AndItWaitedBetweenTries) {
  Box box;
  box.start({.records = 16});
  ASSERT_TRUE(box.world.put(1, 60));
  box.upstream.cut_off(true);
  const Nanoseconds began = box.world.clock.monotonic();
  int steps = 0;
  while (box.world.clock.monotonic() - began < std::chrono::hours(24 * 7) && ++steps < 100'000) {
    box.world.clock.advance(box.step(*box.hub));
    if (steps % 500 == 0) {
      ASSERT_TRUE(box.world.maintain());
    }
  }
  EXPECT_LT(box.upstream.probes(), 24U * 7 * 3600 / 20);
  EXPECT_EQ(box.in_custody(), 60U);
  box.upstream.cut_off(false);
  box.hub->kick();
  ASSERT_TRUE(box.run_dry(50));
  expect_all_upstream(box, box.upstream);
}

TEST(Forwarder, RejectedOne_IsQuarantined_TheRestFlows_AndItCanBeRequeued) {
  Box box;
  box.start();
  ASSERT_TRUE(box.world.put(1, 20));
  const std::string poison = box.world.message(5).identity.key;
  box.upstream.script([poison](const Delivery& delivery) -> std::optional<Outcome> {
    if (delivery.record->key != poison) return std::nullopt;
    Outcome no = say(OutcomeKind::rejected);
    no.reason = Reason::oversize;
    no.words = "too much";
    return no;
  });
  ASSERT_TRUE(box.run_dry());
  EXPECT_EQ(box.upstream.taken().size(), 19U);
  auto quarantined = box.world.spool->list_quarantine(0, 10);
  ASSERT_TRUE(quarantined.ok());
  ASSERT_EQ(quarantined->size(), 1U);
  EXPECT_EQ(quarantined->front().reason, Reason::oversize);
  auto opened = box.world.spool->show_quarantined(quarantined->front().id.hex());
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened->words, "too much");

  box.upstream.script(nullptr);
  RecordFilter all;
  all.everything = true;
  auto requeued = box.world.spool->requeue(all, [&](const Envelope&) { return box.world.route; });
  ASSERT_TRUE(requeued.ok()) << requeued.error().text;
  EXPECT_EQ(*requeued, 1U);
  ASSERT_TRUE(box.run_dry());
  expect_all_upstream(box, box.upstream);
}

TEST(Forwarder, ALaneOnHold_WaitsOutside_AndComesBackWhole) {
  Box box;
  box.start({.records = 8});
  ASSERT_TRUE(box.world.put(1, 140));  // seven subjects
  const std::string lane = box.world.message(3).envelope.subject;
  box.upstream.script([lane](const Delivery& delivery) -> std::optional<Outcome> {
    if (delivery.record->envelope.subject != lane) return std::nullopt;
    return say(OutcomeKind::hold_lane, "no_stream");
  });
  for (int turn = 0; turn < 100; ++turn) {
    box.world.clock.advance(box.step(*box.hub));
    ASSERT_TRUE(box.world.maintain());
  }
  EXPECT_EQ(box.in_custody(), 20U);
  const ForwarderStatus status = box.hub->status();
  EXPECT_EQ(status.window.lanes_held, 1U);
  EXPECT_EQ(status.window.lane_records, 20U);
  EXPECT_EQ(status.state, ForwarderState::holding);
  EXPECT_STREQ(status.window.code, "no_stream");
  ASSERT_TRUE(status.next_attempt);
  EXPECT_LE(*status.next_attempt - box.world.clock.monotonic(), minutes(1));
  box.upstream.script(nullptr);
  ASSERT_TRUE(box.run_dry());
  expect_all_upstream(box, box.upstream);
}

TEST(Forwarder, ALaneThatIsWellAgain_IsReadAtOnce) {
  Box box;
  box.start({.records = 8});
  ASSERT_TRUE(box.world.put(1, 140));  // seven subjects
  const std::string lane = box.world.message(3).envelope.subject;
  box.upstream.script([lane](const Delivery& delivery) -> std::optional<Outcome> {
    if (delivery.record->envelope.subject != lane) return std::nullopt;
    return say(OutcomeKind::hold_lane, "no_stream");
  });
  for (int turn = 0; turn < 100; ++turn) box.world.clock.advance(box.step(*box.hub));
  ASSERT_EQ(box.hub->status().window.lane_records, 20U);
  box.upstream.script(nullptr);
  box.hub->kick();
  const Nanoseconds began = box.world.clock.monotonic();
  ASSERT_TRUE(box.run_dry());
  EXPECT_LT(box.world.clock.monotonic() - began, seconds(1)) << "it slept on, with the lane's records unread";
}

TEST(Forwarder, ALaneOnHold_WithUrgentRecordsFirst) {
  Box box;
  box.start({.records = 8, .drain = Drain::priority});
  std::vector<Arrival> arrivals;
  for (std::uint64_t number = 1; number <= 100; ++number) {
    arrivals.push_back(box.world.message(number));
    arrivals.back().priority = static_cast<Priority>(number % 10);
    box.world.acknowledged.insert(number);
  }
  ASSERT_TRUE(box.world.spool->put_batch(arrivals).ok());
  const std::string lane = box.world.message(3).envelope.subject;
  box.upstream.script([lane](const Delivery& delivery) -> std::optional<Outcome> {
    if (delivery.record->envelope.subject != lane) return std::nullopt;
    return say(OutcomeKind::hold_lane);
  });
  for (int turn = 0; turn < 100; ++turn) box.world.clock.advance(box.step(*box.hub));
  EXPECT_EQ(box.upstream.order().size(), 100U - box.hub->status().window.lane_records);
  box.upstream.script(nullptr);
  ASSERT_TRUE(box.run_dry());
  expect_all_upstream(box, box.upstream);
}

TEST(Forwarder, OneTargetsTrouble_NeverHoldsAnother) {
  Box box;
  box.world.two_targets = true;
  box.start();
  ASSERT_TRUE(box.world.put(1, 50));
  box.other.cut_off(true);
  for (int turn = 0; turn < 20; ++turn) {
    box.step(*box.hub);
    box.step(*box.shore);
    ASSERT_TRUE(box.world.maintain());
  }
  expect_all_upstream(box, box.upstream);
  EXPECT_EQ(box.upstream.delivered_records(), 50U);
  EXPECT_EQ(box.in_custody(), 50U);
  box.other.cut_off(false);
  box.shore->kick();
  ASSERT_TRUE(box.run_dry());
  expect_all_upstream(box, box.other);
  EXPECT_EQ(box.upstream.delivered_records(), 50U);
}

TEST(Forwarder, TheOperatorsWords_CountFromTheNextStep_AndWake) {
  Box box;
  box.start();
  int woken = 0;
  box.hub->on_wake([&] { ++woken; });
  ASSERT_TRUE(box.world.put(1, 5));
  box.hub->hold();
  EXPECT_EQ(box.step(*box.hub), minutes(1));
  EXPECT_EQ(box.upstream.deliveries(), 0U);
  EXPECT_EQ(box.hub->status().state, ForwarderState::held_by_operator);
  EXPECT_FALSE(box.hub->status().next_attempt);
  box.hub->resume();
  box.step(*box.hub);
  EXPECT_EQ(box.upstream.taken().size(), 5U);
  box.hub->kick();
  EXPECT_EQ(woken, 3);
}

TEST(Forwarder, Kick_TriesNow) {
  Box box;
  box.start();
  ASSERT_TRUE(box.world.put(1, 5));
  box.upstream.cut_off(true);
  for (int turn = 0; turn < 20; ++turn) box.world.clock.advance(box.step(*box.hub));
  box.upstream.cut_off(false);
  box.step(*box.hub);
  const bool back_already = !box.upstream.taken().empty();
  box.hub->kick();
  box.step(*box.hub);
  box.step(*box.hub);
  EXPECT_EQ(box.upstream.taken().size(), 5U) << back_already;
}

TEST(Forwarder, AHungDelivery_IsSeenFromOutside_AndInterrupted) {
  Box box;
  box.start();
  ASSERT_TRUE(box.world.put(1, 5));
  box.upstream.hang();
  std::thread stepping([&] { box.step(*box.hub); });
  const auto deadline = std::chrono::steady_clock::now() + seconds(20);
  while (!box.upstream.hanging() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_TRUE(box.upstream.hanging());
  const ForwarderStatus hung = box.hub->status();
  EXPECT_EQ(hung.step_entered, box.world.clock.monotonic());
  EXPECT_EQ(hung.window.records, 5U);
  box.hub->interrupt();
  stepping.join();
  EXPECT_FALSE(box.hub->status().step_entered);
  ASSERT_TRUE(box.run_dry());
}

TEST(Forwarder, TheSpoolsLifeIsOver_TheStepSaysSo) {
  Box box;
  box.start();
  ASSERT_TRUE(box.world.put(1, 5));
  box.world.fs.fail_next({.kind = FaultKind::io, .persistent = true});
  while (box.world.maintain()) {
    box.world.clock.advance(seconds(2));
  }
  const auto stepped = box.hub->step();
  ASSERT_FALSE(stepped.ok());
  EXPECT_EQ(stepped.error().kind, ErrorKind::io);
}

TEST(Forwarder, AfterARestart_WhatWasSettledIsNotSentAgain_WhenItWasWrittenDown) {
  Box box;
  box.start();
  ASSERT_TRUE(box.world.put(1, 30));
  box.upstream.break_after(12);
  box.step(*box.hub);
  ASSERT_TRUE(box.world.close());
  box.stop();
  box.world.fs.restart_without_power_loss();
  box.start();
  ASSERT_TRUE(box.run_dry());
  EXPECT_EQ(box.upstream.order().size(), 30U);
  EXPECT_EQ(box.upstream.delivered_records(), 30U + 18U);
}

// Everything at once: arrivals, power cuts, connections that break before and after a record is taken, lanes, records
// and whole targets that are refused. In the end what was acknowledged is upstream, each once, as it was.
void survive(std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Dice dice(seed);
  Box box(seed);
  box.world.two_targets = dice.percent(30);
  WindowOptions window{.records = 1 + dice.below(40), .bytes = 500 + dice.below(20'000), .held = 1 + dice.below(10)};
  if (dice.percent(40)) window.drain = Drain::priority;
  box.start(window);
  const unsigned trouble = static_cast<unsigned>(dice.below(40));
  const auto script = [&](const Delivery&) -> std::optional<Outcome> {
    if (!dice.percent(trouble)) return std::nullopt;
    const std::array kinds{OutcomeKind::retry, OutcomeKind::retry, OutcomeKind::hold_lane, OutcomeKind::hold_target};
    return say(kinds.at(dice.below(kinds.size())));
  };
  box.upstream.script(script);
  box.other.script(script);
  std::uint64_t next = 1;
  for (int turn = 0; turn < 120; ++turn) {
    const std::uint64_t count = dice.below(12);
    if (count > 0) {
      ASSERT_TRUE(box.world.put(next, count));
    }
    next += count;
    if (dice.percent(10)) box.upstream.break_after(dice.below(8));
    if (dice.percent(10)) box.upstream.break_after_taking(dice.below(8));
    if (dice.percent(5)) box.upstream.leave_out(dice.below(4));
    box.upstream.cut_off(dice.percent(10));
    const Nanoseconds sleep = box.step(*box.hub);
    if (box.shore) box.step(*box.shore);
    if (dice.percent(60)) {
      ASSERT_TRUE(box.world.maintain());
    }
    if (dice.percent(60)) box.world.clock.advance(sleep);
    if (dice.percent(5)) box.lose_power_and_start(dice.roll());
    if (::testing::Test::HasFatalFailure()) return;
  }
  for (ScriptedTarget* target : {&box.upstream, &box.other}) {
    target->script(nullptr);
    target->cut_off(false);
  }
  const bool dry = box.run_dry();
  const ForwarderStatus status = box.hub->status();
  ASSERT_TRUE(dry) << box.in_custody() << " left; in the window " << status.window.records << ", lanes held "
                   << status.window.lanes_held << ", apart " << status.window.apart << ", "
                   << forwarder_state_text(status.state) << " " << status.window.code << ", " << status.last_error;
  expect_all_upstream(box, box.upstream);
  if (box.world.two_targets) expect_all_upstream(box, box.other);
  EXPECT_EQ(box.world.spool->status().quarantined, 0U);
  auto audit = box.world.spool->audit();
  ASSERT_TRUE(audit.ok());
  EXPECT_TRUE(audit->balanced());
}

TEST(Forwarder, WhateverHappens_WhatWasAcknowledgedArrives) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    survive(seed);
    if (HasFailure()) return;
  }
}

// "For how long" is asked of the trouble, not of the last try in it.
TEST(Forwarder, Trouble_LastsThroughTheTriesInIt) {
  Box box;
  box.start();
  const Nanoseconds began = box.world.clock.monotonic();
  box.upstream.cut_off(true);
  ASSERT_TRUE(box.world.put(1, 3));
  for (int turn = 0; turn < 20; ++turn) box.world.clock.advance(box.step(*box.hub));
  const ForwarderStatus status = box.hub->status();
  EXPECT_EQ(status.state, ForwarderState::holding);
  EXPECT_STREQ(status.window.code, "unreachable");
  EXPECT_LT(status.since - began, seconds(1));
  EXPECT_GT(box.world.clock.monotonic() - began, seconds(10));
  box.upstream.cut_off(false);
  ASSERT_TRUE(box.run_dry());
  EXPECT_EQ(box.hub->status().state, ForwarderState::flowing);
}

TEST(Code, OfAnError_IsTheOneItBeginsWith) {
  EXPECT_STREQ(code_of(Error{ErrorKind::unavailable, "credentials_refused: cannot connect to hub:4222"}),
               "credentials_refused");
  EXPECT_STREQ(code_of(Error{ErrorKind::unavailable, "cannot connect"}), "unreachable");
  EXPECT_FALSE(code_text("no_stream").empty());
  EXPECT_TRUE(code_text("no_such_code").empty());
}

}  // namespace
}  // namespace holdfast
