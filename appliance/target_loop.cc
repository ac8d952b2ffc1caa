#include "appliance/target_loop.h"

#include <random>
#include <utility>

namespace holdfast {
namespace {

// A step ends by the target's own deadlines, unless a sync or a slow link takes its time.
constexpr Nanoseconds kStepBound = std::chrono::minutes(10);

std::uint64_t any_seed() {
  std::random_device dice;
  return (std::uint64_t{dice()} << 32) | dice();
}

}  // namespace

TargetLoop::TargetLoop(std::unique_ptr<Target> target, Spool& spool, ForwarderOptions options, EndOfLife end)
    : name_(options.name),
      target_(std::move(target)),
      forwarder_(spool, *target_, system_clock(), std::move(options), any_seed()),
      end_(std::move(end)) {
  forwarder_.on_wake([this] { worker_->wake(); });
  worker_ = std::make_unique<Worker>("to-" + name_, [this] { return step(); });
}

std::optional<Nanoseconds> TargetLoop::step() {
  progress_.begin(kStepBound);
  const auto rest = forwarder_.step();
  progress_.end();
  if (rest) return *rest;
  end_(rest.error());
  return std::nullopt;
}

void TargetLoop::order(TargetOrder order) {
  switch (order) {
    case TargetOrder::hold:
      return forwarder_.hold();
    case TargetOrder::resume:
      return forwarder_.resume();
    case TargetOrder::kick:
      return forwarder_.kick();
  }
}

bool TargetLoop::hung(Nanoseconds now) const {
  if (!progress_.overdue(now)) return false;
  const auto settled = forwarder_.status().last_settled;
  return !settled || system_clock().monotonic() - *settled > kStepBound;
}

TargetView TargetLoop::look(Nanoseconds now) {
  const FateCounts fates = forwarder_.status().window.fates;
  per_second_.store(meter_.note(now, fates.delivered + fates.duplicates), std::memory_order_relaxed);
  return view();
}

TargetView TargetLoop::view() const {
  return {forwarder_.status(), per_second_.load(std::memory_order_relaxed), hung(Progress::now())};
}

}  // namespace holdfast
