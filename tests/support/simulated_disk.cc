#include "tests/support/simulated_disk.h"

#include <algorithm>
#include <unordered_set>

#include "spool/path.h"

namespace holdfast {

namespace {

constexpr std::size_t kTraceLines = 64;
constexpr std::size_t kLongestName = 255;

void mix(std::uint64_t& hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x100000001b3U;
}

bool strikes(FaultKind kind, const Call& call) {
  switch (kind) {
    case FaultKind::power_cut:
    case FaultKind::io:
      return true;
    case FaultKind::unavailable:
      return call.nature != Nature::syncs;
    case FaultKind::short_write:
      return call.nature == Nature::writes && call.length > 1;
    case FaultKind::full:
      return call.nature == Nature::makes || (call.nature == Nature::writes && call.written != nullptr &&
                                              call.written->content.new_blocks(call.offset, call.length) > 0);
  }
  return false;
}

}  // namespace

Error failed(const Call& call, ErrorKind kind, const char* why) {
  return {kind,
          std::string("cannot ") + call.verb + " " + (call.path.empty() ? "the directory" : call.path) + ": " + why};
}

// --- Steps

std::uint64_t SimulatedDisk::begin_step(const Call& call, std::unique_lock<std::mutex>& lock) {
  if (off) return 0;
  const std::uint64_t number = ++step;
  if (observer) {
    const Observer watching = observer;
    lock.unlock();
    watching(number, call.verb, call.path);
    lock.lock();
  }
  count(call);
  return number;
}

void SimulatedDisk::count(const Call& call) {
  const std::string_view verb = call.verb;
  if (call.nature == Nature::writes) {
    ++counts.writes;
    counts.bytes_written += call.length;
  }
  if (call.nature != Nature::syncs) return;
  if (sync_failed) ++counts.syncs_after_failure;
  if (verb == "sync") ++counts.file_syncs;
  if (verb == "sync_directory") ++counts.directory_syncs;
  if (verb == "sync_all") ++counts.whole_syncs;
}

std::optional<Fault> SimulatedDisk::strike(const Call& call, std::uint64_t number) {
  for (auto due = faults.begin(); due != faults.end() && due->first <= number; ++due) {
    const Fault fault = due->second;
    if (!strikes(fault.kind, call)) continue;
    if (!fault.persistent) faults.erase(due);
    ++counts.struck;
    if (call.nature == Nature::syncs) sync_failed = true;
    return fault;
  }
  return std::nullopt;
}

bool SimulatedDisk::stops(const Fault& fault, const Call& call) {
  if (fault.kind == FaultKind::power_cut || fault.kind == FaultKind::short_write) return false;
  return call.nature != Nature::syncs;
}

ErrorKind SimulatedDisk::kind_of(const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::full:
      return ErrorKind::full;
    case FaultKind::unavailable:
      return ErrorKind::unavailable;
    default:
      return ErrorKind::io;
  }
}

void SimulatedDisk::note(const Call& call, std::uint64_t number, const char* outcome) {
  if (number == 0) return;
  for (const char c : call.path) mix(trace_hash, static_cast<unsigned char>(c));
  for (const char* c = call.verb; *c != '\0'; ++c) mix(trace_hash, static_cast<unsigned char>(*c));
  mix(trace_hash, call.offset);
  mix(trace_hash, call.length);
  std::string line = "#" + std::to_string(number) + " " + call.verb + " " + call.path;
  if (call.nature == Nature::writes) line += " " + std::to_string(call.offset) + "+" + std::to_string(call.length);
  trace.push_back(line + ": " + outcome);
  if (trace.size() > kTraceLines) trace.pop_front();
}

// --- The tree

Result<Place> SimulatedDisk::place(const Call& call, const std::string& path) const {
  if (!is_inner_path(path)) return failed(call, ErrorKind::invalid, "not a path beneath the root");
  auto directory = find(call, parent_path(path));
  if (!directory.ok()) return directory.error();
  if ((*directory)->type != NameType::directory) return failed(call, ErrorKind::invalid, "not in a directory");
  if (last_name(path).size() > kLongestName) return failed(call, ErrorKind::invalid, "the name is too long");
  return Place{*std::move(directory), last_name(path)};
}

Result<NodePtr> SimulatedDisk::find(const Call& call, const std::string& path) const {
  if (path.empty()) return root;
  if (!is_inner_path(path)) return failed(call, ErrorKind::invalid, "not a path beneath the root");
  NodePtr node = root;
  for (std::string_view rest = path; node;) {
    if (node->type != NameType::directory) return failed(call, ErrorKind::invalid, "not in a directory");
    const std::size_t slash = rest.find('/');
    const std::string_view name = rest.substr(0, slash);
    if (name.size() > kLongestName) return failed(call, ErrorKind::invalid, "the name is too long");
    node = node->now(name);
    if (slash == std::string_view::npos) break;
    rest.remove_prefix(slash + 1);
  }
  if (node) return node;
  return failed(call, ErrorKind::not_found, "no such file or directory");
}

Result<NodePtr> SimulatedDisk::make(const Call& call, const Place& place, NameType type) {
  if (read_only) return failed(call, ErrorKind::full, "the file system is read-only");
  if (free_inodes() == 0) return failed(call, ErrorKind::full, "no inode left");
  NodePtr node = make_node(type);
  node->links = 1;
  ++inodes_used;
  set_name(*place.directory, place.name, {++operation, node, {}, {}});
  note_unsynced(place.directory);
  note_unsynced(node);
  return node;
}

void SimulatedDisk::note_unsynced(const NodePtr& node) {
  if (node->noted) return;
  node->noted = true;
  unsynced_.push_back(node);
  if (unsynced_.size() < unsynced_limit_) return;
  std::erase_if(unsynced_, [](const std::weak_ptr<Node>& weak) {
    const NodePtr noted = weak.lock();
    if (noted && noted->unsynced()) return false;
    if (noted) noted->noted = false;
    return true;
  });
  unsynced_limit_ = unsynced_.size() * 2 + 1024;
}

void SimulatedDisk::unname(const NodePtr& node) {
  --node->links;
  if (node->links > 0 || node->handles > 0) return;
  blocks_used -= node->content.blocks();
  --inodes_used;
}

void SimulatedDisk::release(const NodePtr& node) {
  --node->handles;
  if (node->links > 0 || node->handles > 0) return;
  blocks_used -= node->content.blocks();
  --inodes_used;
}

void SimulatedDisk::write(const NodePtr& node, std::uint64_t offset, ByteView bytes) {
  blocks_used -= node->content.blocks();
  node->content.write(offset, bytes);
  blocks_used += node->content.blocks();
  note_unsynced(node);
}

void SimulatedDisk::truncate(const NodePtr& node, std::uint64_t size) {
  blocks_used -= node->content.blocks();
  node->content.truncate(size);
  blocks_used += node->content.blocks();
  note_unsynced(node);
}

void SimulatedDisk::rename(const Place& from, const Place& to) {
  const NodePtr node = from.node();
  const NodePtr replaced = to.node();
  ++operation;
  const bool both = node->type == NameType::directory;
  set_name(*to.directory, to.name, {operation, node, both ? from.directory : nullptr, from.name});
  set_name(*from.directory, from.name, {operation, nullptr, to.directory, to.name});
  note_unsynced(to.directory);
  note_unsynced(from.directory);
  if (replaced) unname(replaced);
}

void SimulatedDisk::sync_all() {
  std::vector<std::weak_ptr<Node>> noted = std::move(unsynced_);
  unsynced_.clear();
  for (const std::weak_ptr<Node>& weak : noted) {
    const NodePtr node = weak.lock();
    if (!node) continue;
    node->content.sync();
    settle_names(*node);
    node->noted = false;
    if (node->unsynced()) note_unsynced(node);  // what a failed sync has lost
  }
}

void SimulatedDisk::fail_sync_all(Dice* partly) {
  for (const std::weak_ptr<Node>& weak : unsynced_) {
    if (const NodePtr node = weak.lock()) node->content.fail_sync(partly);
  }
}

bool SimulatedDisk::unsynced() const {
  return std::any_of(unsynced_.begin(), unsynced_.end(), [](const std::weak_ptr<Node>& weak) {
    const NodePtr node = weak.lock();
    return node && node->unsynced();
  });
}

// --- Lives

void SimulatedDisk::end_life(LossPlan* plan) {
  ++life;
  off = false;
  sync_failed = false;
  std::vector<NodePtr> nodes;
  for (const std::weak_ptr<Node>& weak : unsynced_) {
    if (NodePtr node = weak.lock()) nodes.push_back(std::move(node));
  }
  if (plan != nullptr) {
    lose_names(nodes, *plan);
    for (const NodePtr& node : nodes) {
      node->content.lose_power(*plan);
      node->noted = false;
    }
    unsynced_.clear();
  }
  recount();
}

// Nobody holds anything, and what has no name is gone.
void SimulatedDisk::recount() {
  blocks_used = 0;
  inodes_used = 0;
  std::unordered_set<Node*> seen;
  std::vector<Node*> left = {root.get()};
  while (!left.empty()) {
    Node& node = *left.back();
    left.pop_back();
    if (!seen.insert(&node).second) {
      ++node.links;
      continue;
    }
    node.links = 1;
    node.handles = 0;
    node.locked = false;
    blocks_used += node.content.blocks();
    ++inodes_used;
    for (const auto& [name, entry] : node.names) {
      if (entry.now) left.push_back(entry.now.get());
    }
  }
}

std::shared_ptr<SimulatedDisk> SimulatedDisk::copy() const {
  const std::lock_guard lock(mutex);
  auto twin = std::make_shared<SimulatedDisk>(order_seed);
  NodeCopies copies;
  twin->root = copy_node(root, copies);
  for (const std::weak_ptr<Node>& weak : unsynced_) {
    if (const NodePtr node = weak.lock()) twin->unsynced_.push_back(copy_node(node, copies));
  }
  twin->life = life + 1;
  twin->operation = operation;
  twin->off = off;
  twin->dice = dice;
  twin->step = step;
  twin->faults = faults;
  twin->count_reads = count_reads;
  twin->counts = counts;
  twin->trace = trace;
  twin->trace_hash = trace_hash;
  twin->block_capacity = block_capacity;
  twin->inode_capacity = inode_capacity;
  twin->read_only = read_only;
  twin->direct_reads = direct_reads;
  twin->tears_blocks = tears_blocks;
  twin->kind = kind;
  twin->recount();
  return twin;
}

}  // namespace holdfast
