#include "forwarder/call_watch.h"

#include <algorithm>

namespace holdfast {
namespace {

constexpr auto kLook = std::chrono::milliseconds(500);

std::int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

}  // namespace

CallWatch::CallWatch(Nanoseconds limit, std::function<std::uint64_t()> progress, std::function<void()> late)
    : limit_(limit), progress_(std::move(progress)), late_(std::move(late)) {
  thread_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

CallWatch::~CallWatch() = default;

std::atomic<std::int64_t>& CallWatch::place() {
  const std::int64_t now = now_ns();
  for (;;) {
    for (auto& begun : begun_) {
      std::int64_t free = kFree;
      if (begun.compare_exchange_strong(free, now, std::memory_order_acquire, std::memory_order_relaxed)) return begun;
    }
    std::this_thread::yield();
  }
}

bool CallWatch::one_is_older_than(std::int64_t moment) const {
  return std::any_of(begun_.begin(), begun_.end(), [&](const auto& begun) {
    const std::int64_t since = begun.load(std::memory_order_relaxed);
    return since != kFree && since < moment;
  });
}

void CallWatch::watch(const std::stop_token& stop) {
  std::uint64_t reached = progress_();
  std::int64_t reached_at = now_ns();
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, stop, kLook, [&] { return stop.stop_requested(); })) {
    const std::int64_t now = now_ns();
    if (const std::uint64_t progress = progress_(); progress != reached) {
      reached = progress;
      reached_at = now;
    }
    if (now - reached_at > limit_.count() && one_is_older_than(now - limit_.count())) late_();
  }
}

}  // namespace holdfast
