// The work of one call, shared: every piece is done once, whoever does it.
#include "spool/crew.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "tests/support/patience.h"

namespace holdfast {
namespace {

constexpr uid_t kNobody = 65534;

// How often each piece was done.
std::vector<int> do_all(Crew& crew, std::size_t count, std::size_t grain) {
  std::vector<int> done(count);
  crew.share(count, grain, [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) ++done[i];
  });
  return done;
}

TEST(Crew, EveryPieceIsDoneOnce_AndBeforeTheCallReturns) {
  for (const unsigned helpers : {0u, 1u, 3u}) {
    Crew crew(helpers);
    for (const std::size_t count : {0u, 1u, 15u, 16u, 17u, 1000u}) {
      for (const std::size_t grain : {1u, 16u, 5000u})
        EXPECT_EQ(do_all(crew, count, grain), std::vector<int>(count, 1)) << helpers << ' ' << count << ' ' << grain;
    }
  }
}

TEST(Crew, WithoutHelpers_WorksInOrderInTheCallersThread) {
  Crew crew(0);
  std::vector<std::size_t> order;
  crew.share(40, 16, [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) order.push_back(i);
  });
  ASSERT_EQ(order.size(), 40u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

// One piece waits for another, which only another thread can do.
TEST(Crew, HelpersWorkBesideTheCaller) {
  Crew crew(2);
  std::mutex mutex;
  std::condition_variable met;
  int there = 0;
  crew.share(2, 1, [&](std::size_t, std::size_t) {
    std::unique_lock lock(mutex);
    ++there;
    met.notify_all();
    met.wait(lock, [&] { return there == 2; });
  });
  EXPECT_EQ(there, 2);
}

// Longer than the caller looks for it without sleeping.
TEST(Crew, ASlowHelper_IsWaitedFor) {
  Crew crew(1);
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<bool> helper_came{false};
  bool helper_done = false;
  crew.share(2, 1, [&](std::size_t, std::size_t) {
    if (std::this_thread::get_id() == caller) {
      EXPECT_TRUE(eventually([&] { return helper_came.load(); }));
      return;
    }
    helper_came = true;
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
    EXPECT_TRUE(eventually([&] { return std::chrono::steady_clock::now() >= end; }));
    helper_done = true;
  });
  EXPECT_TRUE(helper_done);
}

[[noreturn]] void work_without_threads() {
  // Root may always have threads.
  const bool nobody = ::getuid() != 0 || ::setresuid(kNobody, kNobody, kNobody) == 0;
  const rlimit none{0, 0};
  if (!nobody || ::setrlimit(RLIMIT_NPROC, &none) != 0) std::_Exit(1);
  Crew crew(3);
  std::_Exit(do_all(crew, 100, 1) == std::vector<int>(100, 1) ? 0 : 2);
}

TEST(CrewDeathTest, WhereNoThreadsAreToBeHad_TheCallerDoesItAll) {
  EXPECT_EXIT(work_without_threads(), testing::ExitedWithCode(0), "");
}

TEST(Crew, CallsOfSeveralThreads_ShareTheHelpers) {
  Crew crew(2);
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int turn = 0; turn < 300; ++turn) {
        if (do_all(crew, 100, 3) != std::vector<int>(100, 1)) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace holdfast
