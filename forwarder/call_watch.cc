#include "forwarder/call_watch.h"

#include <algorithm>

namespace holdfast {
namespace {

constexpr auto kLook = std::chrono::milliseconds(500);

std::int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

}  // namespace

CallWatch::CallWatch(Nanoseconds limit, std::function<void()> late) : limit_(limit), late_(std::move(late)) {
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

bool CallWatch::one_is_late() const {
  const std::int64_t now = now_ns();
  return std::any_of(begun_.begin(), begun_.end(), [&](const auto& begun) {
    const std::int64_t since = begun.load(std::memory_order_relaxed);
    return since != kFree && now - since > limit_.count();
  });
}

void CallWatch::watch(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, stop, kLook, [&] { return stop.stop_requested(); })) {
    if (one_is_late()) late_();
  }
}

}  // namespace holdfast
