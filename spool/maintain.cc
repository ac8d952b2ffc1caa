// Housekeeping in rounds, and the last of them: a clean stop.

#include <algorithm>
#include <utility>

#include "spool/parts.h"

namespace holdfast {
namespace {

constexpr Nanoseconds kUpkeepPause = std::chrono::milliseconds(100);
constexpr Nanoseconds kTidyPause = std::chrono::seconds(1);

bool done_frames_are_due(Spool::Parts& parts) {
  const std::lock_guard lock(parts.state_mutex);
  return parts.unwritten.done_is_due(parts.clock.monotonic());
}

// Written before a commit needs it, and not while the process starts. Without room there is none: the commit that needs
// it says so.
Result<void> make_next_segment(Spool::Parts& parts) {
  const std::lock_guard commit_lock(parts.commit_mutex);
  HOLDFAST_TRY(unless_full(parts.journal->make_segment()));
  const std::lock_guard lock(parts.state_mutex);
  parts.journal_disk_bytes = parts.journal->disk_bytes();
  return {};
}

Result<void> raise_floor_and_rotate(Spool::Parts& parts) {
  const std::lock_guard commit_lock(parts.commit_mutex);
  Manifest changed = parts.manifest;
  const std::uint64_t sealed = parts.sealer->worn(), at_most = parts.options.data_key_bytes;
  const bool low = changed.sequence_floor - parts.next_sequence < kFloorStep / 2;
  const bool worn = changed.data_key_bytes + sealed >= at_most;
  const bool much = sealed >= at_most / kDataKeySteps;
  if (!low && !worn && !much) return {};
  changed.data_key_bytes += sealed;
  if (low) changed.sequence_floor = parts.next_sequence + kFloorStep;
  if (worn) parts.keyring->add_data_key(changed, parts.recipient);
  HOLDFAST_TRY(parts.save(std::move(changed)));
  parts.sealer->written_down(sealed);
  parts.keyring->use_current(parts.manifest);
  return {};
}

// Once a second or so: what must be ready before it is needed, and what can be forgotten.
Result<void> tidy(Spool::Parts& parts) {
  HOLDFAST_TRY(raise_floor_and_rotate(parts));
  HOLDFAST_TRY(make_next_segment(parts));
  HOLDFAST_TRY(parts.leaving->remove_waiting_quarantined());
  const std::lock_guard lock(parts.index_mutex);
  HOLDFAST_TRY(unless_full(parts.index->tidy()));
  return unless_full(parts.prune_ledger());
}

Result<Nanoseconds> one_round(Spool::Parts& parts) {
  const std::lock_guard upkeep(parts.upkeep_mutex);
  bool more = false, full = false;
  // A full disk is a state, not a failure: what can leave goes on leaving, whatever else has no room (R29).
  const auto step = [&](auto result) -> Result<void> {
    if constexpr (std::is_same_v<decltype(result), Result<bool>>) more = more || (result && *result);
    if (result.ok()) return {};
    full = full || result.error().kind == ErrorKind::full;
    return result.error().kind == ErrorKind::full ? Result<void>() : parts.life.fail(result.error());
  };
  if (done_frames_are_due(parts)) HOLDFAST_TRY(step(parts.write_done_frames()));
  HOLDFAST_TRY(step(parts.apply_settled()));
  HOLDFAST_TRY(step(parts.unlink_some()));
  HOLDFAST_TRY(step(parts.set_aside_rejected()));
  HOLDFAST_TRY(step(parts.flush_lingering()));
  HOLDFAST_TRY(step(parts.reconcile_step()));
  const Nanoseconds now = parts.clock.monotonic();
  if (now - parts.tidied >= kTidyPause || full) {
    parts.tidied = now;
    HOLDFAST_TRY(step(tidy(parts)));
  }
  HOLDFAST_TRY(step(parts.update_pressure()));
  return more && !full ? Nanoseconds(0) : kUpkeepPause;
}

}  // namespace

Result<Nanoseconds> Spool::maintain() {
  if (const auto error = parts_->life.over()) return *error;
  auto rest = one_round(*parts_);
  parts_->call_sent_back();
  return rest;
}

Result<void> Spool::close(Nanoseconds deadline) {
  Parts& parts = *parts_;
  if (const auto error = parts.life.over()) return *error;
  const std::lock_guard upkeep(parts.upkeep_mutex);
  // What has no room on a full disk is left to the next life; the other steps are done all the same.
  bool full = false;
  const auto step = [&](Result<void> done) -> Result<void> {
    full = full || (!done && done.error().kind == ErrorKind::full);
    return done.ok() || done.error().kind == ErrorKind::full ? Result<void>() : parts.life.fail(done.error());
  };
  HOLDFAST_TRY(step(parts.set_aside_rejected()));
  HOLDFAST_TRY(step(parts.apply_settled()));
  while (!full && parts.clock.monotonic() < deadline && !parts.journal->in_use().empty())
    HOLDFAST_TRY(step(parts.retire_oldest()));
  if (!parts.journal->in_use().empty()) HOLDFAST_TRY(step(parts.write_done_frames()));
  HOLDFAST_TRY(step(parts.apply_settled()));
  for (bool more = true; more && parts.clock.monotonic() < deadline;) {
    const auto went = parts.unlink_some();
    more = went && *went;
    HOLDFAST_TRY(step(went ? Result<void>() : Result<void>(went.error())));
  }
  HOLDFAST_TRY(step(parts.sync_files()));
  {
    const std::lock_guard commit_lock(parts.commit_mutex);
    Manifest changed = parts.manifest;
    const std::uint64_t sealed = parts.sealer->worn();
    changed.data_key_bytes += sealed;
    parts.sealer->written_down(sealed);
    HOLDFAST_TRY(step(parts.save(std::move(changed))));
  }
  {
    const std::lock_guard lock(parts.index_mutex);
    HOLDFAST_TRY(step(parts.index->close()));
  }
  parts.life.end({ErrorKind::io, "the spool is closed"});
  return {};
}

}  // namespace holdfast
