// What was said of records and the disk does not know yet.
#include "spool/unwritten.h"

#include <gtest/gtest.h>

#include "tests/support/simulated_clock.h"

namespace holdfast {
namespace {

constexpr TargetNumber kHub{1}, kArchive{2};

class UnwrittenTest : public testing::Test {
 protected:
  static Rejection rejection(Sequence sequence, TargetNumber target = kHub) {
    return {sequence, {}, target, Reason::rejected, {}};
  }

  Manifest manifest_;
  SimulatedClock clock_;
  JournalCustody custody_{manifest_, clock_};
  Unwritten unwritten_{custody_};
};

TEST_F(UnwrittenTest, SettlementsOfFiledRecords_HideThemUntilTheyAreWritten_AndKeepTheirOrderWhenThatFails) {
  for (Sequence sequence = 1; sequence <= 3; ++sequence) unwritten_.add_filed({kHub, sequence});
  const auto taken = unwritten_.take_filed(2);
  EXPECT_EQ(taken, (std::vector<TargetSettlement>{{kHub, 1}, {kHub, 2}}));
  EXPECT_TRUE(unwritten_.hides(1, kHub));
  EXPECT_FALSE(unwritten_.hides(1, kArchive));
  unwritten_.put_back_filed(taken);
  EXPECT_EQ(unwritten_.settlements(), 3u);
  const auto all = unwritten_.take_filed(10);
  EXPECT_EQ(all, (std::vector<TargetSettlement>{{kHub, 1}, {kHub, 2}, {kHub, 3}}));
  unwritten_.filed_is_written(all);
  EXPECT_FALSE(unwritten_.hides(1, kHub));
}

TEST_F(UnwrittenTest, ASettlementInTheJournal_WaitsALittleForACommitToRideOn) {
  const Nanoseconds now = std::chrono::seconds(5);
  EXPECT_FALSE(unwritten_.done_is_due(now));
  unwritten_.add_done({kHub, 1}, now);
  unwritten_.add_done({kHub, 2}, now + std::chrono::milliseconds(199));
  EXPECT_FALSE(unwritten_.done_is_due(now + std::chrono::milliseconds(199)));
  EXPECT_TRUE(unwritten_.done_is_due(now + std::chrono::milliseconds(200))) << "by the oldest";
  EXPECT_EQ(unwritten_.take_done().size(), 2u);
  EXPECT_FALSE(unwritten_.done_is_due(now + std::chrono::hours(1)));
}

TEST_F(UnwrittenTest, RejectionsAboveTheBound_AreNotHidden_AndAskedForAgainOnceThereIsRoom) {
  custody_.target(kHub);
  Sequence last = 0;
  for (bool all = true; all;) {
    unwritten_.reject(rejection(++last), kHub);
    all = unwritten_.hides(last, kHub);
    ASSERT_LE(last, 100'000u) << "nothing bounds them";
  }
  EXPECT_FALSE(unwritten_.is_rejected(last));
  unwritten_.ask_for_forgotten();
  EXPECT_FALSE(custody_.take_sent_back()) << "there is no room for them yet";
  while (unwritten_.take_rejection()) {
  }
  unwritten_.ask_for_forgotten();
  EXPECT_TRUE(custody_.take_sent_back());
  unwritten_.ask_for_forgotten();
  EXPECT_FALSE(custody_.take_sent_back()) << "once";
}

TEST_F(UnwrittenTest, ARejectionThatWaitsForAnothersWord_IsRememberedForItsTarget_UntilTheRecordLeaves) {
  unwritten_.reject(rejection(4), kHub);
  unwritten_.reject(rejection(4, kArchive), kArchive);
  while (const auto one = unwritten_.take_rejection()) unwritten_.remember(*one);
  ASSERT_NE(unwritten_.remembered(4, kHub), nullptr);
  EXPECT_NE(unwritten_.remembered(4, kArchive), nullptr);
  EXPECT_EQ(unwritten_.remembered(5, kHub), nullptr);
  unwritten_.forget(4);
  EXPECT_EQ(unwritten_.remembered(4, kHub), nullptr);
  EXPECT_FALSE(unwritten_.hides(4, kHub));
  EXPECT_FALSE(unwritten_.hides(4, kArchive));
}

}  // namespace
}  // namespace holdfast
