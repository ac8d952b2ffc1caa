// What the spool tells of itself, at one moment.

#include <algorithm>

#include "spool/parts.h"

namespace holdfast {
namespace {

using Counts = std::map<TargetNumber, WaitingCount>;
using Oldest = std::map<TargetNumber, std::int64_t>;

// index_mutex held.
void tell_of_files(Spool::Parts& parts, SpoolStatus& status, Counts& counts, Oldest& oldest) {
  Index& index = *parts.index;
  status.era = index.era();
  status.totals = index.totals();
  status.in_files = index.records();
  status.quarantined = index.quarantined();
  status.quarantine_bytes = index.quarantine_bytes();
  status.disk_bytes = index.file_bytes() + status.quarantine_bytes + index.disk_bytes();
  for (const WaitingCount& count : index.waiting()) {
    counts[count.target] = count;
    if (auto accepted = index.oldest_waiting(count.target); accepted && *accepted) oldest[count.target] = **accepted;
  }
}

// state_mutex held.
void tell_of_targets(Spool::Parts& parts, SpoolStatus& status, Counts& in_files, Oldest& oldest) {
  parts.custody.add_oldest(oldest);
  for (std::size_t i = 0; i < parts.manifest.targets.size(); ++i) {
    const auto number = static_cast<TargetNumber>(i + 1);
    const TargetState& state = parts.custody.target(number);
    const WaitingCount& filed = in_files[number];
    status.targets.push_back({number, parts.manifest.targets[i], state.active, filed.records + state.journal_records,
                              filed.bytes + state.journal_bytes, state.delivered, state.duplicates,
                              state.duplicates_unexpected, state.rejected,
                              oldest.contains(number) ? std::optional(oldest[number]) : std::nullopt});
  }
}

}  // namespace

SpoolStatus Spool::status() const {
  Parts& parts = *parts_;
  SpoolStatus status;
  status.notices = parts.life.notices();
  Counts in_files;
  Oldest oldest;
  // Both at once: what goes from the journal into the index is counted in one of them.
  const std::lock_guard index_lock(parts.index_mutex);
  tell_of_files(parts, status, in_files, oldest);
  const std::lock_guard lock(parts.state_mutex);
  const JournalCustody::Counts& journal = parts.custody.counts();
  status.totals.taken += journal.taken;
  status.totals.delivered += journal.delivered;
  status.in_journal = journal.live;
  status.in_custody = status.in_files + status.in_journal;
  status.disk_bytes += parts.journal_disk_bytes + parts.leaving->bytes();
  const Nanoseconds now = parts.clock.monotonic();
  status.free_bytes = parts.gauge.space().free_bytes;
  status.free_inodes = parts.gauge.space().free_inodes;
  status.pressure = parts.gauge.shown(now);
  status.ignored_names = parts.ignored_names;
  status.bad_done_frames = parts.bad_done_frames;
  status.verdicts = parts.verdicts;
  status.site_changed = parts.site_changed;
  status.unsafe_file_system = parts.unsafe_fs;
  status.reconciling = parts.reconcile.load() != Parts::Reconcile::finished;
  status.boot = parts.boot;
  status.next_sequence = parts.next_sequence;
  for (const auto& [when, took] : parts.slow_syncs) {
    if (now - when > std::chrono::minutes(1)) continue;
    status.slow_disk = true;
    status.slowest_sync = std::max(status.slowest_sync, took);
  }
  tell_of_targets(parts, status, in_files, oldest);
  return status;
}

}  // namespace holdfast
