#include "tests/support/patience.h"

#include <thread>

namespace holdfast {
namespace {

constexpr auto kPause = std::chrono::milliseconds(5);

}  // namespace

bool eventually(const std::function<bool()>& condition, Nanoseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

bool stays(const std::function<bool()>& condition, Nanoseconds time) {
  return !eventually([&] { return !condition(); }, time);
}

}  // namespace holdfast
