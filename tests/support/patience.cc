#include "tests/support/patience.h"

#include <thread>

namespace holdfast {

bool eventually(const std::function<bool()>& condition, Nanoseconds limit, Nanoseconds pause) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(pause);
  }
  return true;
}

bool stays(const std::function<bool()>& condition, Nanoseconds time) {
  return !eventually([&] { return !condition(); }, time);
}

}  // namespace holdfast
