#include "spool/clock.h"

#include <gtest/gtest.h>
#include <sys/timex.h>

#include <ctime>
#include <thread>
#include <vector>

#include "tests/support/simulated_clock.h"

namespace holdfast {
namespace {

using std::chrono::seconds;

Nanoseconds kernel_clock(clockid_t id) {
  timespec now{};
  EXPECT_EQ(::clock_gettime(id, &now), 0);
  return seconds(now.tv_sec) + Nanoseconds(now.tv_nsec);
}

TEST(SystemClock, Monotonic_CountsSinceBoot_AndNeverGoesBack) {
  const Clock& clock = system_clock();
  const Nanoseconds before = kernel_clock(CLOCK_BOOTTIME);
  Nanoseconds last = clock.monotonic();
  EXPECT_GE(last, before);
  for (int i = 0; i < 1000; ++i) {
    const Nanoseconds now = clock.monotonic();
    ASSERT_GE(now, last);
    last = now;
  }
  EXPECT_LE(last, kernel_clock(CLOCK_BOOTTIME));
}

TEST(SystemClock, Wall_IsTheKernels) {
  const Nanoseconds difference = system_clock().wall().since_1970 - kernel_clock(CLOCK_REALTIME);
  EXPECT_LT(difference, seconds(5));
  EXPECT_GT(difference, seconds(-5));
}

TEST(SystemClock, TheWallClock_IsTrustedWhenTheKernelSaysSo) {
  timex question{};
  const int state = ::adjtimex(&question);
  const bool trusted = state != -1 && state != TIME_ERROR && (question.status & STA_UNSYNC) == 0;
  EXPECT_EQ(system_clock().wall().trusted, trusted);
  EXPECT_EQ(system_clock().wall().trusted, trusted);
}

TEST(SystemClock, ManyThreads_MayAsk) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int k = 0; k < 1000; ++k) EXPECT_GT(system_clock().wall().since_1970, Nanoseconds(0));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(SimulatedClock, StandsStill_UntilItIsMoved) {
  SimulatedClock clock;
  const WallTime wall = clock.wall();
  const Nanoseconds monotonic = clock.monotonic();
  EXPECT_EQ(clock.monotonic(), monotonic);
  clock.advance(seconds(3));
  EXPECT_EQ(clock.monotonic(), monotonic + seconds(3));
  EXPECT_EQ(clock.wall().since_1970, wall.since_1970 + seconds(3));
  clock.set_wall(seconds(0), false);
  EXPECT_EQ(clock.wall().since_1970, seconds(0));
  EXPECT_FALSE(clock.wall().trusted);
  EXPECT_EQ(clock.monotonic(), monotonic + seconds(3));
  clock.set_trusted(true);
  EXPECT_TRUE(clock.wall().trusted);
  clock.reboot();
  EXPECT_LT(clock.monotonic(), monotonic);
}

}  // namespace
}  // namespace holdfast
