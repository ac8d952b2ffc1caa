#include "appliance/stream_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace holdfast {
namespace {

// A stream, its consumer and a ledger, in which a power cut can happen.
class World {
 public:
  void publish(int count) {
    for (int i = 0; i < count; ++i) stream_[++last_] = ++clock_;
  }
  // The server's clock; what it says from now on it has never said.
  void set_clock_back(std::int64_t by) { clock_ -= by; }
  // The consumer hands out the next; committed and acknowledged, or still in hand.
  void hand_out(bool acknowledge) {
    if (delivered_ >= last_) return;
    ++delivered_;
    if (stream_.count(delivered_) == 0) return;
    if (acknowledge) {
      ledger_.insert({delivered_, stream_[delivered_]});
      known_.insert({delivered_, stream_[delivered_]});
      if (work_queue) stream_.erase(delivered_);
    } else {
      pending_.insert(delivered_);
    }
  }
  // The stream loses its newest messages; the consumer stands where it stood.
  void go_back_to(std::uint64_t last) {
    stream_.erase(stream_.upper_bound(last), stream_.end());
    last_ = last;
    lost_memory_ = true;
  }
  void make_consumer_again(std::uint64_t resume_at) {
    delivered_ = resume_at - 1;
    pending_.clear();
    lost_memory_ = false;
  }
  void forget_before(std::uint64_t first) { stream_.erase(stream_.begin(), stream_.lower_bound(first)); }
  // As where it keeps one message of a subject.
  void keep_only(std::uint64_t first, std::uint64_t last) {
    stream_.erase(stream_.begin(), stream_.lower_bound(first));
    stream_.erase(stream_.upper_bound(last), stream_.end());
  }
  // But for the last before it.
  void ledger_forgets_before(std::uint64_t first) {
    const auto end = known_.lower_bound({first, INT64_MIN});
    if (end != known_.begin()) known_.erase(known_.begin(), std::prev(end));
  }

  Result<StreamVerdict> check(const StreamSeen& seen = {}) {
    StreamInfo stream;
    stream.created = "then";
    stream.work_queue = work_queue;
    stream.last_sequence = last_;
    stream.first_sequence = stream_.empty() ? last_ + 1 : stream_.begin()->first;
    ConsumerInfo consumer;
    consumer.delivered_sequence = delivered_;
    consumer.floor_sequence = floor();
    StreamQuestions questions;
    questions.committed = [&](std::uint64_t at_or_below) -> Result<std::vector<StreamPosition>> {
      std::vector<StreamPosition> found;
      for (auto at = known_.upper_bound({at_or_below, INT64_MAX}); at != known_.begin();) {
        --at;
        if (!found.empty() && found.back().sequence != at->first) break;
        found.push_back({0, at->first, at->second});
      }
      return found;
    };
    questions.stored = [&](std::uint64_t sequence) -> Result<std::optional<StoredMessage>> {
      ++asked;
      const auto at = stream_.find(sequence);
      if (at == stream_.end()) return std::optional<StoredMessage>{};
      return std::optional(StoredMessage{"s", at->first, at->second});
    };
    questions.next = [&](std::uint64_t at_or_above, const std::string&) -> Result<std::optional<StoredMessage>> {
      ++asked;
      const auto at = stream_.lower_bound(at_or_above);
      if (at == stream_.end()) return std::optional<StoredMessage>{};
      return std::optional(StoredMessage{"s", at->first, at->second});
    };
    // After a restart of ours nothing is in hand.
    questions.in_hand = [&](std::uint64_t sequence) { return !lost_memory_ && pending_.count(sequence) > 0; };
    return check_stream(stream, consumer, seen, questions);
  }

  // The consumer will not hand it out any more, and it was never committed.
  std::vector<std::uint64_t> skipped() const {
    std::vector<std::uint64_t> found;
    for (const auto& [sequence, time] : stream_) {
      if (sequence <= delivered_ && pending_.count(sequence) == 0 && ledger_.count({sequence, time}) == 0)
        found.push_back(sequence);
    }
    return found;
  }
  // What a new consumer must hand out again: it is not committed.
  std::optional<std::uint64_t> lowest_open() const {
    for (const auto& [sequence, time] : stream_) {
      if (ledger_.count({sequence, time}) == 0) return sequence;
    }
    return std::nullopt;
  }
  std::uint64_t last() const { return last_; }

  bool work_queue = false;
  int asked = 0;

 private:
  std::uint64_t floor() const { return pending_.empty() ? delivered_ : *pending_.begin() - 1; }
  std::map<std::uint64_t, std::int64_t> stream_;
  std::set<std::pair<std::uint64_t, std::int64_t>> ledger_,
      known_;  // what was committed, and what is still known of it
  std::set<std::uint64_t> pending_;
  std::uint64_t last_ = 0, delivered_ = 0;
  std::int64_t clock_ = 1'000;
  bool lost_memory_ = false;
};

TEST(StreamCheck, AHealthyStream_IsGood) {
  World world;
  EXPECT_FALSE(world.check()->went_back);
  world.publish(100);
  EXPECT_FALSE(world.check()->went_back);
  for (int i = 0; i < 60; ++i) world.hand_out(i % 7 != 0);
  EXPECT_FALSE(world.check()->went_back);
  world.forget_before(90);  // limits of the stream
  EXPECT_FALSE(world.check()->went_back);
}

TEST(StreamCheck, AnotherTimeOfCreation_IsAllAnew) {
  World world;
  world.publish(10);
  const auto verdict = world.check({"before", 5});
  EXPECT_TRUE(verdict->went_back);
  EXPECT_EQ(verdict->resume_at, 0u);
}

TEST(StreamCheck, LessThanWasSeen_WentBack) {
  World world;
  world.publish(10);
  EXPECT_TRUE(world.check({"then", 11})->went_back);
  EXPECT_FALSE(world.check({"then", 10})->went_back);
}

TEST(StreamCheck, BackAndManyNew_IsFoundThoughTheNumbersLookRight) {
  World world;
  world.publish(150);
  for (int i = 0; i < 150; ++i) world.hand_out(true);
  world.go_back_to(100);
  world.publish(60);
  ASSERT_EQ(world.skipped().size(), 50u);
  const auto verdict = world.check();
  EXPECT_TRUE(verdict->went_back);
  EXPECT_EQ(verdict->resume_at, 101u);
}

TEST(StreamCheck, WhatIsInHand_IsNotTakenForAnotherHistory) {
  World world;
  world.publish(150);
  for (int i = 0; i < 150; ++i) world.hand_out(true);
  world.go_back_to(100);
  world.publish(60);
  ASSERT_EQ(world.check()->resume_at, 101u);
  world.make_consumer_again(101);
  for (int i = 0; i < 20; ++i) world.hand_out(false);  // where earlier ones were committed
  EXPECT_FALSE(world.check()->went_back);
  for (int i = 0; i < 20; ++i) world.hand_out(true);
  EXPECT_FALSE(world.check()->went_back);
}

TEST(StreamCheck, UnacknowledgedOnes_ComeAgainToo) {
  World world;
  world.publish(150);
  for (int i = 0; i < 150; ++i) world.hand_out(i != 49);  // the fiftieth is in hand
  world.go_back_to(100);
  world.publish(60);
  EXPECT_EQ(world.check()->resume_at, 50u);
}

// None of the newest that were committed is there any more, but for one that was not.
TEST(StreamCheck, AStreamWithLargeHoles_IsAskedWhatItHas) {
  World world;
  world.publish(150);
  for (int i = 0; i < 150; ++i) world.hand_out(true);
  world.keep_only(90, 90);
  EXPECT_FALSE(world.check()->went_back) << "it stands where it stood";
  world.go_back_to(100);
  world.publish(1);
  world.keep_only(101, 101);
  world.publish(99);
  world.keep_only(101, 101);
  ASSERT_EQ(world.skipped(), std::vector<std::uint64_t>{101});
  const auto verdict = world.check();
  EXPECT_TRUE(verdict->went_back);
  EXPECT_LE(verdict->resume_at, 101u);
}

// A copy that is older than all that the ledger knows: nothing tells what of it is new.
TEST(StreamCheck, BackBehindWhatIsRemembered_IsAllAnew) {
  World world;
  world.publish(1000);
  for (int i = 0; i < 1000; ++i) world.hand_out(true);
  world.ledger_forgets_before(900);
  EXPECT_FALSE(world.check()->went_back);
  world.go_back_to(100);
  world.publish(50);
  ASSERT_EQ(world.skipped().size(), 50u);
  const auto verdict = world.check();
  EXPECT_TRUE(verdict->went_back);
  EXPECT_EQ(verdict->resume_at, 0u);
}

TEST(StreamCheck, AnErrorOfAQuestion_IsNoVerdict) {
  StreamInfo stream;
  stream.last_sequence = 10;
  ConsumerInfo consumer;
  consumer.delivered_sequence = 5;
  StreamQuestions questions;
  questions.committed = [](std::uint64_t) -> Result<std::vector<StreamPosition>> {
    return Error{ErrorKind::unavailable, "not now"};
  };
  EXPECT_FALSE(check_stream(stream, consumer, {}, questions).ok());
}

// Of what was committed at one sequence none is the true one for ever: both histories may come back.
TEST(StreamCheck, NewOnesWithEarlierTimes_AreFound_AndOnceCommittedAgree) {
  World world;
  world.publish(150);
  for (int i = 0; i < 150; ++i) world.hand_out(true);
  world.go_back_to(100);
  world.set_clock_back(1'000'000);
  world.publish(60);
  ASSERT_TRUE(world.check()->went_back);
  world.make_consumer_again(101);
  for (int i = 0; i < 60; ++i) world.hand_out(true);
  EXPECT_FALSE(world.check()->went_back) << "the later commit has the earlier time";
}

// Whatever is lost, when and in which state: what would be skipped is found, and the new consumer begins low enough.
TEST(StreamCheck, RandomHistories_NothingIsSkipped) {
  int found = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const auto up_to = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most + 1)); };
    World world;
    world.work_queue = seed % 4 == 0;
    world.publish(1 + up_to(200));
    const int holes = up_to(30);
    for (int i = up_to(250); i > 0; --i) world.hand_out(up_to(100) >= holes);
    if (!world.work_queue && seed % 3 == 0) world.forget_before(random() % 100);
    if (seed % 7 == 0) world.ledger_forgets_before(random() % 250);
    ASSERT_TRUE(world.skipped().empty());
    ASSERT_FALSE(world.check()->went_back);
    world.go_back_to(world.last() - random() % (world.last() + 1));
    if (seed % 5 == 0) world.set_clock_back(1'000'000);
    world.publish(up_to(300));
    const auto verdict = world.check();
    ASSERT_TRUE(verdict.ok());
    EXPECT_LT(world.asked, 200);
    if (world.skipped().empty()) continue;
    ASSERT_TRUE(verdict->went_back);
    ++found;
    EXPECT_LE(verdict->resume_at, *world.lowest_open());
  }
  EXPECT_GT(found, 300);
}

}  // namespace
}  // namespace holdfast
