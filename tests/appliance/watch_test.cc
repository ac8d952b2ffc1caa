#include "appliance/watch.h"

#include <gtest/gtest.h>

#include "appliance/progress.h"
#include "appliance/rate_meter.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

const Attention kHub{"target_on_hold", "hub", "target hub takes nothing for 0 s", true};
const Attention kShelf{"target_on_hold", "shelf", "target shelf takes nothing", true};

TEST(Watch, WhatLasts_IsToldOnce_AndOnceWhenItIsOver) {
  Watch watch;
  EXPECT_TRUE(watch.look(10s, {kHub}).began.empty());
  EXPECT_TRUE(watch.look(12s, {kHub}).began.empty());
  const auto told = watch.look(13s, {kHub});
  ASSERT_EQ(told.began.size(), 1u);
  EXPECT_EQ(told.began[0].about, "hub");
  EXPECT_TRUE(watch.look(100s, {kHub}).began.empty());
  const auto over = watch.look(101s, {});
  EXPECT_TRUE(over.began.empty());
  ASSERT_EQ(over.ended.size(), 1u);
  EXPECT_TRUE(watch.look(102s, {}).ended.empty());
}

TEST(Watch, WhatPasses_IsNotWorthALine) {
  Watch watch;
  for (Nanoseconds now = 0s; now < 60s; now += 2s) {
    EXPECT_TRUE(watch.look(now, {kHub}).began.empty());
    const auto over = watch.look(now + 1s, {});
    EXPECT_TRUE(over.began.empty() && over.ended.empty());
  }
}

TEST(Watch, TheWords_AreThoseOfTheMoment) {
  Watch watch;
  (void)watch.look(0s, {kHub});
  Attention later = kHub;
  later.text = "target hub takes nothing for 5 s";
  EXPECT_EQ(watch.look(5s, {later}).began.at(0).text, later.text);
}

TEST(Watch, TwoTargets_AreTwoThings) {
  Watch watch;
  (void)watch.look(0s, {kHub});
  (void)watch.look(2s, {kHub, kShelf});
  EXPECT_EQ(watch.look(3s, {kHub, kShelf}).began.size(), 1u);
  EXPECT_EQ(watch.look(5s, {kHub, kShelf}).began.at(0).about, "shelf");
  EXPECT_EQ(watch.look(6s, {kShelf}).ended.at(0).about, "hub");
}

TEST(RateMeter, IsTheGrowthOfTheLastTenSeconds) {
  RateMeter meter;
  EXPECT_EQ(meter.note(0s, 0), 0);
  double rate = 0;
  for (int second = 1; second <= 60; ++second) rate = meter.note(second * 1s, static_cast<std::uint64_t>(second) * 100);
  EXPECT_DOUBLE_EQ(rate, 100);
  for (int second = 61; second <= 75; ++second) rate = meter.note(second * 1s, 6000);
  EXPECT_DOUBLE_EQ(rate, 0);
}

TEST(RateMeter, ACountThatBeganAnew_IsNoNegativeRate) {
  RateMeter meter;
  (void)meter.note(0s, 1000);
  EXPECT_EQ(meter.note(1s, 10), 0);
  EXPECT_DOUBLE_EQ(meter.note(2s, 20), 10);
  EXPECT_EQ(meter.note(2s, 30), 0);
}

TEST(Progress, IsOverdueOnlyWithinAStep) {
  Progress progress;
  EXPECT_FALSE(progress.overdue(Progress::now() + 1h));
  progress.begin(10s);
  EXPECT_FALSE(progress.overdue(Progress::now()));
  EXPECT_TRUE(progress.overdue(Progress::now() + 11s));
  progress.end();
  EXPECT_FALSE(progress.overdue(Progress::now() + 1h));
}

}  // namespace
}  // namespace holdfast
