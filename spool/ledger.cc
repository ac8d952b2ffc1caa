#include "spool/ledger.h"

#include <algorithm>
#include <map>

#include "spool/id_ledger.h"
#include "spool/position_ledger.h"

namespace holdfast {

struct Ledger::Parts {
  Database& database;
  std::unique_ptr<PositionLedger> positions;
  std::unique_ptr<IdLedger> ids;

  void keep() {
    positions->keep();
    ids->keep();
  }
  void undo() {
    positions->undo();
    ids->undo();
  }

  // One lazy transaction around `work`. What it forgets may come back after a power cut, and is forgotten again.
  template <typename Work>
  Result<bool> alone(Work work) {
    HOLDFAST_TRY(database.begin(Durability::lazy));
    auto more = work();
    if (!more.ok()) {
      database.rollback();
      undo();
      return more;
    }
    if (auto committed = database.commit(); !committed.ok()) {
      undo();
      return committed.error();
    }
    keep();
    return more;
  }
};

namespace {

std::array<std::uint8_t, 4> prefix_of(const ContentDigest& digest) {
  std::array<std::uint8_t, 4> prefix;
  std::copy_n(digest.bytes.begin(), prefix.size(), prefix.begin());
  return prefix;
}

}  // namespace

Ledger::Ledger(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Ledger::~Ledger() = default;

Result<std::unique_ptr<Ledger>> Ledger::open(Database& database) {
  auto positions = PositionLedger::open(database);
  if (!positions.ok()) return positions.error();
  auto ids = IdLedger::open(database);
  if (!ids.ok()) return ids.error();
  auto parts = std::make_unique<Parts>(Parts{database, *std::move(positions), *std::move(ids)});
  return std::unique_ptr<Ledger>(new Ledger(std::move(parts)));
}

Result<void> Ledger::remember(std::span<const LedgerEntry> entries, Nanoseconds now) {
  std::map<std::uint64_t, std::vector<PositionEntry>> positions;  // by stream
  std::vector<IdEntry> ids;
  for (const LedgerEntry& entry : entries) {
    const auto content = prefix_of(entry.content);
    if (const auto& position = entry.position)
      positions[position->stream_tag].push_back({position->sequence, position->timestamp_ns, content});
    if (!entry.positional) ids.push_back({prefix_of(entry.id), content});
  }
  for (auto& [stream, of_stream] : positions) HOLDFAST_TRY(parts_->positions->remember(stream, std::move(of_stream)));
  return ids.empty() ? Result<void>{} : parts_->ids->remember(std::move(ids), now);
}

void Ledger::keep() {
  parts_->keep();
}
void Ledger::undo() {
  parts_->undo();
}

bool Ledger::maybe_seen(const RecordId& id, const std::optional<StreamPosition>& position) const {
  return position ? parts_->positions->maybe_seen(*position) : parts_->ids->maybe_seen(prefix_of(id));
}

Result<std::optional<Seen>> Ledger::find(const RecordId& id, const std::optional<StreamPosition>& position) {
  const auto seen = [](const auto& found) -> Result<std::optional<Seen>> {
    if (!found.ok()) return found.error();
    return *found ? std::optional(Seen{(*found)->content}) : std::nullopt;
  };
  return position ? seen(parts_->positions->find(*position)) : seen(parts_->ids->find(prefix_of(id)));
}

Result<bool> Ledger::prune(Nanoseconds now, const IdLimits& limits) {
  IdLedger& ids = *parts_->ids;
  ids.set_window(limits.window);
  // What was remembered since is as young as can be.
  const Nanoseconds oldest_kept = std::min(now - limits.window, limits.redeliverable_since);
  if (!ids.has_old(oldest_kept, limits.max_ids)) return false;
  return parts_->alone([&]() -> Result<bool> {
    const auto forgot = ids.forget_oldest(oldest_kept, limits.max_ids);
    if (!forgot.ok()) return forgot.error();
    return ids.has_old(oldest_kept, limits.max_ids);
  });
}

Result<bool> Ledger::prune_positions(std::uint64_t stream_tag, const PositionFloor& floor, Nanoseconds now,
                                     const PositionLimits& limits) {
  PositionLedger& positions = *parts_->positions;
  return parts_->alone([&]() -> Result<bool> {
    HOLDFAST_TRY(positions.note_floor(stream_tag, floor.gone, now, limits.window));
    const std::uint64_t known = positions.positions(stream_tag);
    if (known <= limits.max_positions) {
      const std::uint64_t below = positions.forgettable_below(stream_tag, now, limits.window);
      return positions.forget_below(stream_tag, below, kPrunedRows);
    }
    const std::uint64_t rows = (known - limits.max_positions) / kPositionsInRow + 1;
    return positions.forget_below(stream_tag, floor.acknowledged, std::min<std::uint64_t>(rows, kPrunedRows));
  });
}

Result<std::vector<StreamPosition>> Ledger::last_positions(std::uint64_t stream_tag, std::uint64_t at_or_below) {
  const auto last = parts_->positions->last(stream_tag, at_or_below);
  if (!last.ok()) return last.error();
  std::vector<StreamPosition> positions;
  for (const PositionEntry& entry : *last) positions.push_back({stream_tag, entry.sequence, entry.timestamp_ns});
  return positions;
}

Result<std::optional<std::uint64_t>> Ledger::first_sequence(std::uint64_t stream_tag) {
  return parts_->positions->first(stream_tag);
}

std::uint64_t Ledger::positions(std::uint64_t stream_tag) const {
  return parts_->positions->positions(stream_tag);
}

std::uint64_t Ledger::ids() const {
  return parts_->ids->ids();
}
std::size_t Ledger::memory_bytes() const {
  return parts_->ids->memory_bytes();
}

}  // namespace holdfast
