#include "appliance/progress.h"

namespace holdfast {

Nanoseconds Progress::now() {
  return std::chrono::steady_clock::now().time_since_epoch();
}

void Progress::begin(Nanoseconds bound) {
  deadline_.store((now() + bound).count(), std::memory_order_relaxed);
}

void Progress::end() {
  deadline_.store(kAtRest, std::memory_order_relaxed);
}

bool Progress::overdue(Nanoseconds now) const {
  const std::int64_t deadline = deadline_.load(std::memory_order_relaxed);
  return deadline != kAtRest && now.count() > deadline;
}

}  // namespace holdfast
