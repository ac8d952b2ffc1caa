// What became of records: from the forwarder's word to the unlink (INVARIANTS.md, rules of settling).

#include <fmt/format.h>

#include <algorithm>

#include "spool/parts.h"

namespace holdfast {

Result<void> Spool::settle(TargetNumber target, std::span<const Settlement> settlements) {
  Parts& parts = *parts_;
  if (const auto error = parts.dead_error()) return *error;
  bool crowded = false;
  {
    const std::lock_guard lock(parts.state_mutex);
    for (const Settlement& settlement : settlements) parts.settle_one(target, settlement);
    if (!settlements.empty()) parts.target_state(target).progress = parts.clock.monotonic();
    crowded = parts.done_unwritten.size() + parts.filed_settled.size() > kSettleBacklog ||
              parts.leaving_files > kUnlinkBacklog;
  }
  if (!crowded) return {};
  // Whoever settles faster than housekeeping writes, and names go, does some of it.
  const std::lock_guard upkeep(parts.upkeep_mutex);
  HOLDFAST_TRY(parts.checked(parts.write_done_frames()));
  HOLDFAST_TRY(parts.checked(parts.apply_settled()));
  const auto went = parts.unlink_some();
  return parts.checked(went ? Result<void>() : Result<void>(went.error()));
}

void Spool::Parts::settle_one(TargetNumber target, const Settlement& settlement) {
  TargetState& state = target_state(target);
  if (settlement.fate == Fate::rejected) {
    ++state.rejected;
    if (reject({settlement.sequence, {}, target, settlement.reason, settlement.words}))
      hidden.insert({settlement.sequence, target});
    return;
  }
  ++state.delivered;
  if (settlement.fate != Fate::delivered) ++state.duplicates;
  if (settlement.fate == Fate::duplicate_unexpected) ++state.duplicates_unexpected;

  JournalRecord* record = records.find(settlement.sequence);
  if (record == nullptr || record->place == Place::filed) {
    // The index decides; until it has, the record is not due for this target.
    hidden.insert({settlement.sequence, target});
    filed_settled.push_back({target, settlement.sequence});
    return;
  }
  const TargetBits bit = record->place == Place::journal ? bit_of(record->route, target) & record->waiting : 0;
  if (bit == 0) return;
  const bool was_complete = complete(*record);
  record->waiting &= ~bit;
  count_waiting(*record, bit, false);
  if (done_unwritten.empty()) done_since = clock.monotonic();
  done_unwritten.push_back({target, settlement.sequence});
  if (!complete(*record)) return set_aside_if_only_rejections_wait(*record);
  drop_reject_marks(record->sequence);
  if (was_complete) return;
  // What optional targets have not got by now leaves with it.
  count_waiting(*record, record->waiting, false);
  record->waiting = 0;
  count_live(*record, false);
  ++journal_delivered;
}

// A record that one required target has rejected leaves for the quarantine once every other has had it.
void Spool::Parts::set_aside_if_only_rejections_wait(const JournalRecord& record) {
  const TargetBits required = required_bits(record.route) & record.waiting;
  const auto& targets_of = route_locked(record.route);
  const Rejection* last = nullptr;
  for (std::size_t i = 0; i < targets_of.size(); ++i) {
    if ((required >> i & 1) == 0) continue;
    const auto mark = reject_marks.find({record.sequence, targets_of[i].target});
    if (mark == reject_marks.end()) return;
    last = &mark->second;
  }
  if (last != nullptr) rejections.push_back(*last);
}

// In lots, so that the index is never busy for long and a full disk has to find room for little at once. What is
// written down does not wait for the names to go, which takes long on some media (R56).
Result<void> Spool::Parts::apply_settled() {
  for (;;) {
    std::vector<FiledSettlement> settlements;
    {
      const std::lock_guard lock(state_mutex);
      const std::size_t count = std::min(filed_settled.size(), kFlushRecords);
      const auto end = filed_settled.begin() + static_cast<std::ptrdiff_t>(count);
      settlements.assign(filed_settled.begin(), end);
      filed_settled.erase(filed_settled.begin(), end);
    }
    if (settlements.empty()) return {};
    auto settled = settle_filed(settlements);
    const std::lock_guard lock(state_mutex);
    if (!settled) {
      filed_settled.insert(filed_settled.begin(), settlements.begin(), settlements.end());
      return settled;
    }
    for (const FiledSettlement& settlement : settlements) hidden.erase({settlement.sequence, settlement.target});
  }
}

// One durable transaction, and the unlinks after it: a file that is gone always has a tombstone (R24).
Result<void> Spool::Parts::settle_filed(const std::vector<FiledSettlement>& settlements) {
  std::map<Sequence, std::set<TargetNumber>> by_record;
  for (const FiledSettlement& settlement : settlements) by_record[settlement.sequence].insert(settlement.target);
  IndexChange change;
  std::vector<LeavingFile> left;
  std::vector<Rejection> now_rejected;
  std::vector<IndexedRecord> rows;
  std::size_t next = 0;
  for (const auto& [sequence, settled_by] : by_record) {
    while (next < rows.size() && rows[next].sequence < sequence) ++next;
    if (next == rows.size()) {
      const std::lock_guard lock(index_mutex);
      // As many as neighbours of this one were settled, and it alone where there are none.
      const Sequence last = std::prev(by_record.lower_bound(sequence + kRowsTogether))->first;
      auto some = index->list(std::max<Sequence>(sequence, 1) - 1, last - sequence + 1);
      if (!some) return some.error();
      rows = std::move(*some);
      next = 0;
    }
    if (next == rows.size() || rows[next].sequence != sequence) continue;
    const IndexedRecord* row = &rows[next];
    const std::lock_guard lock(state_mutex);
    bool required_waits = false, rejected = false;
    Rejection last;
    for (const TargetNumber target : row->waiting) {
      const auto& targets_of = route_locked(row->route);
      const auto place = std::ranges::find(targets_of, target, &RouteTarget::target);
      const bool optional = place != targets_of.end() && !place->required;
      if (optional || settled_by.contains(target)) continue;
      const auto mark = reject_marks.find({sequence, target});
      if (mark == reject_marks.end()) {
        required_waits = true;
      } else {
        rejected = true;
        last = mark->second;
      }
    }
    if (required_waits || rejected) {
      for (const TargetNumber target : settled_by) change.settled.emplace_back(target, sequence);
      if (!required_waits) now_rejected.push_back(last);
      continue;
    }
    change.left.push_back(sequence);
    left.push_back(leaving(row->id, sequence, row->size));
    drop_reject_marks(sequence);
  }
  change.add.delivered = left.size();
  HOLDFAST_TRY(apply(change, left.empty() ? Durability::lazy : Durability::durable));
  {
    const std::lock_guard lock(state_mutex);
    rejections.insert(rejections.end(), now_rejected.begin(), now_rejected.end());
    for (const LeavingFile& file : left) leaving_bytes += file.bytes;
    leaving_files += left.size();
  }
  unlink_later.records.insert(unlink_later.records.end(), left.begin(), left.end());
  return {};
}

// On a disk that is full for long they only grow: those above the bound are asked for, or found, again.
bool Spool::Parts::reject(Rejection rejection) {
  rejections_forgotten = rejections_forgotten || rejections.size() >= kMaxRejectMarks;
  if (rejections.size() >= kMaxRejectMarks) return false;
  rejections.push_back(std::move(rejection));
  return true;
}

void Spool::Parts::drop_reject_marks(Sequence sequence) {
  auto mark = reject_marks.lower_bound({sequence, TargetNumber{}});
  while (mark != reject_marks.end() && mark->first.first == sequence) {
    hidden.erase(mark->first);
    mark = reject_marks.erase(mark);
  }
  ask_for_forgotten_rejections();
}

void Spool::Parts::ask_for_forgotten_rejections() {
  if (!rejections_forgotten || reject_marks.size() > kMaxRejectMarks / 2 || rejections.size() > kMaxRejectMarks / 2)
    return;
  rejections_forgotten = false;
  for (TargetState& target : targets) send_back(target);
}

void Spool::Parts::unhide(Sequence sequence) {
  auto entry = hidden.lower_bound({sequence, TargetNumber{}});
  while (entry != hidden.end() && entry->first == sequence) entry = hidden.erase(entry);
}

// The records have tombstones on the medium. A name that comes back after a power cut meets its tombstone, which goes
// only after a sync has covered the unlink (R26).
Result<void> Spool::Parts::unlink(std::span<const LeavingFile> left) {
  std::vector<Result<bool>> removed(left.size(), false);
  removers.share(left.size(), kRemoveTogether, [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) removed[i] = files->remove(left[i].id, left[i].sequence);
  });
  std::uint64_t bytes = 0, counted = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const auto& [id, sequence, its_bytes, expected] = left[i];
    if (!removed[i] && removed[i].error().kind == ErrorKind::io) return removed[i].error();
    if (!removed[i]) {
      unlink_later.records.push_back(left[i]);
      continue;
    }
    if (*removed[i]) dirty.insert(record_directory(id));
    if (expected) --expected_names[id.bytes[0]];
    unlinked_unsynced.push_back(sequence);
    bytes += its_bytes;
    counted += its_bytes > 0 ? 1u : 0u;
  }
  {
    const std::lock_guard lock(state_mutex);
    leaving_bytes -= bytes;
    leaving_files -= counted;
  }
  return unlinked_unsynced.size() < kUnlinksBeforeSync ? Result<void>() : sync_files();
}

LeavingFile Spool::Parts::leaving(const RecordId& id, Sequence sequence, std::uint64_t size) const {
  return {id, sequence, allocated(size), is_expected(sequence)};
}

Result<bool> Spool::Parts::remove_file(const RecordId& id, Sequence sequence) {
  auto removed = files->remove(id, sequence);
  if (removed && *removed) dirty.insert(record_directory(id));
  return removed;
}

// Of an identity that is in custody again. True: it waited, and could go.
Result<bool> Spool::Parts::unlink_waiting(const RecordId& id) {
  auto& waiting = unlink_later.records;
  const auto at = std::ranges::find(waiting, id, &LeavingFile::id);
  if (at == waiting.end()) return false;
  const LeavingFile file = *at;
  waiting.erase(at);
  const std::size_t others = waiting.size();
  HOLDFAST_TRY(unlink(std::span(&file, 1)));
  return waiting.size() == others;
}

// A step of what waits. True: there is more, and what was tried could go.
Result<bool> Spool::Parts::unlink_some() {
  auto& waiting = unlink_later.records;
  const std::size_t count = std::min(waiting.size(), kUnlinksAtOnce);
  const auto end = waiting.begin() + static_cast<std::ptrdiff_t>(count);
  const std::vector<LeavingFile> some(waiting.begin(), end);
  waiting.erase(waiting.begin(), end);
  const std::size_t others = waiting.size();
  HOLDFAST_TRY(unlink(some));
  return !waiting.empty() && waiting.size() == others;
}

}  // namespace holdfast
