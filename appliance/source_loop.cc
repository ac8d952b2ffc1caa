#include "appliance/source_loop.h"

#include <utility>

namespace holdfast {
namespace {

using namespace std::chrono_literals;

constexpr Nanoseconds kPullWait = 1s;       // how long one pull waits for a message
constexpr Nanoseconds kPausedRest = 100ms;  // before the spool is asked again
constexpr Nanoseconds kIdleRest = 50ms;     // after a pull that did not wait: there is no connection
constexpr Nanoseconds kKeepAlive = 1s;

}  // namespace

SourceLoop::SourceLoop(std::unique_ptr<Source> source, std::unique_ptr<DeadLetters> dead_letters, Spool& spool,
                       const Router& router, IntakeRules rules, EndOfLife end)
    : source_(std::move(source)),
      dead_letters_(std::move(dead_letters)),
      intake_(*source_, spool, router, *dead_letters_, std::move(rules), progress_),
      end_(std::move(end)),
      took_at_(Progress::now().count()),
      keeper_("keep-alive",
              [this]() -> std::optional<Nanoseconds> {
                source_->keep_alive();
                return kKeepAlive;
              }),
      worker_("intake", [this] { return step(); }) {}

std::optional<Nanoseconds> SourceLoop::step() {
  const Nanoseconds began = Progress::now();
  const auto round = intake_.step(kPullWait);
  progress_.end();
  if (!round) {
    end_(round.error());
    return std::nullopt;
  }
  if (*round == IntakeRound::paused) return kPausedRest;
  const Nanoseconds now = Progress::now();
  if (*round == IntakeRound::idle) return now - began < kPullWait / 2 ? kIdleRest : 0s;
  took_at_.store(now.count(), std::memory_order_relaxed);
  return 0s;
}

void SourceLoop::stop() {
  worker_.stop();
  source_->interrupt();
  dead_letters_->interrupt();
}

bool SourceLoop::ended_by(Nanoseconds deadline) {
  if (!worker_.ended_by(deadline)) return false;
  keeper_.stop();
  return keeper_.ended_by(deadline);
}

bool SourceLoop::idle_for(Nanoseconds time, Nanoseconds now) const {
  return intake_.in_hand() == 0 && now.count() - took_at_.load(std::memory_order_relaxed) >= time.count();
}

SourceView SourceLoop::look(Nanoseconds now) {
  per_second_.store(meter_.note(now, source_->status().acknowledged), std::memory_order_relaxed);
  return view();
}

SourceView SourceLoop::view() const {
  return {source_->status(),        intake_.in_hand(), per_second_.load(std::memory_order_relaxed),
          overdue(Progress::now()), intake_.tallies(), dead_letters_->published()};
}

}  // namespace holdfast
