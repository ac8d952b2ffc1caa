#include "appliance/acknowledged_mark.h"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

Moment at(int seconds) {
  return Moment() + std::chrono::seconds(seconds);
}

ConsumerInfo consumer(const char* created, std::uint64_t delivered, std::uint64_t floor) {
  ConsumerInfo info;
  info.created = created;
  info.delivered_sequence = delivered;
  info.floor_sequence = floor;
  info.pending = 100;
  info.unacknowledged = delivered - floor;
  return info;
}

TEST(AcknowledgedMark, FollowsTheFloorOfABusyConsumer) {
  AcknowledgedMark mark;
  EXPECT_FALSE(mark.see(consumer("a", 10, 5), 10, at(1)));
  EXPECT_FALSE(mark.see(consumer("a", 20, 9), 20, at(2))) << "of the ten one is still out";
  EXPECT_EQ(mark.see(consumer("a", 30, 12), 30, at(3)), at(1));
  EXPECT_EQ(mark.see(consumer("a", 40, 35), 40, at(4)), at(3));
  EXPECT_EQ(mark.see(consumer("a", 50, 50), 50, at(5)), at(5)) << "all that there is";
}

// It hands out again what the earlier one had been told to have.
TEST(AcknowledgedMark, OfAConsumerMadeAgain_BeginsAnew) {
  AcknowledgedMark mark;
  EXPECT_EQ(mark.see(consumer("a", 50, 50), 50, at(1)), at(1));
  EXPECT_FALSE(mark.see(consumer("b", 0, 0), 50, at(2)));
  EXPECT_FALSE(mark.see(consumer("b", 40, 40), 50, at(3)));
  EXPECT_EQ(mark.see(consumer("b", 50, 50), 50, at(4)), at(4));
}

// Another source of the stream is ahead, with messages that this consumer never hands out.
TEST(AcknowledgedMark, OfAConsumerAtItsEnd_DoesNotWaitForTheMessagesOfOthers) {
  AcknowledgedMark mark;
  ConsumerInfo quiet = consumer("a", 20, 10);
  quiet.unacknowledged = 0;  // the others have moved it
  EXPECT_FALSE(mark.see(quiet, 5000, at(1)));
  quiet.pending = 0;
  EXPECT_EQ(mark.see(quiet, 5000, at(2)), at(2));
  EXPECT_EQ(mark.see(quiet, 9000, at(3)), at(3));
}

}  // namespace
}  // namespace holdfast
