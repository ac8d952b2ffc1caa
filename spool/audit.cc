// The proof of I3, from disk: what was taken is delivered, here, set aside, or was let go by someone who said so.

#include "spool/parts.h"

namespace holdfast {

Result<AuditReport> Spool::audit() {
  Parts& parts = *parts_;
  if (const auto error = parts.dead_error()) return *error;
  // In steps, between which intake, targets and housekeeping go on: a million files take a while.
  while (parts.reconcile.load() != Parts::Reconcile::finished) {
    const std::lock_guard upkeep(parts.upkeep_mutex);
    auto compared = parts.reconcile_step();
    if (!compared) return parts.fail(compared.error());
  }
  AuditReport report;
  HOLDFAST_TRY(parts.checked(parts.count_rows_without_file(report)));
  HOLDFAST_TRY(parts.checked(parts.count_files_without_row(report)));

  // The sums, at one moment: what is on its way out, where the disk has room to write that down, has left.
  const std::lock_guard upkeep(parts.upkeep_mutex);
  for (const auto& done : {parts.set_aside_rejected(), parts.apply_settled()}) {
    if (!done && done.error().kind != ErrorKind::full) return parts.fail(done.error());
  }
  const std::lock_guard commit(parts.commit_mutex);
  std::uint64_t ignored = 0;
  HOLDFAST_TRY(
      parts.checked(parts.files->list_quarantine([&](const QuarantineName&) { ++report.quarantined; }, ignored)));
  report.quarantined -= parts.unlink_later.quarantined.size();
  const std::lock_guard lock(parts.index_mutex);
  const Totals& totals = parts.index->totals();
  report.era = parts.index->era();
  report.in_custody = parts.index->records() - report.rows_without_file;
  const std::lock_guard state_lock(parts.state_mutex);
  report.taken = totals.taken + parts.journal_taken;
  report.delivered = totals.delivered + parts.journal_delivered;
  report.discarded = totals.discarded;
  report.expired = totals.expired;
  report.lost = totals.lost;
  for (auto& segment : parts.records.segments()) {
    for (const JournalRecord& record : segment.records) {
      if (record.place == Place::journal && !parts.complete(record)) ++report.in_custody;
    }
  }
  return report;
}

Result<void> Spool::Parts::count_rows_without_file(AuditReport& report) {
  for (Sequence after = 0;;) {
    const std::lock_guard upkeep(upkeep_mutex);  // no row of these loses its file meanwhile
    std::vector<IndexedRecord> rows;
    {
      const std::lock_guard lock(index_mutex);
      auto some = index->list(after, kFlushRecords);
      if (!some) return some.error();
      rows = std::move(*some);
    }
    for (const IndexedRecord& row : rows) {
      after = row.sequence;
      auto there = fs.inspect(record_path(row.id));
      if (there) continue;
      if (there.error().kind != ErrorKind::not_found) return there.error();
      ++report.rows_without_file;
    }
    if (rows.size() < kFlushRecords) return {};
  }
}

// A directory at a time, against what it must hold by the rows there are. No file comes or goes there meanwhile.
Result<void> Spool::Parts::count_files_without_row(AuditReport& report) {
  std::uint64_t ignored = 0;
  for (unsigned directory = 0; directory < expected_names.size(); ++directory) {
    const std::lock_guard upkeep(upkeep_mutex);
    const std::lock_guard commit_lock(commit_mutex);
    std::int64_t more = -expected_names[directory];
    HOLDFAST_TRY(files->list_directory(
        directory, [&](const RecordId&) { ++more; }, ignored));
    if (more > 0) report.files_without_row += static_cast<std::uint64_t>(more);
  }
  return {};
}

}  // namespace holdfast
