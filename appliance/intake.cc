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
  arrival.on_conflict = rules.on_conflict;
  arrival.on_duplicate = rules.on_duplicate;
  if (arrival.refused == Reason::none && encoded_size(arrival.identity.key, envelope) > rules.max_record_bytes)
    arrival.refused = Reason::too_large;
  if (arrival.refused != Reason::none) arrival.identity = {refused_key(rules.site, envelope), rule->strategy};
  arrival.envelope = std::move(envelope);
  return arrival;
}

Intake::Intake(Source& source, Spool& spool, const Router& router, DeadLetters& dead_letters, IntakeRules rules,
               Progress& progress)
    : source_(source),
      spool_(spool),
      router_(router),
      dead_letters_(dead_letters),
      rules_(std::move(rules)),
      progress_(progress) {}

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
  // Also of a batch that had no room before.
  HOLDFAST_TRY(publish_dead_letters());
  return arrivals_.empty() ? Result<IntakeRound>(IntakeRound::took) : commit();
}

void Intake::receive(std::vector<Incoming> pulled) {
  incoming_ = std::move(pulled);
  arrivals_.reserve(incoming_.size());
  for (Incoming& one : incoming_)
    arrivals_.push_back(make_arrival(rules_, router_, std::move(one.envelope), one.unreadable));
  in_hand_.store(arrivals_.size(), std::memory_order_relaxed);
}

// What is stored there is acknowledged at once, and has no part in the fate of its batch.
Result<void> Intake::publish_dead_letters() {
  std::vector<std::size_t> places;
  std::vector<const Arrival*> refused;
  for (std::size_t place = 0; place < arrivals_.size(); ++place) {
    if (!dead_letters_.takes(arrivals_[place])) continue;
    // One that was published before is for the spool to recognise: the server forgets its id in minutes.
    const auto known = spool_.knows_place(arrivals_[place]);
    if (!known && known.error().kind == ErrorKind::io) return known.error();
    if (known && *known) continue;
    places.push_back(place);
    refused.push_back(&arrivals_[place]);
  }
  if (places.empty()) return {};
  progress_.begin(kSourceBound);
  const std::vector<bool> stored = dead_letters_.publish(refused);
  std::vector<const Arrival*> gone;
  for (std::size_t i = 0; i < refused.size(); ++i) {
    if (stored[i]) gone.push_back(refused[i]);
  }
  if (gone.empty()) return {};
  // They answer for the stream, as everything that was taken. Without room they do not: no reason to keep them.
  progress_.begin(kSyncBound);
  if (auto remembered = spool_.remember_places(gone); !remembered && remembered.error().kind == ErrorKind::io)
    return remembered;
  std::vector<Incoming> published;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (!stored[i]) continue;
    const auto place = static_cast<std::ptrdiff_t>(places[i] - published.size());
    published.push_back(std::move(*(incoming_.begin() + place)));
    incoming_.erase(incoming_.begin() + place);
    arrivals_.erase(arrivals_.begin() + place);
  }
  (void)source_.acknowledge(published);
  in_hand_.store(arrivals_.size(), std::memory_order_relaxed);
  return {};
}

Result<IntakeRound> Intake::commit() {
  progress_.begin(kSyncBound);
  const auto verdicts = spool_.put_batch(arrivals_);
  if (!verdicts) {
    if (verdicts.error().kind == ErrorKind::io) return verdicts.error();
    return IntakeRound::paused;
  }
  CHECK(verdicts->size() == arrivals_.size());
  tally(*verdicts);
  acknowledge();
  return IntakeRound::took;
}

void Intake::tally(std::span<const Verdict> verdicts) {
  const std::lock_guard lock(tallies_mutex_);
  for (std::size_t place = 0; place < verdicts.size(); ++place) {
    const Verdict& verdict = verdicts[place];
    VerdictTally& tally = tallies_[static_cast<std::size_t>(arrivals_[place].identity.strategy)];
    count(verdict, tally.counts);
    if (verdict.kind == VerdictKind::duplicate) tally.last_duplicate = verdict.id;
    if (verdict.kind == VerdictKind::conflict) tally.last_conflict = verdict.id;
    if (verdict.kind != VerdictKind::refused) continue;
    tally.last_refused = verdict.id;
    tally.last_reason = verdict.reason;
  }
}

VerdictTallies Intake::tallies() const {
  const std::lock_guard lock(tallies_mutex_);
  return tallies_;
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
