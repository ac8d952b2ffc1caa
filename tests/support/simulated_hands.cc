// The parts of SimulatedFileSystem that only tests call: faults, lives, the kind of disk, and the test's own hands.
#include <algorithm>
#include <set>

#include "spool/path.h"
#include "tests/support/simulated_disk.h"

namespace holdfast {

namespace {

using Guard = std::lock_guard<std::mutex>;
using From = SimulatedContent::From;

// What must be there, or the test is wrong.
NodePtr known(const SimulatedDisk& disk, const std::string& path) {
  auto node = disk.find({"find", path, Nature::reads}, path);
  CHECK(node.ok());
  return *std::move(node);
}

Place known_place(const SimulatedDisk& disk, const std::string& path) {
  auto place = disk.place({"find", path, Nature::reads}, path);
  CHECK(place.ok());
  return *std::move(place);
}

NodePtr on_medium(const SimulatedDisk& disk, const std::string& path) {
  NodePtr node = disk.root;
  for (std::string_view rest = path; node && !rest.empty();) {
    const std::size_t slash = rest.find('/');
    node = node->on_medium(rest.substr(0, slash));
    rest.remove_prefix(slash == std::string_view::npos ? rest.size() : slash + 1);
  }
  return node;
}

Bytes content_of(const NodePtr& node, From from) {
  Bytes bytes(static_cast<std::size_t>(from == From::medium ? node->content.medium_size() : node->content.size()));
  node->content.read(from, 0, bytes);
  return bytes;
}

void forget(SimulatedDisk& disk, const NodePtr& node) {
  for (const auto& [name, entry] : node->names) {
    if (entry.now) forget(disk, entry.now);
  }
  disk.unname(node);
}

NodePtr plant_node(SimulatedDisk& disk, const std::string& path, NameType type) {
  const std::string parent = parent_path(path);
  if (!parent.empty() && !on_medium(disk, parent)) plant_node(disk, parent, NameType::directory);
  const Place place = known_place(disk, path);
  NodePtr node = place.node();
  const bool keep = node && type == NameType::directory && node->type == NameType::directory;
  if (node && !keep) forget(disk, node);
  if (!keep) {
    node = make_node(type);
    node->links = 1;
    ++disk.inodes_used;
  }
  plant_name(*place.directory, place.name, node);
  return node;
}

void collect_files(const Node& directory, const std::string& prefix, std::vector<std::string>& out) {
  for (const auto& [name, entry] : directory.names) {
    if (!entry.now) continue;
    if (entry.now->type == NameType::directory) {
      collect_files(*entry.now, prefix + name + "/", out);
    } else {
      out.push_back(prefix + name);
    }
  }
}

// Everything that any state of any name leads to.
void collect_holders(const Node& node, const std::string& path, std::string_view text, std::set<const Node*>& seen,
                     std::vector<std::string>& out) {
  if (!seen.insert(&node).second) return;
  if (node.content.holds(as_bytes(text)) || last_name(path).find(text) != std::string::npos) out.push_back(path);
  for (const auto& [name, entry] : node.names) {
    const std::string inner = path.empty() ? name : path + "/" + name;
    if (entry.now) collect_holders(*entry.now, inner, text, seen, out);
    if (entry.medium) collect_holders(*entry.medium, inner, text, seen, out);
    for (const NameState& state : entry.unsynced) {
      if (state.node) collect_holders(*state.node, inner, text, seen, out);
    }
  }
}

}  // namespace

// --- Faults

std::uint64_t SimulatedFileSystem::steps() const {
  const Guard guard(disk_->mutex);
  return disk_->step;
}

void SimulatedFileSystem::fail_at(std::uint64_t step, Fault fault) {
  const Guard guard(disk_->mutex);
  disk_->faults.emplace(step, fault);
}

void SimulatedFileSystem::clear_faults() {
  const Guard guard(disk_->mutex);
  disk_->faults.clear();
}

void SimulatedFileSystem::count_reads(bool on) {
  const Guard guard(disk_->mutex);
  disk_->count_reads = on;
}

StepCounts SimulatedFileSystem::counts() const {
  const Guard guard(disk_->mutex);
  return disk_->counts;
}

void SimulatedFileSystem::observe(Observer observer) {
  const Guard guard(disk_->mutex);
  disk_->observer = std::move(observer);
}

std::string SimulatedFileSystem::trace() const {
  const Guard guard(disk_->mutex);
  std::string text;
  for (const std::string& line : disk_->trace) text += line + "\n";
  return text;
}

std::uint64_t SimulatedFileSystem::trace_hash() const {
  const Guard guard(disk_->mutex);
  return disk_->trace_hash;
}

// --- Lives

void SimulatedFileSystem::lose_power(std::uint64_t seed) {
  const Guard guard(disk_->mutex);
  LossPlan plan(Loss::random, seed, disk_->tears_blocks);
  disk_->end_life(&plan);
}

void SimulatedFileSystem::lose_power(Loss loss) {
  const Guard guard(disk_->mutex);
  LossPlan plan(loss, 0, disk_->tears_blocks);
  disk_->end_life(&plan);
}

void SimulatedFileSystem::restart_without_power_loss() {
  const Guard guard(disk_->mutex);
  CHECK(!disk_->off);
  disk_->end_life(nullptr);
}

bool SimulatedFileSystem::power_is_off() const {
  const Guard guard(disk_->mutex);
  return disk_->off;
}

std::unique_ptr<SimulatedFileSystem> SimulatedFileSystem::copy() const {
  return std::unique_ptr<SimulatedFileSystem>(new SimulatedFileSystem(disk_->copy()));
}

// --- What kind of disk

void SimulatedFileSystem::set_capacity(std::uint64_t bytes, std::uint64_t inodes) {
  const Guard guard(disk_->mutex);
  disk_->block_capacity = bytes / kPageSize;
  disk_->inode_capacity = inodes;
}

void SimulatedFileSystem::set_read_only(bool on) {
  const Guard guard(disk_->mutex);
  disk_->read_only = on;
}

void SimulatedFileSystem::set_direct_reads(bool on) {
  const Guard guard(disk_->mutex);
  disk_->direct_reads = on;
}

void SimulatedFileSystem::set_tears_blocks(bool on) {
  const Guard guard(disk_->mutex);
  disk_->tears_blocks = on;
}

void SimulatedFileSystem::set_type(std::string type, bool safe, bool syncs_whole) {
  const Guard guard(disk_->mutex);
  disk_->kind.type = std::move(type);
  disk_->kind.safe = safe;
  disk_->kind.syncs_whole = syncs_whole;
}

// --- The test's own hands

bool SimulatedFileSystem::there(const std::string& path) const {
  const Guard guard(disk_->mutex);
  return disk_->find({"find", path, Nature::reads}, path).ok();
}

std::vector<std::string> SimulatedFileSystem::files(std::string_view beginning) const {
  const Guard guard(disk_->mutex);
  std::vector<std::string> paths;
  collect_files(*disk_->root, "", paths);
  std::erase_if(paths, [&](const std::string& path) { return !path.starts_with(beginning); });
  std::sort(paths.begin(), paths.end());
  return paths;
}

Bytes SimulatedFileSystem::bytes(const std::string& path) const {
  const Guard guard(disk_->mutex);
  return content_of(known(*disk_, path), From::cache);
}

Bytes SimulatedFileSystem::medium_bytes(const std::string& path) const {
  const Guard guard(disk_->mutex);
  const NodePtr node = on_medium(*disk_, path);
  return node ? content_of(node, From::medium) : Bytes();
}

void SimulatedFileSystem::flip(const std::string& path, std::uint64_t offset, std::uint8_t mask) {
  const Guard guard(disk_->mutex);
  const NodePtr node = known(*disk_, path);
  CHECK(offset < node->content.size());
  disk_->blocks_used -= node->content.blocks();
  node->content.flip(offset, mask);
  disk_->blocks_used += node->content.blocks();
}

void SimulatedFileSystem::overwrite(const std::string& path, std::uint64_t offset, ByteView with) {
  const Guard guard(disk_->mutex);
  const NodePtr node = known(*disk_, path);
  disk_->blocks_used -= node->content.blocks();
  node->content.overwrite(offset, with);
  disk_->blocks_used += node->content.blocks();
}

void SimulatedFileSystem::plant(const std::string& path, ByteView content) {
  const Guard guard(disk_->mutex);
  const NodePtr node = plant_node(*disk_, path, NameType::file);
  node->content.overwrite(0, content);
  disk_->blocks_used += node->content.blocks();
}

void SimulatedFileSystem::plant_directory(const std::string& path) {
  const Guard guard(disk_->mutex);
  plant_node(*disk_, path, NameType::directory);
}

void SimulatedFileSystem::plant_other(const std::string& path) {
  const Guard guard(disk_->mutex);
  plant_node(*disk_, path, NameType::other);
}

void SimulatedFileSystem::cut_to(const std::string& path, std::uint64_t size) {
  const Guard guard(disk_->mutex);
  const NodePtr node = known(*disk_, path);
  disk_->blocks_used -= node->content.blocks();
  node->content.cut_to(size);
  disk_->blocks_used += node->content.blocks();
}

void SimulatedFileSystem::erase(const std::string& path) {
  const Guard guard(disk_->mutex);
  if (!disk_->find({"find", path, Nature::reads}, path).ok()) return;
  const Place place = known_place(*disk_, path);
  forget(*disk_, place.node());
  plant_name(*place.directory, place.name, nullptr);
}

void SimulatedFileSystem::set_owner(const std::string& path, std::uint32_t mode, bool ours) {
  const Guard guard(disk_->mutex);
  const NodePtr node = known(*disk_, path);
  node->mode = mode;
  node->ours = ours;
}

std::vector<std::string> SimulatedFileSystem::find(std::string_view text) const {
  const Guard guard(disk_->mutex);
  std::set<const Node*> seen;
  std::vector<std::string> paths;
  collect_holders(*disk_->root, "", text, seen, paths);
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace holdfast
