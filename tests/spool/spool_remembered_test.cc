// How long an identity is remembered, and what is known of the stream that its message came from.
#include <gtest/gtest.h>

#include "tests/support/spool_world.h"

namespace holdfast {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

class SpoolRemembered : public testing::TestWithParam<Strategy> {
 protected:
  void SetUp() override {
    world_.options.ledger_window = hours(16);
    world_.options.source_streams = {"TELEMETRY"};
    ASSERT_TRUE(world_.open()) << world_.last_error;
  }

  Arrival message(std::uint64_t number) {
    Arrival arrival = world_.message(number);
    if (GetParam() != Strategy::stream_sequence) arrival.identity = {"msg:" + std::to_string(number), GetParam()};
    return arrival;
  }
  VerdictKind put(std::uint64_t number) {
    const auto verdicts = world_.spool->put_batch(std::vector<Arrival>{message(number)});
    EXPECT_TRUE(verdicts.ok());
    return verdicts.ok() ? verdicts->front().kind : VerdictKind::refused;
  }
  // All has left, and the journal is empty: what is known now only the ledger knows.
  void start_again() {
    while (world_.deliver(world_.hub) > 0) {
    }
    ASSERT_TRUE(world_.close());
    world_.forget();
    ASSERT_TRUE(world_.open()) << world_.last_error;
    ASSERT_TRUE(world_.settle_down());
  }
  void pass(Nanoseconds time) {
    world_.clock.advance(time);
    for (int i = 0; i < 30; ++i) {
      world_.clock.advance(std::chrono::seconds(2));
      ASSERT_TRUE(world_.maintain());
    }
  }

  SpoolWorld world_;
};

TEST_P(SpoolRemembered, WhatIsNotAcknowledged_IsNotForgottenForItsAge) {
  for (std::uint64_t number = 1; number <= 1000; ++number) ASSERT_EQ(put(number), VerdictKind::accepted);
  start_again();
  pass(hours(40));
  EXPECT_EQ(put(1), VerdictKind::duplicate) << "the source has not said anything of its stream";
  world_.spool->note_stream("local", {"TELEMETRY", 1, 1, std::nullopt});
  pass(hours(40));
  EXPECT_EQ(put(1), VerdictKind::duplicate) << "its acknowledgement may not have arrived";
  for (int i = 0; i < 3; ++i) {
    world_.spool->note_stream("local", {"TELEMETRY", 1001, 1001, minutes(1)});
    pass(hours(20));
  }
  EXPECT_EQ(put(1), VerdictKind::accepted);
}

TEST_P(SpoolRemembered, ASecondSourceOfTheStream_IsWaitedFor) {
  world_.options.source_streams = {"TELEMETRY", "TELEMETRY"};
  start_again();
  ASSERT_EQ(put(1), VerdictKind::accepted);
  start_again();
  for (int i = 0; i < 3; ++i) {
    world_.spool->note_stream("local", {"TELEMETRY", 1001, 1001, minutes(1)});
    pass(hours(20));
  }
  EXPECT_EQ(put(1), VerdictKind::duplicate);
}

// How a source finds out that its stream went back, whatever it identifies its messages by.
TEST_P(SpoolRemembered, PlacesInTheStream_AreKnownInEveryLife) {
  for (std::uint64_t number = 3; number <= 50; ++number) ASSERT_EQ(put(number), VerdictKind::accepted);
  const auto expect_known = [&](const char* when) {
    const auto last = world_.spool->last_committed("TELEMETRY", 1000);
    ASSERT_TRUE(last.ok() && last->size() == 1) << when;
    EXPECT_EQ(last->front().sequence, 50u) << when;
    EXPECT_EQ(last->front().timestamp_ns, message(50).envelope.origin.timestamp_ns) << when;
    EXPECT_EQ(world_.spool->last_committed("TELEMETRY", 20)->front().sequence, 20u) << when;
    EXPECT_TRUE(world_.spool->last_committed("TELEMETRY", 2)->empty()) << when;
    EXPECT_EQ(*world_.spool->first_committed("TELEMETRY"), 3u) << when;
    EXPECT_TRUE(world_.spool->last_committed("OTHER", 1000)->empty()) << when;
  };
  expect_known("in the journal of the life that took them");
  world_.forget();
  world_.fs.lose_power(Loss::drop_all);
  ASSERT_TRUE(world_.open()) << world_.last_error;
  expect_known("in the journal, after a cut");
  start_again();
  expect_known("in the ledger");
}

TEST_P(SpoolRemembered, ASequenceGivenAgain_HasBothTimes) {
  ASSERT_EQ(put(7), VerdictKind::accepted);
  start_again();
  Arrival again = world_.message(8);
  again.envelope.origin = {"TELEMETRY", 7, 5};  // earlier: the clock went back, too
  again.identity = {GetParam() == Strategy::stream_sequence ? "seq:truck-07:TELEMETRY:7:5" : "msg:8", GetParam()};
  ASSERT_TRUE(world_.spool->put_batch(std::vector<Arrival>{again}).ok());
  for (const char* where : {"journal and ledger", "ledger"}) {
    const auto last = world_.spool->last_committed("TELEMETRY", 1000);
    ASSERT_TRUE(last.ok());
    EXPECT_EQ(last->size(), 2u) << where;
    start_again();
  }
}

// A duplicate is no record, and may be the newest message that the stream had when it went back.
TEST_P(SpoolRemembered, ADuplicate_AnswersForTheStream_AlsoAfterACut) {
  if (GetParam() == Strategy::stream_sequence) return;  // its place is its identity: no other message has it
  ASSERT_EQ(put(1), VerdictKind::accepted);
  Arrival again = message(1);
  again.envelope.origin.sequence = 50;
  const auto verdicts = world_.spool->put_batch(std::vector<Arrival>{again});
  ASSERT_TRUE(verdicts.ok());
  EXPECT_EQ(verdicts->front().kind, VerdictKind::duplicate);
  world_.forget();
  world_.fs.lose_power(Loss::drop_all);
  ASSERT_TRUE(world_.open()) << world_.last_error;
  EXPECT_EQ(world_.spool->last_committed("TELEMETRY", 1000)->front().sequence, 50u);
}

// Nor is a message that equals an earlier conflict.
TEST_P(SpoolRemembered, ARepeatedConflict_AnswersForTheStream_AlsoAfterACut) {
  if (GetParam() == Strategy::stream_sequence) return;  // as above
  ASSERT_EQ(put(1), VerdictKind::accepted);
  Arrival other = message(1);
  other.envelope.payload.push_back('!');
  for (const std::uint64_t sequence : {50, 51}) {
    other.envelope.origin.sequence = sequence;
    const auto verdicts = world_.spool->put_batch(std::vector<Arrival>{other});
    ASSERT_TRUE(verdicts.ok());
    EXPECT_EQ(verdicts->front().kind, sequence == 50 ? VerdictKind::conflict : VerdictKind::duplicate);
  }
  world_.forget();
  world_.fs.lose_power(Loss::drop_all);
  ASSERT_TRUE(world_.open()) << world_.last_error;
  EXPECT_EQ(world_.spool->last_committed("TELEMETRY", 1000)->front().sequence, 51u);
}

// Its place alone would have the duplicate taken for a redelivery of what nobody has.
TEST(SpoolRememberedToo, ADuplicatesPlace_IsNeverThereWithoutItsRecord) {
  bool ended = false;
  int remembered = 0;
  for (std::uint64_t step = 1; !ended && step < 100; ++step) {
    for (const FaultKind kind : {FaultKind::power_cut, FaultKind::io, FaultKind::full}) {
      SpoolWorld world;
      ASSERT_TRUE(world.open()) << world.last_error;
      Arrival first = world.message(1);
      first.identity = {"msg:1", Strategy::message_id};
      Arrival again = first;
      again.envelope.origin.sequence = 50;
      world.fs.fail_at(world.fs.steps() + step, {kind});
      const auto verdicts = world.spool->put_batch(std::vector<Arrival>{first, again});
      if (kind == FaultKind::power_cut) ended = verdicts.ok();
      world.forget();
      world.fs.clear_faults();
      world.fs.lose_power(Loss::keep_all);
      ASSERT_TRUE(world.open()) << world.last_error << ", step " << step;
      const auto last = world.spool->last_committed("TELEMETRY", 1000);
      ASSERT_TRUE(last.ok());
      if (last->empty() || last->front().sequence != 50) continue;
      ++remembered;
      EXPECT_EQ(world.due_count(world.hub), 1u) << "step " << step;
    }
  }
  EXPECT_TRUE(ended);
  EXPECT_GT(remembered, 0);
}

// Its id may be forgotten, or its source may name messages in another way by now.
TEST_P(SpoolRemembered, TheSameMessageUnderAnotherKey_IsARedelivery) {
  ASSERT_EQ(put(1), VerdictKind::accepted);
  start_again();
  Arrival renamed = world_.message(1);
  renamed.identity =
      GetParam() == Strategy::stream_sequence ? Identity{"msg:1", Strategy::message_id} : renamed.identity;
  const auto verdicts = world_.spool->put_batch(std::vector<Arrival>{renamed});
  ASSERT_TRUE(verdicts.ok());
  EXPECT_EQ(verdicts->front().kind, VerdictKind::duplicate);
  renamed.envelope.origin.timestamp_ns += 1;  // another message with that number
  renamed.identity.key += "0";
  EXPECT_EQ(world_.spool->put_batch(std::vector<Arrival>{renamed})->front().kind, VerdictKind::accepted);
}

TEST_P(SpoolRemembered, WhatWentElsewhere_AnswersForTheStream) {
  const Arrival letter = message(30);
  const Arrival* const gone[] = {&letter};
  ASSERT_TRUE(world_.spool->remember_places(gone).ok());
  world_.forget();
  world_.fs.lose_power(Loss::drop_all);
  ASSERT_TRUE(world_.open()) << world_.last_error;
  EXPECT_EQ(world_.spool->last_committed("TELEMETRY", 1000)->front().sequence, 30u);
  EXPECT_EQ(world_.spool->status().totals.taken, 0u);
}

// A message that was refused, or set aside as a conflict, stood in the stream all the same.
TEST_P(SpoolRemembered, WhatWentToQuarantine_AnswersForTheStream) {
  Arrival refused = message(9);
  refused.refused = Reason::no_identity;
  refused.identity = {"refused:truck-07:TELEMETRY:9:9000", Strategy::stream_sequence};
  ASSERT_TRUE(world_.spool->put_batch(std::vector<Arrival>{refused}).ok());
  EXPECT_EQ(world_.spool->last_committed("TELEMETRY", 1000)->size(), 1u);
  EXPECT_EQ(put(9), VerdictKind::duplicate) << "it is in quarantine: requeue brings it back";
}

INSTANTIATE_TEST_SUITE_P(Identities, SpoolRemembered, testing::Values(Strategy::stream_sequence, Strategy::message_id),
                         [](const auto& param) { return std::string(strategy_text(param.param)); });

}  // namespace
}  // namespace holdfast
