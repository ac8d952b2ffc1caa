// Opening, closing, and what everything else shares.

#include "spool/spool.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "spool/batch.h"
#include "spool/parts.h"

namespace holdfast {
namespace {

// A source that a full quarantine holds tries more often than this.
constexpr Nanoseconds kQuarantineHolds = std::chrono::seconds(2);

const std::vector<RouteTarget> kNoTargets;

}  // namespace

Spool::Spool(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Spool::~Spool() = default;

Result<std::unique_ptr<Spool>> Spool::open(FileSystem& fs, const Clock& clock, const SpoolOptions& options,
                                           const SecretKey& key) {
  auto parts = std::make_unique<Parts>(fs, clock, options, key);
  HOLDFAST_TRY(parts->take_manifest());
  HOLDFAST_TRY(parts->recover());
  HOLDFAST_TRY(parts->update_pressure());
  return std::unique_ptr<Spool>(new Spool(std::move(parts)));
}

std::optional<Error> Spool::Parts::dead_error() const {
  const std::lock_guard lock(state_mutex);
  return dead;
}

// The first `io` is the last of this life: nothing is tried again (R8).
Error Spool::Parts::fail(Error error) {
  // A corrupt index is set aside by the next life, which builds another.
  if (error.kind == ErrorKind::corrupt || error.kind == ErrorKind::invalid) error.kind = ErrorKind::io;
  if (error.kind == ErrorKind::not_found || error.kind == ErrorKind::exists) error.kind = ErrorKind::io;
  if (error.kind != ErrorKind::io) return error;
  const std::lock_guard lock(state_mutex);
  if (!dead) dead = error;
  return *dead;
}

Result<void> Spool::Parts::checked(Result<void> result) {
  if (result.ok()) return result;
  return fail(result.error());
}

void Spool::Parts::notice(std::string text) {
  const std::lock_guard lock(state_mutex);
  if (notices.size() < kMaxNotices) notices.push_back(std::move(text));
}

Nanoseconds Spool::Parts::running_time() const {
  return running_before + (clock.monotonic() - life_began);
}

// What it names may be used once this has returned (R2).
Result<void> Spool::Parts::save(Manifest changed) {
  sign_manifest(changed, keyring->namer());
  std::uint64_t generation = 0;
  {
    const std::lock_guard lock(state_mutex);
    generation = manifest_generation;
  }
  HOLDFAST_TRY(save_manifest(fs, changed, generation));
  const std::lock_guard lock(state_mutex);
  manifest = std::move(changed);
  manifest_generation = generation;
  return {};
}

const std::vector<RouteTarget>& Spool::Parts::route_locked(RouteNumber number) const {
  const auto place = static_cast<std::size_t>(number);
  return place == 0 || place > manifest.routes.size() ? kNoTargets : manifest.routes[place - 1];
}

std::vector<RouteTarget> Spool::Parts::route(RouteNumber number) const {
  const std::lock_guard lock(state_mutex);
  return route_locked(number);
}

TargetBits Spool::Parts::all_bits(RouteNumber number) const {
  const std::size_t count = route_locked(number).size();
  CHECK(count <= kMaxRouteTargets);
  return count == kMaxRouteTargets ? ~TargetBits{0} : (TargetBits{1} << count) - 1;
}

TargetBits Spool::Parts::required_bits(RouteNumber number) const {
  TargetBits bits = 0;
  const auto& targets_of = route_locked(number);
  for (std::size_t i = 0; i < targets_of.size(); ++i) bits |= TargetBits{targets_of[i].required} << i;
  return bits;
}

TargetBits Spool::Parts::bit_of(RouteNumber number, TargetNumber target) const {
  const auto& targets_of = route_locked(number);
  for (std::size_t i = 0; i < targets_of.size(); ++i) {
    if (targets_of[i].target == target) return TargetBits{1} << i;
  }
  return 0;
}

TargetState& Spool::Parts::target_state(TargetNumber target) {
  const auto place = static_cast<std::size_t>(target);
  CHECK(place >= 1);
  if (targets.size() < place) targets.resize(place);
  return targets[place - 1];
}

// Nothing that no target is required to have ever is (R23).
bool Spool::Parts::complete(const JournalRecord& record) const {
  const TargetBits required = required_bits(record.route);
  return required != 0 && (record.waiting & required) == 0;
}

std::vector<TargetNumber> Spool::Parts::waiting_targets(const JournalRecord& record) const {
  std::vector<TargetNumber> waiting;
  const auto& targets_of = route_locked(record.route);
  for (std::size_t i = 0; i < targets_of.size(); ++i) {
    if ((record.waiting >> i & 1) != 0) waiting.push_back(targets_of[i].target);
  }
  return waiting;
}

void Spool::Parts::count_live(const JournalRecord& record, bool add) {
  const std::uint64_t bytes = round_up_to_block(record.spot.size);
  journal_live += add ? 1 : std::uint64_t(-1);
  journal_live_bytes += add ? bytes : std::uint64_t(0) - bytes;
}

void Spool::Parts::leaves_journal(const JournalRecord& record) {
  if (complete(record)) {
    --journal_delivered;
  } else {
    count_live(record, false);
  }
  count_waiting(record, record.waiting, false);
}

void Spool::Parts::count_waiting(const JournalRecord& record, TargetBits bits, bool add) {
  const auto& targets_of = route_locked(record.route);
  for (std::size_t i = 0; i < targets_of.size(); ++i) {
    if ((bits >> i & 1) == 0) continue;
    TargetState& state = target_state(targets_of[i].target);
    if (add && state.journal_records == 0) state.progress = clock.monotonic();
    state.journal_records += add ? 1 : std::uint64_t(-1);
    state.journal_bytes += add ? record.spot.size : std::uint64_t(0) - record.spot.size;
  }
}

// Adds when the oldest record of each target was accepted, where the journal has one that no file is older than.
void Spool::Parts::oldest_in_journal(std::map<TargetNumber, std::int64_t>& oldest) {
  std::size_t missing = 0;
  for (std::size_t i = 0; i < targets.size(); ++i)
    missing += targets[i].journal_records > 0 && !oldest.contains(TargetNumber(i + 1)) ? 1u : 0u;
  for (const auto& segment : records.segments()) {
    for (auto record = segment.records.begin(); record != segment.records.end() && missing > 0; ++record) {
      if (record->place != Place::journal || record->waiting == 0) continue;
      for (const TargetNumber target : waiting_targets(*record)) {
        missing -= oldest.emplace(target, record->accepted_wall_ns).second ? 1u : 0u;
      }
    }
  }
}

Result<void> Spool::Parts::apply(const IndexChange& change, Durability durability,
                                 const std::function<void()>& in_memory) {
  IndexChange timed = change;
  timed.running_time = running_time();
  const std::lock_guard lock(index_mutex);
  HOLDFAST_TRY(index->apply(timed, durability));
  // What has left is not written again from the journal, whatever was in doubt about its file (R53).
  const std::lock_guard state_lock(state_mutex);
  for (const Sequence sequence : change.left) {
    if (JournalRecord* record = records.find(sequence)) record->unproven = false;
  }
  if (in_memory) in_memory();
  return {};
}

// The tables only grow: a number keeps its meaning for ever (R4).
Result<TargetNumber> Spool::target_number(const std::string& name) {
  Parts& parts = *parts_;
  const std::lock_guard upkeep(parts.upkeep_mutex);
  Manifest changed = parts.manifest;
  const auto known = std::ranges::find(changed.targets, name);
  const auto number = static_cast<TargetNumber>(known - changed.targets.begin() + 1);
  if (known == changed.targets.end()) {
    changed.targets.push_back(name);
    HOLDFAST_TRY(parts.checked(parts.save(std::move(changed))));
  }
  const std::lock_guard lock(parts.state_mutex);
  parts.target_state(number);
  return number;
}

Result<RouteNumber> Spool::route_number(const std::vector<RouteTarget>& targets) {
  const std::lock_guard upkeep(parts_->upkeep_mutex);
  return parts_->number_of_route(targets);
}

Result<RouteNumber> Spool::Parts::number_of_route(const std::vector<RouteTarget>& route_targets) {
  if (route_targets.empty() || route_targets.size() > kMaxRouteTargets) {
    return Error{ErrorKind::invalid,
                 fmt::format("a route has 1 to {} targets, not {}", kMaxRouteTargets, route_targets.size())};
  }
  Manifest changed = manifest;
  const auto known = std::ranges::find(changed.routes, route_targets);
  const auto number = static_cast<RouteNumber>(known - changed.routes.begin() + 1);
  if (known == changed.routes.end()) {
    changed.routes.push_back(route_targets);
    HOLDFAST_TRY(checked(save(std::move(changed))));
  }
  return number;
}

void Spool::set_active_targets(const std::vector<TargetNumber>& active) {
  const std::lock_guard lock(parts_->state_mutex);
  for (TargetState& state : parts_->targets) state.active = false;
  for (const TargetNumber target : active) parts_->target_state(target).active = true;
}

std::string Spool::target_name(TargetNumber target) const {
  const std::lock_guard lock(parts_->state_mutex);
  const auto place = static_cast<std::size_t>(target);
  return place == 0 || place > parts_->manifest.targets.size() ? std::string() : parts_->manifest.targets[place - 1];
}

const std::string& Spool::site() const {
  return parts_->site;
}

void Spool::on_due(std::function<void()> wake) {
  const std::lock_guard lock(parts_->state_mutex);
  parts_->wake = std::move(wake);
}

void Spool::Parts::send_back(TargetState& target) {
  ++target.generation;
  readers_go_back = true;
}

void Spool::Parts::call_back() {
  {
    const std::lock_guard lock(state_mutex);
    if (!std::exchange(readers_go_back, false)) return;
  }
  notify();
}

void Spool::Parts::notify() const {
  std::function<void()> listener;
  {
    const std::lock_guard lock(state_mutex);
    listener = wake;
  }
  if (listener) listener();
}

Result<Nanoseconds> Spool::maintain() {
  auto rest = parts_->maintain();
  parts_->call_back();
  return rest;
}

Result<Nanoseconds> Spool::Parts::maintain() {
  if (const auto error = dead_error()) return *error;
  const std::lock_guard upkeep(upkeep_mutex);
  bool more = false, full = false;
  // A full disk is a state, not a failure: what can leave goes on leaving, whatever else has no room (R29).
  const auto step = [&](auto result) -> Result<void> {
    if constexpr (std::is_same_v<decltype(result), Result<bool>>) more = more || (result && *result);
    if (result.ok()) return {};
    full = full || result.error().kind == ErrorKind::full;
    return result.error().kind == ErrorKind::full ? Result<void>() : fail(result.error());
  };
  if (done_frames_are_due()) HOLDFAST_TRY(step(write_done_frames()));
  HOLDFAST_TRY(step(apply_settled()));
  HOLDFAST_TRY(step(unlink_some()));
  HOLDFAST_TRY(step(set_aside_rejected()));
  HOLDFAST_TRY(step(flush_lingering()));
  HOLDFAST_TRY(step(reconcile_step()));
  const Nanoseconds now = clock.monotonic();
  if (now - tidied >= kTidyPause || full) {
    tidied = now;
    HOLDFAST_TRY(step(tidy()));
  }
  HOLDFAST_TRY(step(update_pressure()));
  return more && !full ? Nanoseconds(0) : kUpkeepPause;
}

bool Spool::Parts::done_frames_are_due() const {
  const std::lock_guard lock(state_mutex);
  return !done_unwritten.empty() && clock.monotonic() - done_since >= kDoneDelay;
}

// Once a second or so: what must be ready before it is needed, and what can be forgotten.
Result<void> Spool::Parts::tidy() {
  HOLDFAST_TRY(raise_floor_and_rotate());
  HOLDFAST_TRY(make_next_segment());
  HOLDFAST_TRY(unlink_quarantined(std::exchange(unlink_later.quarantined, {})));
  const std::lock_guard lock(index_mutex);
  HOLDFAST_TRY(unless_full(index->tidy()));
  return unless_full(prune_ledger());
}

// Written before a commit needs it, and not while the process starts. Without room there is none: the commit that needs
// it says so.
Result<void> Spool::Parts::make_next_segment() {
  const std::lock_guard commit_lock(commit_mutex);
  HOLDFAST_TRY(unless_full(journal->make_segment()));
  const std::lock_guard lock(state_mutex);
  journal_disk_bytes = journal->disk_bytes();
  return {};
}

Result<void> Spool::Parts::raise_floor_and_rotate() {
  const std::lock_guard commit_lock(commit_mutex);
  Manifest changed = manifest;
  const bool low = manifest.sequence_floor - next_sequence < kFloorStep / 2;
  const bool worn = manifest.data_key_bytes + sealed_bytes >= options.data_key_bytes;
  const bool much = sealed_bytes >= options.data_key_bytes / kDataKeySteps;
  if (!low && !worn && !much) return {};
  const std::uint64_t sealed = sealed_bytes;
  changed.data_key_bytes += sealed;
  if (low) changed.sequence_floor = next_sequence + kFloorStep;
  if (worn) keyring->add_data_key(changed, recipient);
  HOLDFAST_TRY(save(std::move(changed)));
  sealed_bytes -= sealed;
  keyring->use_current(manifest);
  return {};
}

Result<void> Spool::close(Nanoseconds deadline) {
  Parts& parts = *parts_;
  if (const auto error = parts.dead_error()) return *error;
  const std::lock_guard upkeep(parts.upkeep_mutex);
  // What has no room on a full disk is left to the next life; the other steps are done all the same.
  bool full = false;
  const auto step = [&](Result<void> done) -> Result<void> {
    full = full || (!done && done.error().kind == ErrorKind::full);
    return done.ok() || done.error().kind == ErrorKind::full ? Result<void>() : parts.fail(done.error());
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
    changed.data_key_bytes += parts.sealed_bytes.exchange(0);
    HOLDFAST_TRY(step(parts.save(std::move(changed))));
  }
  {
    const std::lock_guard lock(parts.index_mutex);
    HOLDFAST_TRY(step(parts.index->close()));
  }
  const std::lock_guard lock(parts.state_mutex);
  parts.dead = Error{ErrorKind::io, "the spool is closed"};
  return {};
}

SpoolStatus Spool::status() const {
  Parts& parts = *parts_;
  SpoolStatus status;
  std::map<TargetNumber, WaitingCount> in_files;
  std::map<TargetNumber, std::int64_t> oldest;
  // Both at once: what goes from the journal into the index is counted in one of them.
  const std::lock_guard index_lock(parts.index_mutex);
  status.era = parts.index->era();
  status.totals = parts.index->totals();
  status.in_files = parts.index->records();
  status.quarantined = parts.index->quarantined();
  status.quarantine_bytes = parts.index->quarantine_bytes();
  status.disk_bytes = parts.index->file_bytes() + status.quarantine_bytes + parts.index->disk_bytes();
  for (const WaitingCount& count : parts.index->waiting()) {
    in_files[count.target] = count;
    if (auto accepted = parts.index->oldest_waiting(count.target); accepted && *accepted)
      oldest[count.target] = **accepted;
  }
  const std::lock_guard lock(parts.state_mutex);
  status.totals.taken += parts.journal_taken;
  status.totals.delivered += parts.journal_delivered;
  status.in_journal = parts.journal_live;
  status.in_custody = status.in_files + status.in_journal;
  status.disk_bytes += parts.journal_disk_bytes + parts.leaving_bytes;
  status.free_bytes = parts.space.free_bytes;
  status.free_inodes = parts.space.free_inodes;
  status.ignored_names = parts.ignored_names;
  status.bad_done_frames = parts.bad_done_frames;
  status.pressure = parts.pressure;
  const bool holds = parts.quarantine_full && parts.clock.monotonic() - *parts.quarantine_full < kQuarantineHolds;
  if (holds && !status.pressure.paused()) status.pressure.kind = PressureKind::quarantine;
  status.verdicts = parts.verdicts;
  status.site_changed = parts.site_changed;
  status.unsafe_file_system = parts.unsafe_fs;
  status.reconciling = parts.reconcile.load() != Parts::Reconcile::finished;
  status.boot = parts.boot;
  status.next_sequence = parts.next_sequence;
  status.notices = parts.notices;
  parts.oldest_in_journal(oldest);
  const Nanoseconds now = parts.clock.monotonic();
  for (const auto& [when, took] : parts.slow_syncs) {
    if (now - when > std::chrono::minutes(1)) continue;
    status.slow_disk = true;
    status.slowest_sync = std::max(status.slowest_sync, took);
  }
  for (std::size_t i = 0; i < parts.manifest.targets.size(); ++i) {
    const auto number = static_cast<TargetNumber>(i + 1);
    const TargetState& state = parts.target_state(number);
    const WaitingCount& filed = in_files[number];
    status.targets.push_back({number, parts.manifest.targets[i], state.active, filed.records + state.journal_records,
                              filed.bytes + state.journal_bytes, state.delivered, state.duplicates,
                              state.duplicates_unexpected, state.rejected,
                              oldest.contains(number) ? std::optional(oldest[number]) : std::nullopt});
  }
  return status;
}

}  // namespace holdfast
