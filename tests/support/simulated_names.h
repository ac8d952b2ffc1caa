// The names of the simulated disk: what each directory shows now, what the medium has, and what came between.
// Rules: simulated_file_system.h.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "spool/file_system.h"
#include "tests/support/simulated_content.h"

namespace holdfast {

struct Node;
using NodePtr = std::shared_ptr<Node>;  // null: no such name

// What a name was from one operation on.
struct NameState {
  std::uint64_t operation = 0;
  NodePtr node;
  // The other half of a rename, which is settled no later than this one: where a file went, so that it is not gone from
  // here before it has arrived there; of a directory both, so that it is never in two places.
  std::weak_ptr<Node> partner;
  std::string partner_name;
};

struct Name {
  NodePtr now;
  NodePtr medium;
  std::vector<NameState> unsynced;  // in the order of operations; the last is `now`
};

// A file, a directory, or another thing.
struct Node {
  NameType type = NameType::file;
  std::uint32_t mode = 0600;
  bool ours = true;
  SimulatedContent content;
  std::map<std::string, Name, std::less<>> names;
  std::set<std::string> unsynced_names;
  unsigned links = 0;  // names in the cache; two after a rename that a power cut left half done
  unsigned handles = 0;
  bool locked = false;
  bool noted = false;  // among those that may have something unsynced

  bool unsynced() const { return content.unsynced() || !unsynced_names.empty(); }
  NodePtr now(std::string_view name) const;
  NodePtr on_medium(std::string_view name) const;
};

NodePtr make_node(NameType type);

// In the cache, for the medium to catch up with.
void set_name(Node& directory, const std::string& name, NameState state);
// In the cache and on the medium.
void plant_name(Node& directory, const std::string& name, NodePtr node);
// The medium catches up to that operation.
void settle_name(Node& directory, const std::string& name, std::uint64_t operation);
void settle_names(Node& directory);
// Every name of these directories falls back to a state that the medium may have.
void lose_names(const std::vector<NodePtr>& directories, LossPlan& plan);

// Nodes copied so far, by their originals.
using NodeCopies = std::map<const Node*, NodePtr>;
NodePtr copy_node(const NodePtr& node, NodeCopies& copies);

}  // namespace holdfast
