// After a start: do the files and the index tell the same? Done in small steps while everything else goes on.
//
// First every tombstone's file goes, then every row must have its file, then every directory must hold as many names as
// it has rows; only where it does not are headers read. So a start costs a look at the names, and not at a million
// files.

#include <fmt/format.h>

#include "spool/parts.h"

namespace holdfast {
namespace {

constexpr std::size_t kRowsAtOnce = 256;

}  // namespace

Result<bool> Spool::Parts::reconcile_step() {
  switch (reconcile.load()) {
    case Reconcile::tombstones:
      HOLDFAST_TRY(finish_unlinks());
      return true;
    case Reconcile::rows:
      HOLDFAST_TRY(compare_rows());
      return true;
    case Reconcile::names:
      HOLDFAST_TRY(compare_names());
      return true;
    case Reconcile::finished:
      return false;
  }
  return false;
}

// A file with a tombstone has left; a cut undid the unlink (R44).
Result<void> Spool::Parts::finish_unlinks() {
  std::vector<LeavingFile> left;
  bool more = false;
  {
    const std::lock_guard lock(index_mutex);
    auto found = index->tombstones_to_unlink(unlinks_finished, kUnlinksBeforeSync);
    if (!found) return found.error();
    for (const auto& [sequence, id] : *found) {
      // What has left in this life is unlinked by it.
      if (sequence >= first_sequence) break;
      left.push_back(leaving(id, sequence, 0));
      unlinks_finished = sequence;  // or waits with the names of this life, if it cannot go now
    }
    more = left.size() == kUnlinksBeforeSync;
  }
  HOLDFAST_TRY(unlink(left));
  HOLDFAST_TRY(sync_files());
  if (!more) reconcile = Reconcile::rows;
  return {};
}

Result<void> Spool::Parts::compare_rows() {
  std::vector<IndexedRecord> rows;
  {
    const std::lock_guard lock(index_mutex);
    auto found = index->list(reconciled_rows, kRowsAtOnce);
    if (!found) return found.error();
    rows = std::move(*found);
  }
  for (const IndexedRecord& row : rows) {
    // What this life has filed was counted when it was.
    if (row.sequence >= first_sequence) break;
    reconciled_rows = row.sequence;
    note_row(row.id, row.sequence);
    auto there = fs.inspect(record_path(row.id));
    if (there) continue;
    if (there.error().kind != ErrorKind::not_found) return there.error();
    bool in_journal = false;
    {
      const std::lock_guard lock(state_mutex);
      in_journal = records.find(row.sequence) != nullptr;
    }
    if (!in_journal) HOLDFAST_TRY(declare_lost(row.sequence, row.id));
  }
  if (rows.size() < kRowsAtOnce || rows.back().sequence >= first_sequence) {
    reconciled_rows = first_sequence;
    reconcile = Reconcile::names;
  }
  return {};
}

Result<void> Spool::Parts::compare_names() {
  // No commit puts a file there while its names are counted and its row is not written yet.
  const std::lock_guard commit_lock(commit_mutex);
  const unsigned directory = reconciled_directories++;
  std::int64_t names = 0;
  std::uint64_t ignored = 0;
  HOLDFAST_TRY(files->list_directory(
      directory, [&](const RecordId&) { ++names; }, ignored));
  if (directory == 0) {
    auto strangers = files->count_strangers();
    if (!strangers) return strangers.error();
    ignored += *strangers;
  }
  if (ignored > 0) {
    const std::lock_guard lock(state_mutex);
    ignored_names += ignored;
  }
  if (names != expected_names[directory]) HOLDFAST_TRY(compare_directory(directory));
  if (reconciled_directories == expected_names.size()) reconcile = Reconcile::finished;
  return {};
}

Result<void> Spool::Parts::compare_directory(unsigned first_byte) {
  std::vector<RecordId> ids;
  std::uint64_t ignored = 0;
  HOLDFAST_TRY(files->list_directory(
      first_byte, [&](const RecordId& id) { ids.push_back(id); }, ignored));
  std::set<RecordId> unreadable;
  for (const RecordId& id : ids) HOLDFAST_TRY(adopt(id, unreadable));
  return unreadable.empty() ? Result<void>() : look_at_unreadable(std::move(unreadable));
}

// What a cut left of a flush goes if the journal has the record, or knows that it left. What it left of a record that
// was on its way into its file, and was never acknowledged, is blank and has no row: that would have been durable
// before the acknowledgement. All else is not ours to judge (R49).
Result<void> Spool::Parts::look_at_unreadable(std::set<RecordId> ids) {
  std::vector<std::pair<RecordId, Sequence>> rowless;
  {
    const std::lock_guard lock(state_mutex);
    for (const RecordId& id : ids) {
      const JournalRecord* record = records.find(id);
      if (record != nullptr && record->place != Place::filed) rowless.emplace_back(id, record->sequence);
    }
  }
  for (const auto& [id, sequence] : rowless) {
    auto removed = remove_file(id, sequence);
    if (!removed) return removed.error();
    if (*removed) ids.erase(id);
  }
  std::set<RecordId> without_row = ids;
  HOLDFAST_TRY(leave_out_rows(without_row));
  for (const RecordId& id : without_row) {
    auto removed = remove_file(id, Sequence{0});
    if (!removed) return removed.error();
    if (*removed) ids.erase(id);
  }
  const std::lock_guard lock(state_mutex);
  ignored_names += ids.size();
  return {};
}

// Row by row: seldom asked. Of an index that was made anew nothing can be said.
Result<void> Spool::Parts::leave_out_rows(std::set<RecordId>& ids) {
  const std::lock_guard lock(index_mutex);
  if (index->rebuilt()) ids.clear();
  for (Sequence after = 0; !ids.empty();) {
    const auto rows = index->list(after, kFlushRecords);
    if (!rows) return rows.error();
    for (const IndexedRecord& row : *rows) ids.erase(row.id);
    if (rows->size() < kFlushRecords) return {};
    after = rows->back().sequence;
  }
  return {};
}

// Another record: with a manifest from a backup and no index, this life may have given the sequence again before the
// file was found. The file stays, and a start after the other has left finds it.
Result<Spool::Parts::Holder> Spool::Parts::holder_of(Sequence sequence, const RecordId& id) {
  {
    const std::lock_guard lock(index_mutex);
    auto row = index->find(sequence);
    if (!row) return row.error();
    if (*row) return (*row)->id == id ? Holder::row : Holder::another;
  }
  const std::lock_guard lock(state_mutex);
  const JournalRecord* record = records.find(sequence);
  if (record == nullptr) return Holder::nobody;
  return record->id == id ? Holder::journal : Holder::another;
}

// A file that no row knows of: our own unfinished flush, a record whose row was lost (R43), or bytes that are not ours.
Result<void> Spool::Parts::adopt(const RecordId& id, std::set<RecordId>& unreadable) {
  auto header = files->peek(id);
  if (!header && header.error().kind == ErrorKind::not_found) return {};
  if (!header && header.error().kind != ErrorKind::corrupt) return header.error();
  if (!header) {
    unreadable.insert(id);
    return {};
  }
  auto holder = holder_of(header->sequence, id);
  if (!holder) return holder.error();
  if (*holder == Holder::row) return {};
  if (*holder == Holder::another) {
    notice(fmt::format("record {} is in a file under a sequence ({}) that another has: it waits for a later start",
                       id.short_hex(), header->sequence));
    return {};
  }
  // The journal holds the record, or it is known that it left: the file is an unfinished flush, or its row is lost. It
  // would come back as new.
  const auto left = [&] {
    const std::lock_guard lock(index_mutex);
    return index->is_tombstone(header->sequence);
  }();
  if (!left) return left.error();
  if (*left || *holder == Holder::journal) {
    const auto removed = remove_file(id, header->sequence);
    // A name that cannot go now, and has its tombstone, goes later.
    const bool waits = *left && !removed && removed.error().kind == ErrorKind::unavailable;
    return removed || waits ? Result<void>() : Result<void>(removed.error());
  }
  Bytes frame;
  const auto read = files->read(id, frame);
  if (!read && read.error().kind != ErrorKind::corrupt) return read;
  IndexedRecord row{header->sequence,
                    id,
                    static_cast<RouteNumber>(header->route),
                    header->priority,
                    kFrameHeaderSize + header->body_size,
                    header->accepted_wall_ns,
                    {}};
  for (const RouteTarget& target : route(row.route)) row.waiting.push_back(target.target);
  IndexChange change;
  change.filed.push_back(row);
  change.add.taken = 1;
  change.remember.push_back({id, {}, false, header->content});
  if (read) place_in_stream(change.remember.back(), frame);
  HOLDFAST_TRY(apply(change, Durability::lazy));
  note_row(id, row.sequence);
  const std::lock_guard lock(state_mutex);
  if (header->sequence >= next_sequence) next_sequence = header->sequence + 1;
  // It may lie behind where the targets' readers are.
  for (const RouteTarget& target : route_locked(row.route)) send_back(target_state(target.target));
  return {};
}

// How many names a directory must hold: one for each row. Rows that have not been looked at yet are not counted.
bool Spool::Parts::is_expected(Sequence sequence) const {
  return sequence >= first_sequence || sequence <= reconciled_rows;
}

void Spool::Parts::note_row(const RecordId& id, Sequence sequence) {
  if (is_expected(sequence)) ++expected_names[id.bytes[0]];
}

void Spool::Parts::note_row_left(const RecordId& id, Sequence sequence) {
  if (is_expected(sequence)) --expected_names[id.bytes[0]];
}

}  // namespace holdfast
