// What is remembered of streams and identities, and for how long.

#include <algorithm>
#include <set>

#include "spool/parts.h"

namespace holdfast {
namespace {

// A place is remembered under the one where it is the identity, else under the other.
using Tags = std::array<std::uint64_t, 2>;

template <typename Visit>
void visit_journal(JournalRecords& records, const Tags& tags, Visit visit) {
  for (const auto& segment : records.segments()) {
    for (const JournalRecord& record : segment.records) {
      if (record.position && std::ranges::count(tags, record.position->stream_tag) > 0) visit(*record.position);
    }
  }
}

}  // namespace

Result<std::vector<StreamPosition>> Spool::last_committed(const std::string& stream, std::uint64_t at_or_below) {
  Parts& parts = *parts_;
  const Tags tags{parts.places->tag(stream, true), parts.places->tag(stream, false)};
  std::vector<StreamPosition> found;
  const auto take = [&](const StreamPosition& position) {
    if (position.sequence > at_or_below || (!found.empty() && position.sequence < found.front().sequence)) return;
    if (!found.empty() && position.sequence > found.front().sequence) found.clear();
    found.push_back(position);
  };
  {
    const std::lock_guard lock(parts.state_mutex);
    visit_journal(parts.custody.records(), tags, take);
  }
  const std::lock_guard lock(parts.index_mutex);
  for (const std::uint64_t tag : tags) {
    const auto older = parts.index->ledger().last_positions(tag, at_or_below);
    if (!older) return parts.life.fail(older.error());
    std::ranges::for_each(*older, take);
  }
  return found;
}

Result<std::optional<std::uint64_t>> Spool::first_committed(const std::string& stream) {
  Parts& parts = *parts_;
  const Tags tags{parts.places->tag(stream, true), parts.places->tag(stream, false)};
  std::optional<std::uint64_t> first;
  const auto take = [&](std::uint64_t sequence) { first = std::min(first.value_or(sequence), sequence); };
  {
    const std::lock_guard lock(parts.state_mutex);
    visit_journal(parts.custody.records(), tags, [&](const StreamPosition& position) { take(position.sequence); });
  }
  const std::lock_guard lock(parts.index_mutex);
  for (const std::uint64_t tag : tags) {
    const auto older = parts.index->ledger().first_sequence(tag);
    if (!older) return parts.life.fail(older.error());
    if (*older) take(**older);
  }
  return first;
}

Result<void> Spool::remember_places(std::span<const Arrival* const> arrivals) {
  Parts& parts = *parts_;
  if (const auto error = parts.life.over()) return *error;
  IndexChange change;
  for (const Arrival* arrival : arrivals) {
    const Origin& origin = arrival->envelope.origin;
    change.remember.push_back({RecordId{}, parts.places->of(origin, false), true, ContentDigest{}});
  }
  return parts.life.checked(parts.apply(change, Durability::durable));
}

Result<bool> Spool::knows_place(const Arrival& arrival) {
  Parts& parts = *parts_;
  const Origin& origin = arrival.envelope.origin;
  const std::lock_guard lock(parts.index_mutex);
  for (const bool positional : {true, false}) {
    const StreamPosition place = parts.places->of(origin, positional);
    const auto seen = parts.index->ledger().find(RecordId{}, place);
    if (!seen) return parts.life.fail(seen.error());
    if (seen->has_value()) return true;
  }
  return false;
}

void Spool::note_stream(const std::string& source, const StreamFloor& floor) {
  Parts& parts = *parts_;
  const std::lock_guard lock(parts.state_mutex);
  Parts::ToldFloor& told = parts.told_floors[source];
  told.floor = floor;
  told.acknowledged.reset();
  if (floor.acknowledged_ago) told.acknowledged = parts.running_time() - *floor.acknowledged_ago;
}

// index_mutex held. What may come again is remembered, whatever its age (R57).
Result<void> Spool::Parts::prune_ledger() {
  const Nanoseconds now = running_time();
  std::map<std::string, PositionFloor> floors;  // by stream: several sources may read one
  Ledger::IdLimits ids{options.ledger_window, options.ledger_max, Nanoseconds::max()};
  {
    const std::lock_guard lock(state_mutex);
    std::multiset<std::string> silent(options.source_streams.begin(), options.source_streams.end());
    for (const auto& [source, told] : told_floors) {
      if (const auto one = silent.find(told.floor.stream); one != silent.end()) silent.erase(one);
      const PositionFloor floor{told.floor.below, told.floor.acknowledged};
      const auto known = floors.emplace(told.floor.stream, floor).first;
      known->second.gone = std::min(known->second.gone, floor.gone);
      known->second.acknowledged = std::min(known->second.acknowledged, floor.acknowledged);
      ids.redeliverable_since = std::min(ids.redeliverable_since, told.acknowledged.value_or(Nanoseconds::min()));
    }
    if (!silent.empty()) ids.redeliverable_since = Nanoseconds::min();
    std::erase_if(floors, [&](const auto& floor) { return silent.contains(floor.first); });
  }
  const Ledger::PositionLimits positions{options.ledger_window, options.ledger_max};
  for (const auto& [stream, floor] : floors) {
    for (const bool positional : {true, false}) {
      auto pruned = index->ledger().prune_positions(places->tag(stream, positional), floor, now, positions);
      if (!pruned) return pruned.error();
    }
  }
  auto pruned = index->ledger().prune(now, ids);
  if (!pruned) return pruned.error();
  return {};
}

}  // namespace holdfast
