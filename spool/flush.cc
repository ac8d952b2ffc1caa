// From the journal to files, and the segments' way back into the ring (INVARIANTS.md, rules of flush and reuse).

#include <fmt/format.h>

#include <algorithm>

#include "spool/parts.h"

namespace holdfast {

// Records that wait for a target which has made no progress for `linger`, or for one that nobody serves. True: there
// are more.
Result<bool> Spool::Parts::flush_lingering() {
  const Nanoseconds now = clock.monotonic();
  std::vector<JournalRecord*> lingering;
  bool crowded = false;
  {
    const std::lock_guard lock(state_mutex);
    std::set<TargetNumber> stalled;
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const bool moves = targets[i].active && now - targets[i].progress < options.linger;
      if (targets[i].journal_records > 0 && !moves) stalled.insert(static_cast<TargetNumber>(i + 1));
    }
    crowded = journal->free_segments() == 0;
    for (auto& segment : records.segments()) {
      for (JournalRecord& record : segment.records) {
        if (stalled.empty() || lingering.size() >= kFlushRecords) break;
        if (record.place != Place::journal || record.waiting == 0) continue;
        // Of an earlier life: as old as can be.
        if (record.this_life && now - record.accepted < options.linger) continue;
        const auto waits_for = waiting_targets(record);
        if (std::ranges::any_of(waits_for, [&](TargetNumber target) { return stalled.contains(target); }))
          lingering.push_back(&record);
      }
    }
  }
  // Entries stay where they are while upkeep_mutex is held: only upkeep drops segments.
  HOLDFAST_TRY(flush(lingering));
  if (crowded) HOLDFAST_TRY(make_room());
  return lingering.size() >= kFlushRecords;
}

// Files first, straight under their final names: the journal holds the records until the files are known to be durable.
// Then the rows (R17). `full`, `unavailable`: what could be written has both file and row, the rest has neither.
Result<void> Spool::Parts::flush(const std::vector<JournalRecord*>& to_file) {
  if (to_file.empty()) return {};
  std::vector<Flushed> written;
  const auto all_written = write_files(to_file, written);
  if (!all_written && all_written.error().kind == ErrorKind::io) return all_written;
  if (written.empty()) return all_written;
  auto added = add_rows(written);
  if (!added && added.error().kind != ErrorKind::io) {
    std::vector<const JournalRecord*> rowless;
    for (const Flushed& file : written) rowless.push_back(file.record);
    HOLDFAST_TRY(undone(remove_without_row(rowless)));
  }
  HOLDFAST_TRY(added);
  return all_written;
}

Result<void> Spool::Parts::write_files(const std::vector<JournalRecord*>& to_file, std::vector<Flushed>& written) {
  Bytes frame;
  for (JournalRecord* record : to_file) {
    HOLDFAST_TRY(journal->read(record->spot, frame));
    if (!is_frame_of(frame, record->sequence)) {
      return Error{ErrorKind::io,
                   fmt::format("the journal no longer holds what was read from it (sequence {})", record->sequence)};
    }
    auto filed = files->write(record->id, record->sequence, frame, !whole_sync, dirty);
    if (!filed && filed.error().kind == ErrorKind::exists) {
      // The one that has the name may have left.
      const auto went = unlink_waiting(record->id);
      if (!went) return went.error();
      if (*went) filed = files->write(record->id, record->sequence, frame, !whole_sync, dirty);
    }
    if (!filed && filed.error().kind == ErrorKind::exists) {
      // An earlier record has the name: it stays, and the newcomer is kept beside it (R18).
      const std::lock_guard lock(state_mutex);
      const bool known =
          std::ranges::any_of(rejections, [&](const Rejection& one) { return one.sequence == record->sequence; });
      if (!known) (void)reject({record->sequence, record->id, TargetNumber{}, Reason::none, {}});
      continue;
    }
    if (!filed) return filed;
    written.push_back({record, 0});
  }
  return {};
}

Result<void> Spool::Parts::add_rows(std::vector<Flushed>& written) {
  HOLDFAST_TRY(sync_files());
  IndexChange change;
  std::vector<LeavingFile> left;
  {
    const std::lock_guard lock(state_mutex);
    for (Flushed& file : written) {
      const JournalRecord& record = *file.record;
      file.waiting = record.waiting;
      if (record.place == Place::filed) continue;  // its row is there, only the file was in doubt
      change.filed.push_back({record.sequence, record.id, record.route, record.priority, record.spot.size,
                              record.accepted_wall_ns, waiting_targets(record)});
      if (!complete(record)) continue;
      // Settled while it was written: it has a file now, so it leaves as those do, with a tombstone (R20).
      drop_reject_marks(record.sequence);
      change.left.push_back(record.sequence);
      left.push_back(leaving(record.id, record.sequence, 0));
    }
  }
  change.add.delivered = left.size();
  HOLDFAST_TRY(apply(change, left.empty() ? Durability::lazy : Durability::durable, [&] {
    for (const Flushed& file : written) became_filed(*file.record, file.waiting);
  }));
  return unlink(left);
}

// Files that no row knows of, though the journal has or had their records: left there they would be adopted, as new
// (R52).
Result<void> Spool::Parts::remove_without_row(const std::vector<const JournalRecord*>& of) {
  std::vector<std::pair<RecordId, Sequence>> names;
  {
    const std::lock_guard lock(state_mutex);
    for (const JournalRecord* record : of) {
      if (record->place != Place::filed) names.emplace_back(record->id, record->sequence);
    }
  }
  for (const auto& [id, sequence] : names) {
    auto removed = remove_file(id, sequence);
    if (!removed) return removed.error();
  }
  return {};
}

// From here on the index decides about the record; what was settled since its row was written it still has to hear.
void Spool::Parts::became_filed(JournalRecord& record, TargetBits waiting_in_row) {
  record.unproven = false;
  if (record.place != Place::journal) return;
  const auto& targets_of = route_locked(record.route);
  for (std::size_t i = 0; i < targets_of.size(); ++i) {
    if (((waiting_in_row & ~record.waiting) >> i & 1) == 0) continue;
    filed_settled.push_back({targets_of[i].target, record.sequence});
    hidden.insert({record.sequence, targets_of[i].target});
  }
  leaves_journal(record);
  record.place = Place::filed;
  note_row(record.id, record.sequence);
}

Result<void> Spool::Parts::sync_files() {
  HOLDFAST_TRY(files->sync_lot(whole_sync, dirty));
  if (unlinked_unsynced.empty()) return {};
  IndexChange change;
  change.unlinked = unlinked_unsynced;
  const auto in_use = journal->in_use();
  change.forget_tombstones_below = in_use.empty() ? next_sequence.load() : in_use.front().base;
  HOLDFAST_TRY(apply(change, Durability::lazy));
  unlinked_unsynced.clear();
  return {};
}

// The oldest segment goes back to the ring (R30). Before that is said anywhere: its live records are in synced files
// with rows (R31), its identities in the ledger (R32), its settlements counted and their unlinks synced (R33); all in
// one durable transaction (R34).
Result<void> Spool::Parts::retire_oldest() {
  // The active segment may be the oldest: then nothing is appended while it goes.
  std::unique_lock<std::mutex> commit_lock;
  if (journal->in_use().size() == 1) commit_lock = std::unique_lock(commit_mutex);
  JournalRecords::Segment& segment = [this]() -> auto& {
    const std::lock_guard lock(state_mutex);
    return records.segments().front();
  }
  ();
  for (;;) {
    std::vector<JournalRecord*> live;
    {
      const std::lock_guard lock(state_mutex);
      for (JournalRecord& record : segment.records) {
        const bool in_doubt = record.place == Place::filed && record.unproven;
        if ((record.place == Place::journal && !complete(record)) || in_doubt) live.push_back(&record);
        if (live.size() >= kFlushRecords) break;
      }
    }
    if (live.empty()) break;
    HOLDFAST_TRY(flush(live));
    HOLDFAST_TRY(set_aside_rejected());
  }
  // What a flush of an earlier life began, until names have been compared.
  if (reconcile.load() != Reconcile::finished) {
    std::vector<const JournalRecord*> earlier;
    for (const JournalRecord& record : segment.records) {
      if (!record.this_life) earlier.push_back(&record);
    }
    HOLDFAST_TRY(remove_without_row(earlier));
  }
  HOLDFAST_TRY(sync_files());
  IndexChange change;
  std::uint64_t delivered = 0;
  {
    const std::lock_guard lock(state_mutex);
    for (const JournalRecord& record : segment.records) {
      delivered += record.place == Place::journal ? 1u : 0u;
      change.remember.push_back(ledger_entry(record));
    }
    change.add = recovered_damage;
    change.add.taken += segment.records.size();
    change.add.delivered += delivered;
    change.retired_base = segment.base;
  }
  return apply(change, Durability::durable, [&] {
    recovered_damage = {};
    journal_taken -= segment.records.size();
    journal_delivered -= delivered;
    records.drop_oldest_segment();
    journal->retire_oldest();
  });
}

// One free segment is kept ahead of the intake.
Result<void> Spool::Parts::make_room() {
  while (journal->free_segments() == 0) HOLDFAST_TRY(retire_oldest());
  return {};
}

}  // namespace holdfast
