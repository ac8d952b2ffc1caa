// What a SimulatedFileSystem and its open files share: the tree, the steps, the faults, the lives. Behind one lock.
#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <optional>

#include "tests/support/simulated_file_system.h"
#include "tests/support/simulated_names.h"

namespace holdfast {

enum class Nature : std::uint8_t { reads, removes, makes, writes, syncs };

// One call, for its step, its fault and its error's text.
struct Call {
  const char* verb;
  const std::string& path;
  Nature nature;
  const Node* written = nullptr;  // of Nature::writes
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

Error failed(const Call& call, ErrorKind kind, const char* why);

// The directory that a path's last name is in, and that name.
struct Place {
  NodePtr directory;
  std::string name;
  NodePtr node() const { return directory->now(name); }
};

class SimulatedDisk {
 public:
  using Observer = SimulatedFileSystem::Observer;
  static constexpr std::uint64_t kAnyLife = 0;

  explicit SimulatedDisk(std::uint64_t seed) : dice(seed), order_seed(seed) {}

  // Does one call under the lock: counts it, lets a fault strike it, else does `work`, which is given the fault when it
  // is one that does something (a cut, a short write, a failing sync).
  template <typename Work>
  auto take(const Call& call, std::uint64_t of_life, Work work) -> decltype(work(std::optional<Fault>())) {
    std::unique_lock lock(mutex);
    const std::uint64_t number = is_step(call) ? begin_step(call, lock) : 0;
    if (off) return failed(call, ErrorKind::io, "the power is off");
    if (of_life != kAnyLife && of_life != life) return failed(call, ErrorKind::io, "opened in an earlier life");
    const std::optional<Fault> fault = strike(call, number);
    if (fault && stops(*fault, call)) {
      note(call, number, "struck");
      return failed(call, kind_of(*fault), "a fault was asked for");
    }
    auto result = work(fault);
    const bool cut = fault && fault->kind == FaultKind::power_cut;
    note(call, number, cut ? "POWER CUT" : result.ok() ? "ok" : error_kind_text(result.error().kind));
    if (!cut) return result;
    off = true;
    lock.unlock();  // a file that was opened goes with the result, and needs the lock for that
    return failed(call, ErrorKind::io, "the power is off");
  }

  Result<Place> place(const Call& call, const std::string& path) const;
  Result<NodePtr> find(const Call& call, const std::string& path) const;  // "" is the root

  Result<NodePtr> make(const Call& call, const Place& place, NameType type);
  void note_unsynced(const NodePtr& node);
  void unname(const NodePtr& node);   // it has lost its name in the cache
  void release(const NodePtr& node);  // a handle has gone
  void write(const NodePtr& node, std::uint64_t offset, ByteView bytes);
  void truncate(const NodePtr& node, std::uint64_t size);
  void rename(const Place& from, const Place& to);
  void sync_all();
  void fail_sync_all(Dice* partly);
  bool unsynced() const;
  void end_life(LossPlan* plan);  // null: the power stays on
  std::shared_ptr<SimulatedDisk> copy() const;

  std::uint64_t free_blocks() const { return blocks_used < block_capacity ? block_capacity - blocks_used : 0; }
  std::uint64_t free_inodes() const { return inodes_used < inode_capacity ? inode_capacity - inodes_used : 0; }

  mutable std::mutex mutex;
  NodePtr root = make_node(NameType::directory);
  std::uint64_t life = 1;
  std::uint64_t operation = 0;  // of names
  bool off = false;
  Dice dice;
  std::uint64_t order_seed;

  std::uint64_t step = 0;
  std::multimap<std::uint64_t, Fault> faults;
  bool count_reads = false;
  bool sync_failed = false;  // in this life
  StepCounts counts;
  Observer observer;
  std::deque<std::string> trace;
  std::uint64_t trace_hash = 0xcbf29ce484222325U;

  std::uint64_t block_capacity = std::uint64_t{1} << 40U;
  std::uint64_t inode_capacity = std::uint64_t{1} << 40U;
  std::uint64_t blocks_used = 0;
  std::uint64_t inodes_used = 1;
  bool read_only = false;
  bool direct_reads = true;
  bool tears_blocks = true;
  SpaceInfo kind{.safe = true, .syncs_whole = true, .type = "simulated"};

 private:
  // Its number; 0 when the power is off.
  std::uint64_t begin_step(const Call& call, std::unique_lock<std::mutex>& lock);
  std::optional<Fault> strike(const Call& call, std::uint64_t number);
  static bool stops(const Fault& fault, const Call& call);
  static ErrorKind kind_of(const Fault& fault);
  bool is_step(const Call& call) const { return count_reads || call.nature != Nature::reads; }
  void count(const Call& call);
  void note(const Call& call, std::uint64_t number, const char* outcome);
  void recount();

  std::vector<std::weak_ptr<Node>> unsynced_;
  std::size_t unsynced_limit_ = 1024;
};

}  // namespace holdfast
