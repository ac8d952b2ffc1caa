// The proof of I3, from disk: what was taken is delivered, here, set aside, or was let go by someone who said so.

#include "spool/parts.h"

namespace holdfast {

Result<AuditReport> Spool::audit() {
  Parts& parts = *parts_;
  if (const auto error = parts.dead_error()) return *error;
  // Nothing is filed or unlinked while names are counted; the intake and the targets go on, and what they do is in the
  // journal.
  const std::lock_guard upkeep(parts.upkeep_mutex);
  HOLDFAST_TRY(parts.checked(parts.set_aside_rejected()));
  HOLDFAST_TRY(parts.checked(parts.apply_settled()));
  while (parts.reconcile.load() != Parts::Reconcile::finished) {
    auto compared = parts.reconcile_step();
    if (!compared) return parts.fail(compared.error());
  }
  AuditReport report;
  const std::lock_guard commit(parts.commit_mutex);
  for (Sequence after = 0;;) {
    std::vector<IndexedRecord> rows;
    {
      const std::lock_guard lock(parts.index_mutex);
      auto some = parts.index->list(after, kFlushRecords);
      if (!some) return parts.fail(some.error());
      rows = std::move(*some);
    }
    for (const IndexedRecord& row : rows) {
      after = row.sequence;
      auto there = parts.fs.inspect(record_path(row.id));
      if (there) {
        ++report.in_custody;
      } else if (there.error().kind == ErrorKind::not_found) {
        ++report.rows_without_file;
      } else {
        return parts.fail(there.error());
      }
    }
    if (rows.size() < kFlushRecords) break;
  }
  std::uint64_t names = 0, ignored = 0, damaged = 0;
  for (unsigned directory = 0; directory < 256; ++directory) {
    HOLDFAST_TRY(parts.checked(parts.files->list_directory(
        directory, [&](const RecordId&) { ++names; }, ignored)));
  }
  report.files_without_row = names > report.in_custody ? names - report.in_custody : 0;
  HOLDFAST_TRY(parts.checked(
      parts.files->list_quarantine([&](const QuarantineName&) { ++report.quarantined; }, damaged, ignored)));
  Totals totals;
  {
    const std::lock_guard lock(parts.index_mutex);
    totals = parts.index->totals();
    report.era = parts.index->era();
  }
  const std::lock_guard lock(parts.state_mutex);
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

}  // namespace holdfast
