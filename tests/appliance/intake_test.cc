#include "appliance/intake.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <set>

#include "tests/support/scripted_target.h"
#include "tests/support/spool_world.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

// Hands out what it was given, and remembers what was acknowledged.
class ScriptedSource : public Source {
 public:
  Result<std::vector<Incoming>> pull(std::size_t max, Nanoseconds) override {
    EXPECT_FALSE(paused) << "pulled while paused";
    ++pulls;
    if (pull_error) return *pull_error;
    std::vector<Incoming> batch;
    while (!waiting.empty() && batch.size() < max) {
      batch.push_back(std::move(waiting.front()));
      waiting.pop_front();
    }
    return batch;
  }

  Result<void> acknowledge(std::span<const Incoming> committed) override {
    if (on_acknowledge) on_acknowledge(committed);
    if (acknowledge_error) return *acknowledge_error;
    for (const Incoming& one : committed) acknowledged.push_back(one.receipt);
    return {};
  }

  void pause(bool on) override { paused = on; }
  void keep_alive() override {}
  SourceStatus status() const override { return {}; }
  void interrupt() override {}

  std::deque<Incoming> waiting;
  std::vector<std::string> acknowledged;
  std::function<void(std::span<const Incoming>)> on_acknowledge;
  std::optional<Error> pull_error;
  std::optional<Error> acknowledge_error;
  bool paused = false;
  int pulls = 0;
};

class IntakeTest : public ::testing::Test {
 protected:
  void SetUp() override { begin(); }

  void begin() {
    ASSERT_TRUE(world_.open()) << world_.last_error;
    auto target = with_dead_letters_ ? std::make_unique<ScriptedTarget>() : nullptr;
    dead_target_ = target.get();
    dead_letters_.emplace(std::move(target), "dead");
    router_.emplace(std::vector<RouteRule>{{{"telemetry.>"}, world_.route, kNormalPriority}});
    intake_.emplace(source_, *world_.spool, *router_, *dead_letters_, rules_, progress_);
  }

  Incoming incoming(std::uint64_t number) {
    Incoming one;
    one.envelope = world_.message(number).envelope;
    one.receipt = std::to_string(number);
    return one;
  }

  void arrive(std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t number = first; number < first + count; ++number) source_.waiting.push_back(incoming(number));
  }

  IntakeRound step() {
    const auto round = intake_->step(0s);
    EXPECT_TRUE(round.ok()) << round.error().text;
    return round.ok() ? *round : IntakeRound::paused;
  }

  std::size_t due() {
    DueCursor cursor;
    const auto records = world_.spool->due(world_.hub, Drain::fifo, cursor, 10'000, 1u << 30);
    EXPECT_TRUE(records.ok());
    return records.ok() ? records->size() : 0;
  }

  std::multiset<Reason> quarantined() {
    std::multiset<Reason> reasons;
    const auto records = world_.spool->list_quarantine(0, 1000);
    EXPECT_TRUE(records.ok());
    if (records.ok())
      for (const QuarantinedRecord& one : *records) reasons.insert(one.reason);
    return reasons;
  }

  SpoolWorld world_;
  ScriptedSource source_;
  bool with_dead_letters_ = false;
  ScriptedTarget* dead_target_ = nullptr;
  std::optional<DeadLetters> dead_letters_;
  IntakeRules rules_{.site = "truck-07", .identity = {}};
  Progress progress_;
  std::optional<Router> router_;
  std::optional<Intake> intake_;
};

TEST_F(IntakeTest, WhatIsPulled_IsInCustodyBeforeItIsAcknowledged) {
  arrive(1, 100);
  source_.on_acknowledge = [this](std::span<const Incoming> committed) {
    EXPECT_EQ(committed.size(), 100u);
    EXPECT_EQ(world_.spool->status().in_custody, 100u);
    world_.fs.lose_power(Loss::drop_all);
  };
  EXPECT_EQ(step(), IntakeRound::took);
  EXPECT_EQ(source_.acknowledged.size(), 100u);

  source_.on_acknowledge = nullptr;
  world_.forget();
  begin();
  EXPECT_EQ(due(), 100u);
}

class DeadLetterTest : public IntakeTest {
 protected:
  void SetUp() override {
    with_dead_letters_ = true;
    begin();
  }
};

TEST_F(DeadLetterTest, WhatIsRefused_IsPublishedAside_AndAcknowledgedOnceItIsStored) {
  arrive(1, 2);
  source_.waiting.front().unreadable = Reason::undecodable_headers;
  dead_target_->script([&](const Delivery& delivery) -> std::optional<Outcome> {
    EXPECT_EQ(delivery.record->envelope.subject, "dead");
    EXPECT_TRUE(source_.acknowledged.empty());
    return std::nullopt;
  });
  EXPECT_EQ(step(), IntakeRound::took);
  EXPECT_EQ(dead_target_->taken().size(), 1u);
  EXPECT_EQ(source_.acknowledged, (std::vector<std::string>{"1", "2"}));
  EXPECT_TRUE(quarantined().empty());
  EXPECT_EQ(world_.spool->status().in_custody, 1u);
}

// The server that has it knows its id for minutes, and the acknowledgement may have been lost for longer.
TEST_F(DeadLetterTest, WhatWasPublishedAside_IsRecognised_AlsoAfterACut) {
  for (int life = 1; life <= 3; ++life) {
    arrive(1, 1);
    source_.waiting.front().unreadable = Reason::undecodable_headers;
    EXPECT_EQ(step(), IntakeRound::took);
    EXPECT_EQ(source_.acknowledged.size(), static_cast<std::size_t>(life));
    EXPECT_EQ(dead_target_->taken().size(), life == 1 ? 1u : 0u);
    EXPECT_TRUE(quarantined().empty());
    const VerdictTally tally = intake_->tallies()[static_cast<std::size_t>(Strategy::stream_sequence)];
    EXPECT_EQ(tally.counts.duplicate_in_ledger, life == 1 ? 0u : 1u);
    world_.forget();
    world_.fs.lose_power(Loss::drop_all);
    begin();
  }
}

TEST_F(DeadLetterTest, WhatCannotBePublishedAside_GoesToQuarantine_AndIsCounted) {
  arrive(1, 2);
  source_.waiting.front().unreadable = Reason::undecodable_headers;
  dead_target_->cut_off(true);
  EXPECT_EQ(step(), IntakeRound::took);
  EXPECT_EQ(source_.acknowledged.size(), 2u);
  EXPECT_EQ(quarantined(), std::multiset<Reason>{Reason::undecodable_headers});
  const VerdictTally tally = intake_->tallies()[static_cast<std::size_t>(Strategy::stream_sequence)];
  EXPECT_EQ(tally.counts.accepted, 1u);
  EXPECT_EQ(tally.counts.refused, 1u);
  EXPECT_EQ(tally.last_reason, Reason::undecodable_headers);
}

TEST_F(DeadLetterTest, ADeadLetterThatComesRound_IsNotPublishedAgain) {
  arrive(1, 1);
  source_.waiting.front().unreadable = Reason::undecodable_headers;
  source_.waiting.front().envelope.headers.push_back({"Holdfast-Error", "no_identity"});
  EXPECT_EQ(step(), IntakeRound::took);
  EXPECT_TRUE(dead_target_->taken().empty());
  EXPECT_EQ(quarantined().size(), 1u);
}

TEST_F(IntakeTest, AtTheAcknowledgement_TheMessagesAreWhole) {
  arrive(1, 3);
  source_.on_acknowledge = [this](std::span<const Incoming> committed) {
    for (std::size_t place = 0; place < committed.size(); ++place)
      EXPECT_EQ(committed[place].envelope, world_.message(place + 1).envelope);
  };
  EXPECT_EQ(step(), IntakeRound::took);
}

TEST_F(IntakeTest, NothingThere_IsAnIdleRound) {
  EXPECT_EQ(step(), IntakeRound::idle);
  EXPECT_TRUE(source_.acknowledged.empty());
}

TEST_F(IntakeTest, ASourceThatFails_IsAskedAgainInAMoment) {
  source_.pull_error = Error{ErrorKind::unavailable, "no connection"};
  EXPECT_EQ(step(), IntakeRound::paused);
  source_.pull_error.reset();
  arrive(1, 1);
  EXPECT_EQ(step(), IntakeRound::took);
}

TEST_F(IntakeTest, ARedelivery_IsAcknowledgedAndNoSecondRecord) {
  arrive(1, 10);
  source_.acknowledge_error = Error{ErrorKind::unavailable, "the connection went"};
  EXPECT_EQ(step(), IntakeRound::took);
  EXPECT_TRUE(source_.acknowledged.empty());

  source_.acknowledge_error.reset();
  arrive(1, 12);
  EXPECT_EQ(step(), IntakeRound::took);
  EXPECT_EQ(source_.acknowledged.size(), 12u);
  EXPECT_EQ(due(), 12u);
  EXPECT_EQ(world_.spool->status().verdicts.duplicate_in_custody, 10u);
}

TEST_F(IntakeTest, WhatCannotBeDelivered_IsSetAsideWithItsReason_AndBlocksNothing) {
  rules_.identity.strategy = Strategy::message_id;
  intake_.emplace(source_, *world_.spool, *router_, *dead_letters_, rules_, progress_);
  Incoming good = incoming(1);
  good.envelope.headers.push_back({"Nats-Msg-Id", "a"});
  Incoming lost_its_way = incoming(2);
  lost_its_way.envelope.subject = "elsewhere";
  lost_its_way.envelope.headers.push_back({"Nats-Msg-Id", "b"});
  Incoming nameless = incoming(3);
  Incoming unreadable = incoming(4);
  unreadable.unreadable = Reason::undecodable_headers;
  for (Incoming* one : {&good, &lost_its_way, &nameless, &unreadable}) source_.waiting.push_back(std::move(*one));

  EXPECT_EQ(step(), IntakeRound::took);
  EXPECT_EQ(source_.acknowledged, (std::vector<std::string>{"1", "2", "3", "4"}));
  EXPECT_EQ(due(), 1u);
  EXPECT_EQ(quarantined(), (std::multiset<Reason>{Reason::no_identity, Reason::no_route, Reason::undecodable_headers}));
}

TEST_F(IntakeTest, WhatIsTooLarge_IsSetAside) {
  world_.forget();
  world_.options.limits.max_record_bytes = 1000;
  begin();
  Incoming large = incoming(1);
  large.envelope.payload.resize(2000);
  source_.waiting.push_back(std::move(large));
  arrive(2, 1);
  EXPECT_EQ(step(), IntakeRound::took);
  EXPECT_EQ(source_.acknowledged.size(), 2u);
  EXPECT_EQ(due(), 1u);
  EXPECT_EQ(quarantined(), std::multiset<Reason>{Reason::too_large});
}

TEST_F(IntakeTest, AFullSpool_PausesTheSource_AndGoesOnWhenThereIsRoom) {
  world_.forget();
  world_.options.limits.max_records = 100;
  rules_.batch = 50;
  begin();
  arrive(1, 600);
  for (int round = 0; round < 10; ++round) {
    (void)step();
    ASSERT_TRUE(world_.maintain());
  }
  const std::size_t taken = source_.acknowledged.size();
  EXPECT_LT(taken, 300u);
  EXPECT_EQ(due(), taken);
  EXPECT_TRUE(source_.paused);
  const int pulls = source_.pulls;
  for (int round = 0; round < 10; ++round) EXPECT_EQ(step(), IntakeRound::paused);
  EXPECT_EQ(source_.pulls, pulls) << "pulled although the spool is full";

  for (int round = 0; round < 100 && source_.acknowledged.size() < 600; ++round) {
    ASSERT_GE(world_.deliver(world_.hub), 0);
    ASSERT_TRUE(world_.maintain(5));
    (void)step();
  }
  EXPECT_EQ(source_.acknowledged.size(), 600u);
}

TEST_F(IntakeTest, WhatTheDiskHasNoRoomFor_IsKeptAndOfferedAgain) {
  rules_.batch = 50;
  intake_.emplace(source_, *world_.spool, *router_, *dead_letters_, rules_, progress_);
  arrive(1, 5000);
  world_.fs.fail_next({FaultKind::full, true});
  int round = 0;
  while (step() == IntakeRound::took) ASSERT_LT(++round, 100) << "the journal has no end";
  const std::size_t kept = intake_->in_hand();
  EXPECT_EQ(kept, 50u);
  const int pulls = source_.pulls;
  (void)step();
  EXPECT_EQ(source_.pulls, pulls);
  EXPECT_EQ(intake_->in_hand(), kept);

  world_.fs.clear_faults();
  for (round = 0; round < 1000 && source_.acknowledged.size() < 5000; ++round) {
    (void)step();
    world_.clock.advance(100ms);
    ASSERT_TRUE(world_.maintain());
  }
  EXPECT_EQ(source_.acknowledged.size(), 5000u);
  for (std::size_t place = 0; place < source_.acknowledged.size(); ++place)
    ASSERT_EQ(source_.acknowledged[place], std::to_string(place + 1));
  EXPECT_EQ(due(), 5000u);
}

TEST_F(IntakeTest, WhateverFailsOnTheDisk_AcknowledgesNothing_AndEndsThisLife) {
  bool struck = true;
  for (std::uint64_t nth = 1; struck; ++nth) {
    ASSERT_LT(nth, 100u);
    world_.forget();
    world_.fs.restart_without_power_loss();
    begin();
    source_.acknowledged.clear();
    source_.waiting.clear();
    arrive(nth * 1000, 50);
    const std::uint64_t before = world_.fs.counts().struck;
    world_.fs.fail_at(world_.fs.steps() + nth, {FaultKind::io});
    const auto round = intake_->step(0s);
    struck = world_.fs.counts().struck > before;
    world_.fs.clear_faults();
    EXPECT_EQ(round.ok(), !struck) << nth;
    EXPECT_EQ(source_.acknowledged.size(), struck ? 0u : 50u) << nth;
    if (!struck) break;
    EXPECT_EQ(round.error().kind, ErrorKind::io);
    const auto again = intake_->step(0s);
    ASSERT_FALSE(again.ok()) << nth;
    EXPECT_EQ(again.error().kind, ErrorKind::io);
  }
}

TEST(MakeArrival, ARefusedMessage_KeepsTheRouteItWouldHaveTaken) {
  const Router router({{{"a.>"}, RouteNumber{7}, 2}});
  IntakeRules rules{"truck 7", {Strategy::message_id, MessageIdScope::global}, 1};
  Envelope envelope;
  envelope.subject = "a.b";
  envelope.origin = {"S", 5, 6};
  const Arrival refused = make_arrival(rules, router, envelope, Reason::none);
  EXPECT_EQ(refused.refused, Reason::no_identity);
  EXPECT_EQ(refused.route, RouteNumber{7});
  EXPECT_EQ(refused.priority, 2);
  EXPECT_EQ(refused.identity.key, "refused:truck%207:S:5:6");

  envelope.headers = {{"Nats-Msg-Id", "m1"}};
  const Arrival taken = make_arrival(rules, router, envelope, Reason::none);
  EXPECT_EQ(taken.refused, Reason::none);
  EXPECT_EQ(taken.identity.key, "msg:m1");
  EXPECT_EQ(taken.envelope, envelope);

  EXPECT_EQ(make_arrival(rules, router, envelope, Reason::undecodable_headers).refused, Reason::undecodable_headers);
}

TEST(MakeArrival, ARouteWithAnIdentity_OverridesThatOfTheSource) {
  const IdentityRule field{Strategy::payload_field, {}, *parse_field_path("order.id")};
  const Router router({
      {{"orders.>"}, RouteNumber{1}, kNormalPriority, field},
      {{"log.>"}, RouteNumber{2}, kNormalPriority, IdentityRule{Strategy::payload_hash}},
      {{">"}, RouteNumber{3}, kNormalPriority, std::nullopt},
  });
  const IntakeRules rules{"truck-07", {Strategy::message_id, MessageIdScope::site}, 1};
  Envelope envelope;
  envelope.origin = {"S", 5, 6};
  envelope.headers = {{"Nats-Msg-Id", "m1"}};
  const std::string_view body = R"({"order":{"id":4711}})";
  envelope.payload.assign(body.begin(), body.end());
  const auto arrive = [&](const char* subject) {
    envelope.subject = subject;
    return make_arrival(rules, router, envelope, Reason::none);
  };

  EXPECT_EQ(arrive("orders.new").identity.key, "field:order.id:number:4711");
  EXPECT_EQ(arrive("orders.new").identity.strategy, Strategy::payload_field);
  EXPECT_TRUE(arrive("log.a").identity.key.starts_with("hash:log.a:"));
  EXPECT_EQ(arrive("log.a").identity.strategy, Strategy::payload_hash);
  EXPECT_EQ(arrive("x").identity.key, "msg:truck-07:m1");
  EXPECT_EQ(arrive("x").identity.strategy, Strategy::message_id);

  envelope.payload = {'x'};
  const Arrival refused = arrive("orders.new");
  EXPECT_EQ(refused.refused, Reason::not_json);
  EXPECT_EQ(refused.route, RouteNumber{1});
  EXPECT_EQ(refused.identity.key, "refused:truck-07:S:5:6");
  EXPECT_EQ(refused.identity.strategy, Strategy::payload_field);
}

}  // namespace
}  // namespace holdfast
