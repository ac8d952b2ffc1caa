// Waits after failures: capped, fully jittered after the cap, reset by success, and never shorter than was asked for.
#include "forwarder/backoff.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "tests/support/simulated_loss.h"

namespace holdfast {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

TEST(Backoff, CeilingDoublesUntilItIsCapped) {
  const BackoffOptions options{.first = seconds(1), .cap = seconds(60)};
  const std::vector<int> expected{0, 1, 2, 4, 8, 16, 32, 60, 60, 60};
  for (std::uint32_t failures = 0; failures < expected.size(); ++failures) {
    EXPECT_EQ(Backoff::ceiling(options, failures), seconds(expected[failures])) << failures;
  }
  EXPECT_EQ(Backoff::ceiling(options, std::numeric_limits<std::uint32_t>::max()), seconds(60));
}

TEST(Backoff, CeilingNeverOverflowsNorFalls) {
  const std::vector<BackoffOptions> all{
      {.first = Nanoseconds(1), .cap = Nanoseconds::max()},
      {.first = Nanoseconds::max(), .cap = Nanoseconds::max()},
      {.first = hours(1), .cap = seconds(1)},
      {.first = Nanoseconds(0), .cap = seconds(1)},
      {.first = seconds(-1), .cap = seconds(-1)},
  };
  for (const BackoffOptions& options : all) {
    Nanoseconds before{0};
    for (std::uint32_t failures = 0; failures < 200; ++failures) {
      const Nanoseconds now = Backoff::ceiling(options, failures);
      EXPECT_GE(now, before);
      EXPECT_LE(now, std::max(options.cap, Nanoseconds(0)));
      before = now;
    }
  }
}

TEST(Backoff, WaitIsWithinTheCeiling_WhateverTheDice) {
  Dice dice(1);
  for (int run = 0; run < 200; ++run) {
    const BackoffOptions options{.first = Nanoseconds(1 + dice.below(5'000'000'000)),
                                 .cap = Nanoseconds(1 + dice.below(100'000'000'000))};
    Backoff backoff;
    for (std::uint32_t failures = 1; failures < 40; ++failures) {
      const Nanoseconds wait = backoff.next(options, dice.roll());
      EXPECT_GE(wait, Nanoseconds(0));
      EXPECT_LE(wait, Backoff::ceiling(options, failures));
      EXPECT_EQ(backoff.failures(), failures);
    }
  }
}

// Jitter before the cap would put most of them at exactly the cap.
TEST(Backoff, AfterTheCap_AFleetIsStillSpreadOverTheWholeOfIt) {
  const BackoffOptions options{.first = seconds(1), .cap = seconds(60)};
  std::set<Nanoseconds> waits;
  std::array<int, 6> tenths{};
  for (std::uint64_t box = 0; box < 6000; ++box) {
    Dice dice(box);
    Backoff backoff;
    for (int failures = 1; failures < 30; ++failures) (void)backoff.next(options, dice.roll());
    const Nanoseconds wait = backoff.next(options, dice.roll());
    waits.insert(wait);
    ++tenths.at(std::min<std::size_t>(5, static_cast<std::size_t>(wait / seconds(10))));
  }
  EXPECT_GT(waits.size(), 5990U);
  for (const int count : tenths) EXPECT_NEAR(count, 1000, 150);
}

TEST(Backoff, BothEndsAreReached) {
  const BackoffOptions options{.first = Nanoseconds(7), .cap = seconds(60)};
  std::set<Nanoseconds> waits;
  for (std::uint64_t random = 0; random < 64; ++random) {
    Backoff backoff;
    waits.insert(backoff.next(options, random));
  }
  EXPECT_EQ(waits.size(), 8U);
  EXPECT_EQ(*waits.begin(), Nanoseconds(0));
  EXPECT_EQ(*waits.rbegin(), Nanoseconds(7));
}

TEST(Backoff, SuccessStartsItAnew) {
  const BackoffOptions options{.first = seconds(1), .cap = seconds(60)};
  Backoff backoff;
  for (int failures = 0; failures < 20; ++failures) (void)backoff.next(options, kMost);
  backoff.reset();
  EXPECT_EQ(backoff.failures(), 0U);
  EXPECT_LE(backoff.next(options, kMost), seconds(1));
}

TEST(Backoff, SameDiceSameWaits) {
  const BackoffOptions options;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Dice one(seed);
    Dice other(seed);
    Backoff a;
    Backoff b;
    for (int n = 0; n < 20; ++n) EXPECT_EQ(a.next(options, one.roll()), b.next(options, other.roll()));
  }
}

TEST(Backoff, WhatWasAskedForIsNeverCutShort_AndTheJitterComesOnTop) {
  const BackoffOptions options{.first = seconds(1), .cap = seconds(8)};
  std::set<Nanoseconds> waits;
  for (std::uint64_t box = 0; box < 100; ++box) {
    Dice dice(box);
    Backoff backoff;
    const Nanoseconds wait = backoff.next(options, dice.roll(), seconds(90));
    EXPECT_GE(wait, seconds(90));
    EXPECT_LE(wait, seconds(91));
    waits.insert(wait);
  }
  EXPECT_GT(waits.size(), 90U);
}

TEST(Backoff, WhatWasAskedForIsBounded) {
  const BackoffOptions options{.first = seconds(1), .cap = seconds(8), .longest_asked = hours(1)};
  Backoff backoff;
  EXPECT_LE(backoff.next(options, kMost, Nanoseconds::max()), hours(1) + seconds(1));
  EXPECT_EQ(asked_wait(options, hours(24 * 365 * 50)), hours(1));
  EXPECT_EQ(asked_wait(options, seconds(-5)), Nanoseconds(0));
  EXPECT_EQ(asked_wait(options, std::nullopt), Nanoseconds(0));
  EXPECT_EQ(asked_wait(options, milliseconds(1)), milliseconds(1));
}

}  // namespace
}  // namespace holdfast
