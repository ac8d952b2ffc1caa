// After a start: do the files and the index tell the same? Done in small steps while everything else goes on.
//
// First every tombstone's file goes, then every row must have its file, then every directory must hold as many names as
// it has rows; only where it does not are headers read. So a start costs a look at the names, and not at a million
// files.

#include <fmt/format.h>

#include <set>

#include "spool/parts.h"

namespace holdfast {
namespace {

constexpr std::size_t kComparedAtOnce = 256;  // rows whose files are looked at in one step

// Who has a sequence that a file names.
enum class Holder : std::uint8_t { nobody, row, journal, another };

// A file with a tombstone has left; a cut undid the unlink (R44).
Result<void> finish_unlinks(Spool::Parts& parts) {
  std::vector<LeavingFile> left;
  bool more = false;
  {
    const std::lock_guard lock(parts.index_mutex);
    auto found = parts.index->tombstones_to_unlink(parts.unlinks_finished, kUnlinksBeforeSync);
    if (!found) return found.error();
    for (const auto& [sequence, id] : *found) {
      // What has left in this life is unlinked by it.
      if (sequence >= parts.first_sequence) break;
      left.push_back(parts.leaving->file(id, sequence, 0));
      parts.unlinks_finished = sequence;  // or waits with the names of this life, if it cannot go now
    }
    more = left.size() == kUnlinksBeforeSync;
  }
  HOLDFAST_TRY(parts.unlink(left));
  HOLDFAST_TRY(parts.sync_files());
  if (!more) parts.reconcile = Spool::Parts::Reconcile::rows;
  return {};
}

Result<void> compare_rows(Spool::Parts& parts) {
  std::vector<IndexedRecord> rows;
  {
    const std::lock_guard lock(parts.index_mutex);
    auto found = parts.index->list(parts.expected_names.looked_at(), kComparedAtOnce);
    if (!found) return found.error();
    rows = std::move(*found);
  }
  for (const IndexedRecord& row : rows) {
    // What this life has filed was counted when it was.
    if (row.sequence >= parts.first_sequence) break;
    parts.expected_names.look_at(row.sequence);
    parts.expected_names.row_came(row.id, row.sequence);
    auto there = parts.fs.inspect(record_path(row.id));
    if (there) continue;
    if (there.error().kind != ErrorKind::not_found) return there.error();
    bool in_journal = false;
    {
      const std::lock_guard lock(parts.state_mutex);
      in_journal = parts.custody.records().find(row.sequence) != nullptr;
    }
    if (!in_journal) HOLDFAST_TRY(parts.declare_lost(row.sequence, row.id));
  }
  if (rows.size() < kComparedAtOnce || rows.back().sequence >= parts.first_sequence) {
    parts.expected_names.look_at(parts.first_sequence);
    parts.reconcile = Spool::Parts::Reconcile::names;
  }
  return {};
}

// Row by row: seldom asked. Of an index that was made anew nothing can be said.
Result<void> leave_out_rows(Spool::Parts& parts, std::set<RecordId>& ids) {
  const std::lock_guard lock(parts.index_mutex);
  if (parts.index->rebuilt()) ids.clear();
  for (Sequence after = 0; !ids.empty();) {
    const auto rows = parts.index->list(after, kPage);
    if (!rows) return rows.error();
    for (const IndexedRecord& row : *rows) ids.erase(row.id);
    if (rows->size() < kPage) return {};
    after = rows->back().sequence;
  }
  return {};
}

// What a cut left of a flush goes if the journal has the record, or knows that it left. What it left of a record that
// was on its way into its file, and was never acknowledged, is blank and has no row: that would have been durable
// before the acknowledgement. All else is not ours to judge (R49).
Result<void> look_at_unreadable(Spool::Parts& parts, std::set<RecordId> ids) {
  std::vector<std::pair<RecordId, Sequence>> rowless;
  {
    const std::lock_guard lock(parts.state_mutex);
    for (const RecordId& id : ids) {
      const JournalRecord* record = parts.custody.records().find(id);
      if (record != nullptr && record->place != Place::filed) rowless.emplace_back(id, record->sequence);
    }
  }
  for (const auto& [id, sequence] : rowless) {
    auto removed = parts.lot->remove(id, sequence);
    if (!removed) return removed.error();
    if (*removed) ids.erase(id);
  }
  std::set<RecordId> without_row = ids;
  HOLDFAST_TRY(leave_out_rows(parts, without_row));
  for (const RecordId& id : without_row) {
    auto removed = parts.lot->remove(id, Sequence{0});
    if (!removed) return removed.error();
    if (*removed) ids.erase(id);
  }
  const std::lock_guard lock(parts.state_mutex);
  parts.ignored_names += ids.size();
  return {};
}

// Another record: with a manifest from a backup and no index, this life may have given the sequence again before the
// file was found. The file stays, and a start after the other has left finds it.
Result<Holder> holder_of(Spool::Parts& parts, Sequence sequence, const RecordId& id) {
  {
    const std::lock_guard lock(parts.index_mutex);
    auto row = parts.index->find(sequence);
    if (!row) return row.error();
    if (*row) return (*row)->id == id ? Holder::row : Holder::another;
  }
  const std::lock_guard lock(parts.state_mutex);
  const JournalRecord* record = parts.custody.records().find(sequence);
  if (record == nullptr) return Holder::nobody;
  return record->id == id ? Holder::journal : Holder::another;
}

// A file that no row knows of: our own unfinished flush, a record whose row was lost (R43), or bytes that are not ours.
Result<void> adopt(Spool::Parts& parts, const RecordId& id, std::set<RecordId>& unreadable) {
  auto header = parts.files->peek(id);
  if (!header && header.error().kind == ErrorKind::not_found) return {};
  if (!header && header.error().kind != ErrorKind::corrupt) return header.error();
  if (!header) {
    unreadable.insert(id);
    return {};
  }
  auto holder = holder_of(parts, header->sequence, id);
  if (!holder) return holder.error();
  if (*holder == Holder::row) return {};
  if (*holder == Holder::another) {
    parts.life.notice(
        fmt::format("record {} is in a file under a sequence ({}) that another has: it waits for a later start",
                    id.short_hex(), header->sequence));
    return {};
  }
  // The journal holds the record, or it is known that it left: the file is an unfinished flush, or its row is lost. It
  // would come back as new.
  const auto left = [&] {
    const std::lock_guard lock(parts.index_mutex);
    return parts.index->is_tombstone(header->sequence);
  }();
  if (!left) return left.error();
  if (*left || *holder == Holder::journal) {
    const auto removed = parts.lot->remove(id, header->sequence);
    // A name that cannot go now, and has its tombstone, goes later.
    const bool waits = *left && !removed && removed.error().kind == ErrorKind::unavailable;
    return removed || waits ? Result<void>() : Result<void>(removed.error());
  }
  Bytes frame;
  const auto read = parts.files->read(id, frame);
  if (!read && read.error().kind != ErrorKind::corrupt) return read;
  const IndexedRecord row = row_of(*header, all_targets(route_of(parts.manifest, RouteNumber{header->route})));
  IndexChange change;
  change.filed.push_back(row);
  change.add.taken = 1;
  change.remember.push_back({id, {}, false, header->content});
  if (read) parts.places->note(frame, change.remember.back());
  HOLDFAST_TRY(parts.apply(change, Durability::lazy));
  parts.expected_names.row_came(id, row.sequence);
  const std::lock_guard lock(parts.state_mutex);
  if (header->sequence >= parts.next_sequence) parts.next_sequence = header->sequence + 1;
  // It may lie behind where the targets' readers are.
  for (const TargetNumber target : row.waiting) parts.custody.send_back(parts.custody.target(target));
  return {};
}

Result<void> compare_directory(Spool::Parts& parts, unsigned first_byte) {
  std::vector<RecordId> ids;
  std::uint64_t ignored = 0;
  HOLDFAST_TRY(parts.files->list_directory(
      first_byte, [&](const RecordId& id) { ids.push_back(id); }, ignored));
  std::set<RecordId> unreadable;
  for (const RecordId& id : ids) HOLDFAST_TRY(adopt(parts, id, unreadable));
  return unreadable.empty() ? Result<void>() : look_at_unreadable(parts, std::move(unreadable));
}

Result<void> compare_names(Spool::Parts& parts) {
  // No commit puts a file there while its names are counted and its row is not written yet.
  const std::lock_guard commit_lock(parts.commit_mutex);
  const unsigned directory = parts.reconciled_directories++;
  std::int64_t names = 0;
  std::uint64_t ignored = 0;
  HOLDFAST_TRY(parts.files->list_directory(
      directory, [&](const RecordId&) { ++names; }, ignored));
  if (directory == 0) {
    auto strangers = parts.files->count_strangers();
    if (!strangers) return strangers.error();
    ignored += *strangers;
  }
  if (ignored > 0) {
    const std::lock_guard lock(parts.state_mutex);
    parts.ignored_names += ignored;
  }
  if (names != parts.expected_names.in_directory(directory)) HOLDFAST_TRY(compare_directory(parts, directory));
  if (parts.reconciled_directories == ExpectedNames::kDirectories) parts.reconcile = Spool::Parts::Reconcile::finished;
  return {};
}

}  // namespace

Result<bool> Spool::Parts::reconcile_step() {
  switch (reconcile.load()) {
    case Reconcile::tombstones:
      HOLDFAST_TRY(finish_unlinks(*this));
      return true;
    case Reconcile::rows:
      HOLDFAST_TRY(compare_rows(*this));
      return true;
    case Reconcile::names:
      HOLDFAST_TRY(compare_names(*this));
      return true;
    case Reconcile::finished:
      return false;
  }
  return false;
}

}  // namespace holdfast
