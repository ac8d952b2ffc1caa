#include "spool/clock.h"

#include <sys/timex.h>

#include <atomic>
#include <ctime>

#include "spool/check.h"

namespace holdfast {

namespace {

Nanoseconds read_clock(clockid_t id) {
  timespec now{};
  CHECK(::clock_gettime(id, &now) == 0);
  return std::chrono::seconds(now.tv_sec) + Nanoseconds(now.tv_nsec);
}

bool kernel_trusts_wall_clock() {
  timex question{};
  const int state = ::adjtimex(&question);
  return state != -1 && state != TIME_ERROR && (question.status & STA_UNSYNC) == 0;
}

class SystemClock : public Clock {
 public:
  WallTime wall() const override { return {read_clock(CLOCK_REALTIME), trusted()}; }
  Nanoseconds monotonic() const override { return read_clock(CLOCK_BOOTTIME); }

 private:
  // The answer and when it was asked for are one word, so that no thread sees an answer with another's time.
  bool trusted() const {
    const std::int64_t now = monotonic().count();
    const std::int64_t known = known_.load(std::memory_order_relaxed);
    if (known != kNever && now - (known >> 1) < kAskAgain.count()) return (known & 1) != 0;
    const bool answer = kernel_trusts_wall_clock();
    known_.store(now * 2 + (answer ? 1 : 0), std::memory_order_relaxed);
    return answer;
  }

  static constexpr std::int64_t kNever = -1;
  static constexpr Nanoseconds kAskAgain = std::chrono::seconds(1);
  mutable std::atomic<std::int64_t> known_{kNever};  // time asked * 2 + answer
};

}  // namespace

const Clock& system_clock() {
  static const SystemClock clock;
  return clock;
}

}  // namespace holdfast
