// The proof of I3, from disk: what was taken is delivered, here, set aside, or was let go by someone who said so.

#include "spool/parts.h"

namespace holdfast {
namespace {

Result<void> count_rows_without_file(Spool::Parts& parts, AuditReport& report) {
  for (Sequence after = 0;;) {
    const std::lock_guard upkeep(parts.upkeep_mutex);  // no row of these loses its file meanwhile
    std::vector<IndexedRecord> rows;
    {
      const std::lock_guard lock(parts.index_mutex);
      auto some = parts.index->list(after, kPage);
      if (!some) return some.error();
      rows = std::move(*some);
    }
    for (const IndexedRecord& row : rows) {
      after = row.sequence;
      auto there = parts.fs.inspect(record_path(row.id));
      if (there) continue;
      if (there.error().kind != ErrorKind::not_found) return there.error();
      ++report.rows_without_file;
    }
    if (rows.size() < kPage) return {};
  }
}

// A directory at a time, against what it must hold by the rows there are. No file comes or goes there meanwhile.
Result<void> count_files_without_row(Spool::Parts& parts, AuditReport& report) {
  std::uint64_t ignored = 0;
  for (unsigned directory = 0; directory < ExpectedNames::kDirectories; ++directory) {
    const std::lock_guard upkeep(parts.upkeep_mutex);
    const std::lock_guard commit_lock(parts.commit_mutex);
    std::int64_t more = -parts.expected_names.in_directory(directory);
    HOLDFAST_TRY(parts.files->list_directory(
        directory, [&](const RecordId&) { ++more; }, ignored));
    if (more > 0) report.files_without_row += static_cast<std::uint64_t>(more);
  }
  return {};
}

}  // namespace

Result<AuditReport> Spool::audit() {
  Parts& parts = *parts_;
  if (const auto error = parts.life.over()) return *error;
  // In steps, between which intake, targets and housekeeping go on: a million files take a while.
  while (parts.reconcile.load() != Parts::Reconcile::finished) {
    const std::lock_guard upkeep(parts.upkeep_mutex);
    auto compared = parts.reconcile_step();
    if (!compared) return parts.life.fail(compared.error());
  }
  AuditReport report;
  HOLDFAST_TRY(parts.life.checked(count_rows_without_file(parts, report)));
  HOLDFAST_TRY(parts.life.checked(count_files_without_row(parts, report)));

  // The sums, at one moment: what is on its way out, where the disk has room to write that down, has left.
  const std::lock_guard upkeep(parts.upkeep_mutex);
  for (const auto& done : {parts.set_aside_rejected(), parts.apply_settled()}) {
    if (!done && done.error().kind != ErrorKind::full) return parts.life.fail(done.error());
  }
  const std::lock_guard commit(parts.commit_mutex);
  std::uint64_t ignored = 0;
  HOLDFAST_TRY(
      parts.life.checked(parts.files->list_quarantine([&](const QuarantineName&) { ++report.quarantined; }, ignored)));
  report.quarantined -= parts.leaving->waiting_quarantined();
  const std::lock_guard lock(parts.index_mutex);
  const Totals& totals = parts.index->totals();
  report.era = parts.index->era();
  report.in_custody = parts.index->records() - report.rows_without_file;
  const std::lock_guard state_lock(parts.state_mutex);
  report.taken = totals.taken + parts.custody.counts().taken;
  report.delivered = totals.delivered + parts.custody.counts().delivered;
  report.discarded = totals.discarded;
  report.expired = totals.expired;
  report.lost = totals.lost;
  for (auto& segment : parts.custody.records().segments()) {
    for (const JournalRecord& record : segment.records) {
      if (parts.custody.in_custody(record)) ++report.in_custody;
    }
  }
  return report;
}

}  // namespace holdfast
