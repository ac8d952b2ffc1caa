#include "appliance/worker.h"

#include <gtest/gtest.h>

#include <atomic>

#include "appliance/progress.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

constexpr Nanoseconds kLong = 20s;

// Counts steps, and can be waited for.
class Steps {
 public:
  void count() {
    const std::lock_guard lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  bool reached(int wanted) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLong, [&] { return count_ >= wanted; });
  }
  int so_far() {
    const std::lock_guard lock(mutex_);
    return count_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

TEST(Worker, StepsAgain_WithoutRestWhenThereIsNone) {
  Steps steps;
  Worker worker("t", [&]() -> std::optional<Nanoseconds> {
    steps.count();
    return 0s;
  });
  EXPECT_TRUE(steps.reached(1000));
  worker.stop();
  EXPECT_TRUE(worker.ended_by(Progress::now() + kLong));
}

TEST(Worker, RestsUntilItIsWoken) {
  Steps steps;
  Worker worker("t", [&]() -> std::optional<Nanoseconds> {
    steps.count();
    return 1h;
  });
  EXPECT_TRUE(steps.reached(1));
  worker.wake();
  EXPECT_TRUE(steps.reached(2));
  worker.stop();
  EXPECT_TRUE(worker.ended_by(Progress::now() + kLong));
}

TEST(Worker, AWakeDuringAStep_IsNotLost) {
  Steps steps;
  std::atomic<Worker*> self = nullptr;
  Worker worker("t", [&]() -> std::optional<Nanoseconds> {
    while (self == nullptr) std::this_thread::yield();
    if (steps.so_far() < 10) self.load()->wake();
    steps.count();
    return 1h;
  });
  self = &worker;
  EXPECT_TRUE(steps.reached(11));
  worker.stop();
  EXPECT_TRUE(worker.ended_by(Progress::now() + kLong));
}

TEST(Worker, EndsByItself) {
  Worker worker("t", []() -> std::optional<Nanoseconds> { return std::nullopt; });
  EXPECT_TRUE(worker.ended_by(Progress::now() + kLong));
}

TEST(Worker, OneThatHangs_IsNotWaitedForForEver) {
  std::atomic<bool> go = false;
  Steps begun;
  Worker worker("t", [&]() -> std::optional<Nanoseconds> {
    begun.count();
    while (!go) std::this_thread::yield();
    return 0s;
  });
  ASSERT_TRUE(begun.reached(1));
  worker.stop();
  EXPECT_FALSE(worker.ended_by(Progress::now() + 10ms));
  go = true;
  EXPECT_TRUE(worker.ended_by(Progress::now() + kLong));
}

}  // namespace
}  // namespace holdfast
