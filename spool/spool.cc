// Opening, the names of targets and routes, and what everything else shares.

#include "spool/spool.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "spool/parts.h"

namespace holdfast {

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

Result<void> Spool::Parts::apply(const IndexChange& change, Durability durability,
                                 const std::function<void()>& in_memory) {
  IndexChange timed = change;
  timed.running_time = running_time();
  const std::lock_guard lock(index_mutex);
  HOLDFAST_TRY(index->apply(timed, durability));
  // What has left is not written again from the journal, whatever was in doubt about its file (R53).
  const std::lock_guard state_lock(state_mutex);
  for (const Sequence sequence : change.left) {
    if (JournalRecord* record = custody.records().find(sequence)) record->unproven = false;
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
    HOLDFAST_TRY(parts.life.checked(parts.save(std::move(changed))));
  }
  const std::lock_guard lock(parts.state_mutex);
  parts.custody.target(number);
  return number;
}

Result<RouteNumber> Spool::route_number(const std::vector<RouteTarget>& targets) {
  const std::lock_guard upkeep(parts_->upkeep_mutex);
  return parts_->number_of_route(targets);
}

Result<RouteNumber> Spool::Parts::number_of_route(const Route& route) {
  if (route.empty() || route.size() > kMaxRouteTargets) {
    return Error{ErrorKind::invalid,
                 fmt::format("a route has 1 to {} targets, not {}", kMaxRouteTargets, route.size())};
  }
  Manifest changed = manifest;
  const auto known = std::ranges::find(changed.routes, route);
  const auto number = static_cast<RouteNumber>(known - changed.routes.begin() + 1);
  if (known == changed.routes.end()) {
    changed.routes.push_back(route);
    HOLDFAST_TRY(life.checked(save(std::move(changed))));
  }
  return number;
}

void Spool::set_active_targets(const std::vector<TargetNumber>& active) {
  const std::lock_guard lock(parts_->state_mutex);
  for (TargetState& state : parts_->custody.targets()) state.active = false;
  for (const TargetNumber target : active) parts_->custody.target(target).active = true;
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

void Spool::Parts::call_sent_back() {
  {
    const std::lock_guard lock(state_mutex);
    if (!custody.take_sent_back()) return;
  }
  notify();
}

void Spool::Parts::notify() {
  std::function<void()> listener;
  {
    const std::lock_guard lock(state_mutex);
    listener = wake;
  }
  if (listener) listener();
}

Result<void> Spool::Parts::update_pressure() {
  auto space = fs.space();
  if (!space) return space.error();
  PressureGauge::Used used;
  {
    const std::lock_guard lock(index_mutex);
    used.bytes = index->file_bytes() + index->quarantine_bytes() + index->disk_bytes();
    used.records = index->records();
    used.reserve_spent = index->reserve_spent();
  }
  const std::lock_guard lock(state_mutex);
  // What is in the journal only may have to go to files.
  used.bytes += leaving->bytes() + journal_disk_bytes + custody.counts().live_bytes;
  used.records += custody.counts().live;
  gauge.read(*space, used, clock.monotonic());
  return {};
}

Pressure Spool::pressure() const {
  const std::lock_guard lock(parts_->state_mutex);
  return parts_->gauge.pressure();
}

}  // namespace holdfast
