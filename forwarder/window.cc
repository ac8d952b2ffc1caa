// What is read, what waits, and what goes. What becomes of it: landing.cc.
#include "forwarder/window.h"

#include <limits>
#include <utility>

#include "forwarder/code.h"

namespace holdfast {
namespace {

// Above every sequence there will ever be, and within what a database can hold.
constexpr Sequence kBeyondAll = Sequence{1} << 62;

}  // namespace

Window::Window(const WindowOptions& options, std::uint64_t seed)
    : options_(options), random_(seed), outside_(options.held), standing_(options.backoff) {
  CHECK(options.records > 0 && options.bytes > 0);
}

Window::Room Window::room() const {
  if (entries_.size() >= options_.records || bytes_ >= options_.bytes) return {};
  return {options_.records - entries_.size(), options_.bytes - bytes_};
}

Window::Place Window::place_of(Mark mark) const {
  return {options_.drain == Drain::priority ? mark.priority : Priority{0}, mark.sequence};
}

WindowRecord& Window::take_in(DueRecord record) {
  const Place place = place_of(record);
  bytes_ += record.bytes;
  const auto [entry, is_new] = entries_.try_emplace(place);
  CHECK(is_new);
  entry->second.record = std::move(record);
  return entry->second;
}

void Window::set_refused(WindowRecord& entry) {
  if (!std::exchange(entry.refused, true)) ++refused_;
}

void Window::forget(const WindowRecord& entry) {
  bytes_ -= entry.record.bytes;
  if (entry.refused) --refused_;
  entries_.erase(place_of(entry.record));
}

void Window::offer(DueRecord record) {
  if (entries_.contains(place_of(record)) || outside_.is_apart(record.sequence)) return;
  if (Lane* lane = outside_.find_lane(record.envelope.subject)) return outside_.set_aside(*lane, record);
  take_in(std::move(record));
}

void Window::read_again(Sequence sequence) {
  const Sequence before = sequence == 0 ? 0 : sequence - 1;
  for (Sequence& after : cursor_.after) after = std::min(after, before);
}

bool Window::may_recall() const {
  return entries_.size() <= options_.records && (bytes_ < options_.bytes || entries_.empty());
}

std::optional<Recall> Window::recall(Nanoseconds now) const {
  if (!may_recall()) return std::nullopt;
  if (standing_.kind() == StandingKind::good) return outside_.ripe(now, accepted_);
  if (now < standing_.wait().until) return std::nullopt;
  if (standing_.kind() == StandingKind::cut_off && !entries_.empty()) return std::nullopt;
  Nanoseconds tried_at{0};
  std::optional<Recall> outside = outside_.oldest(now, tried_at);
  const WindowRecord* inside = oldest_refused(now);
  return outside && inside != nullptr && inside->wait.tried_at <= tried_at ? std::nullopt : outside;
}

DueCursor Window::recall_cursor(const Recall& recall) const {
  DueCursor cursor;
  cursor.generation = std::numeric_limits<std::uint64_t>::max();  // nothing rewinds it
  const Sequence before = recall.mark.sequence == 0 ? 0 : recall.mark.sequence - 1;
  cursor.after.fill(options_.drain == Drain::priority ? kBeyondAll : before);
  cursor.after.at(recall.mark.priority) = before;
  return cursor;
}

void Window::recalled(const Recall& recall, std::optional<DueRecord> found) {
  const bool there = found && found->sequence == recall.mark.sequence;
  std::optional<Wait> wait = outside_.take_back(recall.mark.sequence);
  Lane* lane = recall.lane ? outside_.find_lane(*recall.lane) : nullptr;
  if (lane != nullptr && !there) return release(*recall.lane);
  if (lane != nullptr) wait = lane->wait;
  if (!there || !wait) return;
  const auto here = entries_.find(place_of(recall.mark));
  WindowRecord& entry = here != entries_.end() ? here->second : take_in(*std::move(found));
  entry.record.surely_unsent = false;
  entry.wait = *wait;
  entry.wait.until = Nanoseconds(0);
  set_refused(entry);
  if (lane == nullptr) return;
  entry.probe = true;
  lane->probe = recall.mark;
  ++lane->probes;
}

bool Window::wants_probe(Nanoseconds now) const {
  return standing_.kind() == StandingKind::cut_off && now >= standing_.wait().until;
}

void Window::probed(const Result<void>& result, Nanoseconds now) {
  probe_passed_ = result.ok();
  if (probe_passed_) return;
  ++failed_flights_;
  standing_.cut_off(code_of(result.error()), random_(), std::nullopt, now);
}

// Its own time has come, or what it waited for has happened; what never failed has nothing to wait for.
bool Window::may_try(const WindowRecord& entry, Nanoseconds now) const {
  if (!entry.refused || entry.wait.over(now)) return true;
  return entry.wait.proven(accepted_) && now >= entry.wait.asked_until;
}

const WindowRecord* Window::oldest_refused(Nanoseconds now) const {
  const WindowRecord* oldest = nullptr;
  for (const auto& [place, entry] : entries_) {
    if (!entry.refused || now < entry.wait.asked_until) continue;
    if (oldest == nullptr || entry.wait.tried_at < oldest->wait.tried_at) oldest = &entry;
  }
  return oldest;
}

const WindowRecord* Window::first_to_ask(Nanoseconds now) const {
  for (const auto& [place, entry] : entries_) {
    if (now >= entry.wait.asked_until) return &entry;
  }
  return nullptr;
}

std::span<const Delivery> Window::take(Nanoseconds now) {
  CHECK(flight_.empty());
  const StandingKind standing = standing_.kind();
  const WindowRecord* alone = nullptr;
  if (standing == StandingKind::doubted && now >= standing_.wait().until) alone = oldest_refused(now);
  if (standing == StandingKind::cut_off && probe_passed_) {
    alone = first_to_ask(now);
    if (alone == nullptr) standing_.answered();
  }
  probe_passed_ = false;
  for (auto& [place, entry] : entries_) {
    const bool goes =
        standing == StandingKind::good ? may_try(entry, now) : standing == StandingKind::doubted && !entry.refused;
    if (!goes && &entry != alone) continue;
    entry.flying = true;
    flight_.push_back({&entry, std::nullopt, 0});
    deliveries_.push_back({&entry.record, wire_key(entry.record.key)});
  }
  if (!flight_.empty()) ++flights_;
  return deliveries_;
}

Nanoseconds Window::next() const {
  if (standing_.kind() == StandingKind::cut_off) return standing_.wait().until;
  const bool doubted = standing_.kind() == StandingKind::doubted;
  Nanoseconds next = may_recall() ? outside_.next(accepted_, doubted) : Nanoseconds::max();
  for (const auto& [place, entry] : entries_) {
    if (!entry.refused) return Nanoseconds(0);
    const bool own_time = !doubted && !entry.wait.proven(accepted_);
    next = std::min(next, own_time ? entry.wait.end() : entry.wait.asked_until);
  }
  if (next == Nanoseconds::max() || !doubted) return next;
  return std::max(next, standing_.wait().until);
}

void Window::kick() {
  for (auto& [place, entry] : entries_) entry.wait.until = entry.wait.asked_until = Nanoseconds(0);
  outside_.kick();
  standing_.kick();
}

WindowStatus Window::status() const {
  WindowStatus status;
  status.standing = standing_.kind();
  status.failed_flights = failed_flights_;
  status.records = entries_.size();
  status.bytes = bytes_;
  status.refused = refused_;
  if (refused_ > 0) {  // seldom: there is a look for every lot that is settled
    for (const auto& [place, entry] : entries_) {
      if (entry.refused) status.code = entry.wait.code;
    }
  }
  status.lanes_held = outside_.lanes();
  status.lane_records = outside_.set_aside_records();
  status.apart = outside_.apart();
  if (status.lanes_held + status.apart > 0) status.code = outside_.code();
  if (status.standing != StandingKind::good) status.code = standing_.wait().code;
  status.fates = fates_;
  return status;
}

}  // namespace holdfast
