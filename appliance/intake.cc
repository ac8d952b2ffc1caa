#include "appliance/intake.h"

#include <utility>
#include <variant>

namespace holdfast {
namespace {

// Beyond what a source waits for by itself: its own deadlines (connect, acknowledge) are some seconds.
constexpr Nanoseconds kSourceBound = std::chrono::minutes(1);
// A sync on a worn-out card can take minutes and still succeed.
constexpr Nanoseconds kSyncBound = std::chrono::minutes(10);

}  // namespace

Arrival make_arrival(const IntakeRules& rules, const Router& router, Envelope envelope, Reason unreadable) {
  Arrival arrival;
  arrival.refused = unreadable;
  const IdentityRule* rule = &rules.identity;
  const auto routed = router.route(envelope);
  if (const Routed* way = std::get_if<Routed>(&routed)) {
    arrival.route = way->route;
    arrival.priority = way->priority;
    if (way->identity != nullptr) rule = way->identity;
  } else if (arrival.refused == Reason::none) {
    arrival.refused = std::get<Reason>(routed);
  }
  if (arrival.refused == Reason::none) {
    auto identified = identify(*rule, rules.site, envelope);
    if (Identity* identity = std::get_if<Identity>(&identified)) {
      arrival.identity = std::move(*identity);
    } else {
      arrival.refused = std::get<Reason>(identified);
    }
  }
  if (arrival.refused != Reason::none) arrival.identity = {refused_key(rules.site, envelope), rule->strategy};
  arrival.envelope = std::move(envelope);
  return arrival;
}

Intake::Intake(Source& source, Spool& spool, const Router& router, IntakeRules rules, Progress& progress)
    : source_(source), spool_(spool), router_(router), rules_(std::move(rules)), progress_(progress) {}

Result<IntakeRound> Intake::step(Nanoseconds wait) {
  const bool paused = spool_.pressure().paused();
  progress_.begin(wait + kSourceBound);
  source_.pause(paused);
  if (paused) return IntakeRound::paused;
  if (arrivals_.empty()) {
    auto pulled = source_.pull(rules_.batch, wait);
    if (!pulled) return IntakeRound::paused;
    if (pulled->empty()) return IntakeRound::idle;
    receive(std::move(*pulled));
  }
  return commit();
}

void Intake::receive(std::vector<Incoming> pulled) {
  incoming_ = std::move(pulled);
  arrivals_.reserve(incoming_.size());
  for (Incoming& one : incoming_)
    arrivals_.push_back(make_arrival(rules_, router_, std::move(one.envelope), one.unreadable));
  in_hand_.store(arrivals_.size(), std::memory_order_relaxed);
}

Result<IntakeRound> Intake::commit() {
  progress_.begin(kSyncBound);
  const auto verdicts = spool_.put_batch(arrivals_);
  if (!verdicts) {
    if (verdicts.error().kind == ErrorKind::io) return verdicts.error();
    return IntakeRound::paused;
  }
  CHECK(verdicts->size() == arrivals_.size());
  acknowledge();
  return IntakeRound::took;
}

// A failure is none of ours: what was not acknowledged comes again and is recognised.
void Intake::acknowledge() {
  for (std::size_t place = 0; place < incoming_.size(); ++place)
    incoming_[place].envelope = std::move(arrivals_[place].envelope);
  progress_.begin(kSourceBound);
  (void)source_.acknowledge(incoming_);
  incoming_.clear();
  arrivals_.clear();
  in_hand_.store(0, std::memory_order_relaxed);
}

}  // namespace holdfast
