#include "forwarder/bounded_call.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

namespace holdfast {
namespace {

// Calls that are running, late ones included. Healthy ones are few (one for each connection that is being made or
// closed), so this many means that something hangs again and again.
constexpr int kMostCalls = 64;
std::atomic<int> running{0};

}  // namespace

struct BoundedCall::State {
  std::mutex mutex;
  std::condition_variable changed;
  bool returned = false;
};

std::optional<BoundedCall> BoundedCall::start(std::function<void()> work) {
  if (running.fetch_add(1) >= kMostCalls) {
    running.fetch_sub(1);
    return std::nullopt;
  }
  auto state = std::make_shared<State>();
  try {
    std::thread([state, work = std::move(work)]() mutable {
      work();
      work = nullptr;  // what it owned goes before it counts as returned
      running.fetch_sub(1);
      const std::lock_guard lock(state->mutex);
      state->returned = true;
      state->changed.notify_all();
    }).detach();
  } catch (const std::system_error&) {
    running.fetch_sub(1);
    return std::nullopt;
  }
  return BoundedCall(std::move(state));
}

bool BoundedCall::wait_until(Moment deadline) {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_until(lock, deadline, [&] { return state_->returned; });
}

}  // namespace holdfast
