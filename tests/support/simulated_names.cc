#include "tests/support/simulated_names.h"

#include <limits>

namespace holdfast {

namespace {

constexpr std::uint64_t kLatest = std::numeric_limits<std::uint64_t>::max();

void forget_if_empty(Node& directory, const std::string& name) {
  const auto entry = directory.names.find(name);
  if (entry == directory.names.end()) return;
  const Name& it = entry->second;
  if (!it.now && !it.medium && it.unsynced.empty()) directory.names.erase(entry);
}

}  // namespace

NodePtr Node::now(std::string_view name) const {
  const auto entry = names.find(name);
  return entry == names.end() ? nullptr : entry->second.now;
}

NodePtr Node::on_medium(std::string_view name) const {
  const auto entry = names.find(name);
  return entry == names.end() ? nullptr : entry->second.medium;
}

NodePtr make_node(NameType type) {
  auto node = std::make_shared<Node>();
  node->type = type;
  node->mode = type == NameType::directory ? 0700 : type == NameType::file ? 0600 : 0777;
  return node;
}

void set_name(Node& directory, const std::string& name, NameState state) {
  Name& entry = directory.names[name];
  entry.now = state.node;
  entry.unsynced.push_back(std::move(state));
  directory.unsynced_names.insert(name);
}

void plant_name(Node& directory, const std::string& name, NodePtr node) {
  Name& entry = directory.names[name];
  entry.now = node;
  entry.medium = std::move(node);
  entry.unsynced.clear();
  directory.unsynced_names.erase(name);
  forget_if_empty(directory, name);
}

void settle_name(Node& directory, const std::string& name, std::uint64_t operation) {
  const auto entry = directory.names.find(name);
  if (entry == directory.names.end()) return;
  Name& it = entry->second;
  while (!it.unsynced.empty() && it.unsynced.front().operation <= operation) {
    const NameState state = std::move(it.unsynced.front());
    it.unsynced.erase(it.unsynced.begin());
    if (const NodePtr there = state.partner.lock()) settle_name(*there, state.partner_name, state.operation);
    it.medium = state.node;
  }
  if (it.unsynced.empty()) directory.unsynced_names.erase(name);
}

void settle_names(Node& directory) {
  const std::set<std::string> names = directory.unsynced_names;
  for (const std::string& name : names) settle_name(directory, name, kLatest);
  for (const std::string& name : names) forget_if_empty(directory, name);
}

void lose_names(const std::vector<NodePtr>& directories, LossPlan& plan) {
  std::vector<std::pair<Node*, std::string>> touched;
  for (const NodePtr& directory : directories) {
    for (const std::string& name : directory->unsynced_names) touched.emplace_back(directory.get(), name);
  }
  for (const auto& [directory, name] : touched) {
    const std::vector<NameState>& states = directory->names[name].unsynced;
    const std::size_t kept = plan.name(states.size());
    if (kept > 0) settle_name(*directory, name, states[kept - 1].operation);
  }
  for (const auto& [directory, name] : touched) {
    Name& entry = directory->names[name];
    entry.unsynced.clear();
    entry.now = entry.medium;
    directory->unsynced_names.erase(name);
    forget_if_empty(*directory, name);
  }
}

NodePtr copy_node(const NodePtr& node, NodeCopies& copies) {
  if (!node) return nullptr;
  const auto known = copies.find(node.get());
  if (known != copies.end()) return known->second;
  auto copy = std::make_shared<Node>(*node);
  copies.emplace(node.get(), copy);
  for (auto& [name, entry] : copy->names) {
    entry.now = copy_node(entry.now, copies);
    entry.medium = copy_node(entry.medium, copies);
    for (NameState& state : entry.unsynced) {
      state.node = copy_node(state.node, copies);
      state.partner = copy_node(state.partner.lock(), copies);
    }
  }
  return copy;
}

}  // namespace holdfast
