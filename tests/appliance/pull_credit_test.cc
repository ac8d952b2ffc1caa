#include "appliance/pull_credit.h"

#include <gtest/gtest.h>

#include "appliance/in_hand.h"

namespace holdfast {
namespace {

using std::chrono::seconds;

const Moment kStart = Moment(seconds(1000));

TEST(PullCredit, MessagesThatCome_AreTakenOff) {
  PullCredit credit;
  credit.ask(3, seconds(5), kStart);
  credit.ask(3, seconds(5), kStart);
  EXPECT_EQ(credit.open(), 6u);
  for (int i = 0; i < 5; ++i) credit.came();
  EXPECT_EQ(credit.open(), 1u);
  EXPECT_TRUE(credit.waiting());
  credit.came();
  EXPECT_FALSE(credit.waiting());
  credit.came();  // a late one of an earlier request
  EXPECT_EQ(credit.open(), 0u);
}

TEST(PullCredit, AnEndedRequest_TakesWhatItDidNotBring) {
  PullCredit credit;
  const auto first = credit.ask(10, seconds(5), kStart);
  const auto second = credit.ask(10, seconds(5), kStart);
  credit.came();
  EXPECT_TRUE(credit.ended(first, 9));
  EXPECT_EQ(credit.open(), 10u);
  EXPECT_FALSE(credit.ended(first, 9)) << "told twice";
  EXPECT_EQ(credit.open(), 10u);
  EXPECT_TRUE(credit.ended(second, 4));  // six are on their way, or were lost: nothing more will come
  EXPECT_EQ(credit.open(), 0u);
  EXPECT_FALSE(credit.ended(99, 5));
}

// What nats-server 2.9 and 2.10 say; "Batch Completed" came with 2.10, at the end of every request with max_bytes.
TEST(PullCredit, AServedRequest_IsToldFromARefusedOne) {
  EXPECT_TRUE(ends_served_request(404, "No Messages"));
  EXPECT_TRUE(ends_served_request(408, "Request Timeout"));
  EXPECT_TRUE(ends_served_request(409, "Message Size Exceeds MaxBytes"));
  EXPECT_TRUE(ends_served_request(409, "Batch Completed"));
  EXPECT_FALSE(ends_served_request(409, "Consumer Deleted"));
  EXPECT_FALSE(ends_served_request(409, "Exceeded MaxRequestBatch of 1"));
  EXPECT_FALSE(ends_served_request(503, ""));
}

TEST(PullCredit, AnEndThatGotLost_ExpiresBySelf) {
  PullCredit credit;
  credit.ask(10, seconds(5), kStart);
  credit.expire(kStart + seconds(6));
  EXPECT_EQ(credit.open(), 10u);
  credit.expire(kStart + seconds(8));
  EXPECT_EQ(credit.open(), 0u);
  EXPECT_FALSE(credit.waiting());
}

TEST(PullCredit, Silence_IsOnlyThatOfWhoWasAsked) {
  PullCredit credit;
  EXPECT_FALSE(credit.silent(kStart + seconds(100), seconds(5)));
  credit.ask(10, seconds(60), kStart);
  EXPECT_FALSE(credit.silent(kStart + seconds(5), seconds(5)));
  EXPECT_TRUE(credit.silent(kStart + seconds(6), seconds(5)));
  credit.heard(kStart + seconds(6));
  EXPECT_FALSE(credit.silent(kStart + seconds(10), seconds(5)));
  credit.forget();
  EXPECT_FALSE(credit.silent(kStart + seconds(100), seconds(5)));
}

TEST(InHand, IsDueOnceAnAge) {
  InHand in_hand;
  in_hand.add(1, "one", kStart);
  in_hand.add(2, "two", kStart + seconds(3));
  EXPECT_TRUE(in_hand.due(seconds(10), kStart + seconds(9)).empty());
  EXPECT_EQ(in_hand.due(seconds(10), kStart + seconds(10)), std::vector<std::string>{"one"});
  EXPECT_TRUE(in_hand.due(seconds(10), kStart + seconds(11)).empty());
  EXPECT_EQ(in_hand.due(seconds(10), kStart + seconds(13)), std::vector<std::string>{"two"});
  in_hand.remove(1);
  EXPECT_FALSE(in_hand.has(1));
  EXPECT_TRUE(in_hand.has(2));
}

TEST(InHand, ARedelivery_TakesThePlaceOfTheEarlierOne) {
  InHand in_hand;
  in_hand.add(1, "first", kStart);
  in_hand.add(1, "second", kStart + seconds(30));
  EXPECT_EQ(in_hand.size(), 1u);
  EXPECT_TRUE(in_hand.due(seconds(10), kStart + seconds(31)).empty());
  EXPECT_EQ(in_hand.due(seconds(10), kStart + seconds(40)), std::vector<std::string>{"second"});
}

}  // namespace
}  // namespace holdfast
