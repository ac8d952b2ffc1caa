// What became of records: from the forwarder's word to the unlink (INVARIANTS.md, rules of settling).

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "spool/parts.h"

namespace holdfast {
namespace {

constexpr std::size_t kSettleBacklog = 65536;  // settlements that may wait for housekeeping
constexpr std::size_t kRowsTogether = 64;      // read at once, for neighbours settled together

// A record that one required target has rejected leaves for the quarantine once every other has had it.
void set_aside_if_only_rejections_wait(Spool::Parts& parts, const JournalRecord& record) {
  const Route& route = parts.custody.route(record.route);
  bool another_waits = false;
  const Rejection* last = nullptr;
  for_each_target(route, required_bits(route) & record.waiting, [&](TargetNumber target) {
    const Rejection* rejection = parts.unwritten.remembered(record.sequence, target);
    another_waits = another_waits || rejection == nullptr;
    last = rejection;
  });
  if (!another_waits && last != nullptr) parts.unwritten.add_waited(*last);
}

// state_mutex held.
void settle_one(Spool::Parts& parts, TargetNumber target, const Settlement& settlement) {
  TargetState& state = parts.custody.target(target);
  if (settlement.fate == Fate::rejected) {
    ++state.rejected;
    parts.unwritten.reject({settlement.sequence, {}, target, settlement.reason, settlement.words}, target);
    return;
  }
  ++state.delivered;
  if (settlement.fate != Fate::delivered) ++state.duplicates;
  if (settlement.fate == Fate::duplicate_unexpected) ++state.duplicates_unexpected;

  const TargetSettlement settled{target, settlement.sequence};
  JournalRecord* record = parts.custody.records().find(settlement.sequence);
  if (record == nullptr || record->place == Place::filed) return parts.unwritten.add_filed(settled);
  if (!parts.custody.settle(*record, target)) return;
  parts.unwritten.add_done(settled, parts.clock.monotonic());
  if (!parts.custody.complete(*record)) return set_aside_if_only_rejections_wait(parts, *record);
  parts.unwritten.forget(record->sequence);
}

// Rows by sequence, going up: as many at once as neighbours are asked for, and one alone where there are none.
class RowsInOrder {
 public:
  explicit RowsInOrder(Spool::Parts& parts) : parts_(parts) {}

  // `last`: of the neighbours that will be asked for. Null: there is none.
  Result<const IndexedRecord*> find(Sequence sequence, Sequence last) {
    while (next_ < rows_.size() && rows_[next_].sequence < sequence) ++next_;
    if (next_ == rows_.size()) {
      const std::lock_guard lock(parts_.index_mutex);
      auto some = parts_.index->list(std::max<Sequence>(sequence, 1) - 1, last - sequence + 1);
      if (!some) return some.error();
      rows_ = std::move(*some);
      next_ = 0;
    }
    const bool there = next_ < rows_.size() && rows_[next_].sequence == sequence;
    return there ? &rows_[next_] : nullptr;
  }

 private:
  Spool::Parts& parts_;
  std::vector<IndexedRecord> rows_;
  std::size_t next_ = 0;
};

struct Settling {
  IndexChange change;
  std::vector<LeavingFile> left;
  std::vector<Rejection> rejected;  // that waited for one of these words
};

// A record leaves with the word of its last required target; with a rejection among them, for the quarantine.
void settle_row(Spool::Parts& parts, const IndexedRecord& row, const std::set<TargetNumber>& settled_by,
                Settling& settling) {
  const std::lock_guard lock(parts.state_mutex);
  const Route& route = parts.custody.route(row.route);
  bool required_waits = false;
  const Rejection* last = nullptr;
  for (const TargetNumber target : row.waiting) {
    if (is_optional(route, target) || settled_by.contains(target)) continue;
    if (const Rejection* rejection = parts.unwritten.remembered(row.sequence, target)) {
      last = rejection;
    } else {
      required_waits = true;
    }
  }
  if (required_waits || last != nullptr) {
    for (const TargetNumber target : settled_by) settling.change.settled.emplace_back(target, row.sequence);
    if (!required_waits) settling.rejected.push_back(*last);
    return;
  }
  settling.change.left.push_back(row.sequence);
  settling.left.push_back(parts.leaving->file(row.id, row.sequence, row.size));
  parts.unwritten.forget(row.sequence);
}

// One durable transaction, and the unlinks after it: a file that is gone always has a tombstone (R24).
Result<void> settle_filed(Spool::Parts& parts, const std::vector<TargetSettlement>& settlements) {
  std::map<Sequence, std::set<TargetNumber>> by_record;
  for (const TargetSettlement& settlement : settlements) by_record[settlement.sequence].insert(settlement.target);
  Settling settling;
  RowsInOrder rows(parts);
  for (const auto& [sequence, settled_by] : by_record) {
    const auto row = rows.find(sequence, std::prev(by_record.lower_bound(sequence + kRowsTogether))->first);
    if (!row) return row.error();
    if (*row != nullptr) settle_row(parts, **row, settled_by, settling);
  }
  settling.change.add.delivered = settling.left.size();
  HOLDFAST_TRY(parts.apply(settling.change, settling.left.empty() ? Durability::lazy : Durability::durable));
  parts.leaving->remove_later(settling.left);
  const std::lock_guard lock(parts.state_mutex);
  for (const Rejection& rejection : settling.rejected) parts.unwritten.add_waited(rejection);
  return {};
}

Result<void> sync_many_unlinks(Spool::Parts& parts) {
  return parts.leaving->unsynced().size() < kUnlinksBeforeSync ? Result<void>() : parts.sync_files();
}

}  // namespace

Result<void> Spool::settle(TargetNumber target, std::span<const Settlement> settlements) {
  Parts& parts = *parts_;
  if (const auto error = parts.life.over()) return *error;
  bool crowded = false;
  {
    const std::lock_guard lock(parts.state_mutex);
    for (const Settlement& settlement : settlements) settle_one(parts, target, settlement);
    if (!settlements.empty()) parts.custody.target(target).progress = parts.clock.monotonic();
    crowded = parts.unwritten.settlements() > kSettleBacklog || parts.leaving->files() > kUnlinkBacklog;
  }
  if (!crowded) return {};
  // Whoever settles faster than housekeeping writes, and names go, does some of it.
  const std::lock_guard upkeep(parts.upkeep_mutex);
  HOLDFAST_TRY(parts.life.checked(parts.write_done_frames()));
  HOLDFAST_TRY(parts.life.checked(parts.apply_settled()));
  const auto went = parts.unlink_some();
  return parts.life.checked(went ? Result<void>() : Result<void>(went.error()));
}

// In lots, so that the index is never busy for long and a full disk has to find room for little at once. What is
// written down does not wait for the names to go, which takes long on some media (R56).
Result<void> Spool::Parts::apply_settled() {
  for (;;) {
    std::vector<TargetSettlement> settlements;
    {
      const std::lock_guard lock(state_mutex);
      settlements = unwritten.take_filed(kFlushRecords);
    }
    if (settlements.empty()) return {};
    auto settled = settle_filed(*this, settlements);
    const std::lock_guard lock(state_mutex);
    if (!settled) {
      unwritten.put_back_filed(settlements);
      return settled;
    }
    unwritten.filed_is_written(settlements);
  }
}

// The records have tombstones on the medium.
Result<void> Spool::Parts::unlink(std::span<const LeavingFile> left) {
  HOLDFAST_TRY(leaving->remove(left));
  return sync_many_unlinks(*this);
}

Result<bool> Spool::Parts::unlink_some() {
  auto more = leaving->remove_some();
  if (more) HOLDFAST_TRY(sync_many_unlinks(*this));
  return more;
}

}  // namespace holdfast
