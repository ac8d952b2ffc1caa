// From the journal to files, and the segments' way back into the ring (INVARIANTS.md, rules of flush and reuse).

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "spool/parts.h"

namespace holdfast {
namespace {

struct Flushed {
  JournalRecord* record = nullptr;
  TargetBits waiting = 0;  // as its row says
};

Result<void> write_file(Spool::Parts& parts, const JournalRecord& record, ByteView frame) {
  auto filed = parts.lot->write(record.id, record.sequence, frame);
  if (filed || filed.error().kind != ErrorKind::exists) return filed;
  // The one that has the name may have left.
  const auto went = parts.leaving->remove_waiting(record.id);
  if (!went) return went.error();
  return *went ? parts.lot->write(record.id, record.sequence, frame) : filed;
}

Result<void> write_files(Spool::Parts& parts, const std::vector<JournalRecord*>& to_file,
                         std::vector<Flushed>& written) {
  Bytes frame;
  for (JournalRecord* record : to_file) {
    HOLDFAST_TRY(parts.journal->read(record->spot, frame));
    if (!parts.frames->is_frame_of(frame, record->sequence)) {
      return Error{ErrorKind::io,
                   fmt::format("the journal no longer holds what was read from it (sequence {})", record->sequence)};
    }
    auto filed = write_file(parts, *record, frame);
    if (!filed && filed.error().kind == ErrorKind::exists) {
      // An earlier record has the name: it stays, and the newcomer is kept beside it (R18).
      const std::lock_guard lock(parts.state_mutex);
      if (!parts.unwritten.is_rejected(record->sequence))
        (void)parts.unwritten.reject({record->sequence, record->id, TargetNumber{}, Reason::none, {}});
      continue;
    }
    if (!filed) return filed;
    written.push_back({record, 0});
  }
  return {};
}

// From here on the index decides about the record; what was settled since its row was written it still has to hear.
// state_mutex held.
void became_filed(Spool::Parts& parts, const Flushed& file) {
  JournalRecord& record = *file.record;
  record.unproven = false;
  if (record.place != Place::journal) return;
  for_each_target(parts.custody.route(record.route), file.waiting & ~record.waiting, [&](TargetNumber target) {
    parts.unwritten.add_filed({target, record.sequence});
  });
  parts.custody.leave(record, Place::filed);
  parts.expected_names.row_came(record.id, record.sequence);
}

Result<void> add_rows(Spool::Parts& parts, std::vector<Flushed>& written) {
  HOLDFAST_TRY(parts.sync_files());
  IndexChange change;
  std::vector<LeavingFile> left;
  {
    const std::lock_guard lock(parts.state_mutex);
    for (Flushed& file : written) {
      const JournalRecord& record = *file.record;
      file.waiting = record.waiting;
      if (record.place == Place::filed) continue;  // its row is there, only the file was in doubt
      change.filed.push_back(row_of(record, parts.custody.waiting_targets(record)));
      if (!parts.custody.complete(record)) continue;
      // Settled while it was written: it has a file now, so it leaves as those do, with a tombstone (R20).
      parts.unwritten.forget(record.sequence);
      change.left.push_back(record.sequence);
      left.push_back(parts.leaving->file(record.id, record.sequence, 0));
    }
  }
  change.add.delivered = left.size();
  HOLDFAST_TRY(parts.apply(change, left.empty() ? Durability::lazy : Durability::durable, [&] {
    for (const Flushed& file : written) became_filed(parts, file);
  }));
  return parts.unlink(left);
}

// Files that no row knows of, though the journal has or had their records: left there they would be adopted, as new
// (R52).
Result<void> remove_without_row(Spool::Parts& parts, const std::vector<const JournalRecord*>& of) {
  std::vector<std::pair<RecordId, Sequence>> names;
  {
    const std::lock_guard lock(parts.state_mutex);
    for (const JournalRecord* record : of) {
      if (record->place != Place::filed) names.emplace_back(record->id, record->sequence);
    }
  }
  for (const auto& [id, sequence] : names) {
    auto removed = parts.lot->remove(id, sequence);
    if (!removed) return removed.error();
  }
  return {};
}

// Records that wait for a target which has made no progress for `linger`, or for one that nobody serves.
// state_mutex held.
std::vector<JournalRecord*> lingering_records(Spool::Parts& parts) {
  const Nanoseconds now = parts.clock.monotonic(), linger = parts.options.linger;
  std::vector<JournalRecord*> lingering;
  std::set<TargetNumber> stalled;
  const auto& targets = parts.custody.targets();
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const bool moves = targets[i].active && now - targets[i].progress < linger;
    if (targets[i].journal_records > 0 && !moves) stalled.insert(static_cast<TargetNumber>(i + 1));
  }
  if (stalled.empty()) return lingering;
  for (auto& segment : parts.custody.records().segments()) {
    for (JournalRecord& record : segment.records) {
      if (lingering.size() >= kFlushRecords) return lingering;
      if (record.place != Place::journal || record.waiting == 0) continue;
      // Of an earlier life: as old as can be.
      if (record.this_life && now - record.accepted < linger) continue;
      const auto waits_for = parts.custody.waiting_targets(record);
      if (std::ranges::any_of(waits_for, [&](TargetNumber target) { return stalled.contains(target); }))
        lingering.push_back(&record);
    }
  }
  return lingering;
}

// What must be in files before the segment is given back. state_mutex held.
std::vector<JournalRecord*> live_records(Spool::Parts& parts, JournalRecords::Segment& segment) {
  std::vector<JournalRecord*> live;
  for (JournalRecord& record : segment.records) {
    const bool in_doubt = record.place == Place::filed && record.unproven;
    if (parts.custody.in_custody(record) || in_doubt) live.push_back(&record);
    if (live.size() >= kFlushRecords) break;
  }
  return live;
}

Result<void> empty_segment(Spool::Parts& parts, JournalRecords::Segment& segment) {
  for (;;) {
    std::vector<JournalRecord*> live;
    {
      const std::lock_guard lock(parts.state_mutex);
      live = live_records(parts, segment);
    }
    if (live.empty()) break;
    HOLDFAST_TRY(parts.flush(live));
    HOLDFAST_TRY(parts.set_aside_rejected());
  }
  // What a flush of an earlier life began, until names have been compared.
  if (parts.reconcile.load() == Spool::Parts::Reconcile::finished) return {};
  std::vector<const JournalRecord*> earlier;
  for (const JournalRecord& record : segment.records) {
    if (!record.this_life) earlier.push_back(&record);
  }
  return remove_without_row(parts, earlier);
}

}  // namespace

// True: there are more.
Result<bool> Spool::Parts::flush_lingering() {
  std::vector<JournalRecord*> lingering;
  bool crowded = false;
  {
    const std::lock_guard lock(state_mutex);
    crowded = journal->free_segments() == 0;
    lingering = lingering_records(*this);
  }
  // Entries stay where they are while upkeep_mutex is held: only upkeep drops segments.
  HOLDFAST_TRY(flush(lingering));
  if (crowded) HOLDFAST_TRY(free_a_segment());
  return lingering.size() >= kFlushRecords;
}

// Files first, straight under their final names: the journal holds the records until the files are known to be durable.
// Then the rows (R17). `full`, `unavailable`: what could be written has both file and row, the rest has neither.
Result<void> Spool::Parts::flush(const std::vector<JournalRecord*>& to_file) {
  if (to_file.empty()) return {};
  std::vector<Flushed> written;
  const auto all_written = write_files(*this, to_file, written);
  if (!all_written && all_written.error().kind == ErrorKind::io) return all_written;
  if (written.empty()) return all_written;
  auto added = add_rows(*this, written);
  if (!added && added.error().kind != ErrorKind::io) {
    std::vector<const JournalRecord*> rowless;
    for (const Flushed& file : written) rowless.push_back(file.record);
    HOLDFAST_TRY(undone(remove_without_row(*this, rowless)));
  }
  HOLDFAST_TRY(added);
  return all_written;
}

Result<void> Spool::Parts::sync_files() {
  HOLDFAST_TRY(lot->sync());
  if (leaving->unsynced().empty()) return {};
  IndexChange change;
  change.unlinked = leaving->unsynced();
  const auto in_use = journal->in_use();
  change.forget_tombstones_below = in_use.empty() ? next_sequence.load() : in_use.front().base;
  HOLDFAST_TRY(apply(change, Durability::lazy));
  leaving->synced();
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
    return custody.records().segments().front();
  }
  ();
  HOLDFAST_TRY(empty_segment(*this, segment));
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
    custody.drop_oldest_segment(delivered);
    journal->retire_oldest();
  });
}

// One is kept free ahead of the intake.
Result<void> Spool::Parts::free_a_segment() {
  while (journal->free_segments() == 0) HOLDFAST_TRY(retire_oldest());
  return {};
}

}  // namespace holdfast
