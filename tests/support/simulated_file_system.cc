#include "tests/support/simulated_file_system.h"

#include <algorithm>

#include "spool/path.h"
#include "tests/support/simulated_disk.h"

namespace holdfast {

namespace {

using MaybeFault = std::optional<Fault>;

bool writes_to_medium_fail(const MaybeFault& fault) {
  return fault && fault->kind == FaultKind::io;
}

class SimulatedFile : public File {
 public:
  SimulatedFile(std::shared_ptr<SimulatedDisk> disk, NodePtr node, std::string path, OpenMode mode, bool lock)
      : disk_(std::move(disk)),
        node_(std::move(node)),
        path_(std::move(path)),
        mode_(mode),
        lock_(lock),
        life_(disk_->life) {
    ++node_->handles;
    if (lock_) node_->locked = true;
  }

  ~SimulatedFile() override {
    const std::lock_guard guard(disk_->mutex);
    if (life_ != disk_->life) return;
    if (lock_) node_->locked = false;
    disk_->release(node_);
  }

  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::uint8_t> out) override {
    const bool direct = mode_ == OpenMode::read_direct;
    CHECK(!direct || aligned(offset, out));
    return disk_->take({"read", path_, Nature::reads}, life_, [&](const MaybeFault&) -> Result<std::size_t> {
      using From = SimulatedContent::From;
      return node_->content.read(direct ? From::direct : From::cache, offset, out);
    });
  }

  Result<void> write_at(std::uint64_t offset, ByteView bytes) override {
    const Call call{"write", path_, Nature::writes, node_.get(), offset, bytes.size()};
    return disk_->take(call, life_, [&](const MaybeFault& fault) -> Result<void> {
      if (!writable()) return failed(call, ErrorKind::io, "opened for reading");
      if (disk_->read_only) return failed(call, ErrorKind::full, "the file system is read-only");
      const bool whole = !fault || fault->kind != FaultKind::short_write;
      const ByteView written = whole ? bytes : bytes.first(bytes.size() / 2);
      if (node_->content.new_blocks(offset, written.size()) > disk_->free_blocks()) {
        return failed(call, ErrorKind::full, "no space left");
      }
      disk_->write(node_, offset, written);
      if (whole) return {};
      return failed(call, ErrorKind::io, "it stopped half-way");
    });
  }

  Result<std::uint64_t> size() override {
    return disk_->take({"measure", path_, Nature::reads}, life_,
                       [&](const MaybeFault&) -> Result<std::uint64_t> { return node_->content.size(); });
  }

  Result<void> truncate(std::uint64_t size) override {
    const Call call{"resize", path_, grows_to(size) ? Nature::makes : Nature::removes, nullptr, size, 0};
    return disk_->take(call, life_, [&](const MaybeFault&) -> Result<void> {
      if (!writable()) return failed(call, ErrorKind::io, "opened for reading");
      if (disk_->read_only) return failed(call, ErrorKind::full, "the file system is read-only");
      disk_->truncate(node_, size);
      return {};
    });
  }

  Result<void> sync() override {
    const Call call{"sync", path_, Nature::syncs};
    return disk_->take(call, life_, [&](const MaybeFault& fault) -> Result<void> {
      if (fault && fault->kind == FaultKind::power_cut) return {};  // whatever was unsynced stays so
      if (writes_to_medium_fail(fault)) {
        node_->content.fail_sync(fault->partly ? &disk_->dice : nullptr);
        return failed(call, ErrorKind::io, "a fault was asked for");
      }
      if (disk_->read_only && node_->content.unsynced()) return failed(call, ErrorKind::io, "read-only");
      node_->content.sync();
      return {};
    });
  }

 private:
  bool grows_to(std::uint64_t size) const {
    const std::lock_guard guard(disk_->mutex);
    return node_->content.size() < size;
  }
  bool writable() const { return mode_ != OpenMode::read && mode_ != OpenMode::read_direct; }
  static bool aligned(std::uint64_t offset, std::span<std::uint8_t> out) {
    return offset % kDirectAlignment == 0 && out.size() % kDirectAlignment == 0 &&
           reinterpret_cast<std::uintptr_t>(out.data()) % kDirectAlignment == 0;
  }

  const std::shared_ptr<SimulatedDisk> disk_;
  const NodePtr node_;
  const std::string path_;
  const OpenMode mode_;
  const bool lock_;
  const std::uint64_t life_;
};

bool creates(OpenMode mode) {
  return mode == OpenMode::create || mode == OpenMode::create_new;
}

// Under the disk's lock.
Result<NodePtr> open_node(SimulatedDisk& disk, const Call& call, OpenMode mode) {
  const auto place = disk.place(call, call.path);
  if (!place.ok()) return place.error();
  NodePtr node = place->node();
  if (!node && creates(mode)) return disk.make(call, *place, NameType::file);
  if (!node) return failed(call, ErrorKind::not_found, "no such file or directory");
  if (mode == OpenMode::create_new) return failed(call, ErrorKind::exists, "it exists");
  if (node->type != NameType::file) return failed(call, ErrorKind::invalid, "not a file");
  if (mode == OpenMode::read_direct && !disk.direct_reads) {
    return failed(call, ErrorKind::unavailable, "no direct reads here");
  }
  const bool writes = mode == OpenMode::write || mode == OpenMode::create;
  if (writes && disk.read_only) return failed(call, ErrorKind::io, "the file system is read-only");
  return node;
}

// What stands in the way of a rename, beside what may be replaced.
std::optional<Error> rename_refused(const Call& call, const Place& from, const Place& to, Rename rename) {
  const NodePtr node = from.node();
  const NodePtr replaced = to.node();
  if (!node) return failed(call, ErrorKind::not_found, "no such file or directory");
  if (!replaced) return std::nullopt;
  if (rename == Rename::no_replace) return failed(call, ErrorKind::exists, "the new name exists");
  const bool directory = node->type == NameType::directory;
  if (directory != (replaced->type == NameType::directory)) {
    return failed(call, ErrorKind::invalid, "one is a directory, the other is not");
  }
  const auto is_there = [](const auto& entry) { return entry.second.now != nullptr; };
  if (directory && node != replaced && std::any_of(replaced->names.begin(), replaced->names.end(), is_there)) {
    return failed(call, ErrorKind::invalid, "the directory is not empty");
  }
  return std::nullopt;
}

}  // namespace

SimulatedFileSystem::SimulatedFileSystem(std::uint64_t seed) : disk_(std::make_shared<SimulatedDisk>(seed)) {}
SimulatedFileSystem::SimulatedFileSystem(std::shared_ptr<SimulatedDisk> disk) : disk_(std::move(disk)) {}
SimulatedFileSystem::~SimulatedFileSystem() = default;

Result<std::unique_ptr<File>> SimulatedFileSystem::open(const std::string& path, OpenMode mode) {
  const bool creating = creates(mode);
  const Call call{creating ? "create" : "open", path, creating ? Nature::makes : Nature::reads};
  return disk_->take(call, disk_->kAnyLife, [&](const MaybeFault&) -> Result<std::unique_ptr<File>> {
    auto node = open_node(*disk_, call, mode);
    if (!node.ok()) return node.error();
    return std::unique_ptr<File>(std::make_unique<SimulatedFile>(disk_, *std::move(node), path, mode, false));
  });
}

Result<std::unique_ptr<File>> SimulatedFileSystem::lock(const std::string& path) {
  const Call call{"lock", path, Nature::makes};
  return disk_->take(call, disk_->kAnyLife, [&](const MaybeFault&) -> Result<std::unique_ptr<File>> {
    auto node = open_node(*disk_, call, OpenMode::create);
    if (!node.ok()) return node.error();
    if ((*node)->locked) return failed(call, ErrorKind::unavailable, "another holds it");
    return std::unique_ptr<File>(
        std::make_unique<SimulatedFile>(disk_, *std::move(node), path, OpenMode::create, true));
  });
}

Result<void> SimulatedFileSystem::make_directory(const std::string& path) {
  const Call call{"make", path, Nature::makes};
  return disk_->take(call, disk_->kAnyLife, [&](const MaybeFault&) -> Result<void> {
    const auto place = disk_->place(call, path);
    if (!place.ok()) return place.error();
    if (place->node()) return failed(call, ErrorKind::exists, "it exists");
    const auto made = disk_->make(call, *place, NameType::directory);
    if (made.ok()) return {};
    return made.error();
  });
}

Result<void> SimulatedFileSystem::remove(const std::string& path) {
  const Call call{"remove", path, Nature::removes};
  return disk_->take(call, disk_->kAnyLife, [&](const MaybeFault&) -> Result<void> {
    const auto place = disk_->place(call, path);
    if (!place.ok()) return place.error();
    const NodePtr node = place->node();
    if (!node) return failed(call, ErrorKind::not_found, "no such file or directory");
    if (node->type == NameType::directory) return failed(call, ErrorKind::invalid, "a directory");
    if (disk_->read_only) return failed(call, ErrorKind::io, "the file system is read-only");
    set_name(*place->directory, place->name, {++disk_->operation, nullptr, {}, {}});
    disk_->note_unsynced(place->directory);
    disk_->unname(node);
    return {};
  });
}

Result<void> SimulatedFileSystem::rename(const std::string& from, const std::string& to, Rename rename) {
  const std::string both = from + " to " + to;
  const Call call{"rename", both, Nature::makes};
  return disk_->take(call, disk_->kAnyLife, [&](const MaybeFault&) -> Result<void> {
    const auto old_place = disk_->place(call, from);
    if (!old_place.ok()) return old_place.error();
    const auto new_place = disk_->place(call, to);
    if (!new_place.ok()) return new_place.error();
    if (const auto refused = rename_refused(call, *old_place, *new_place, rename)) return *refused;
    if (old_place->node() == new_place->node()) return {};
    if (to.starts_with(from + "/")) return failed(call, ErrorKind::io, "into itself");
    if (disk_->read_only) return failed(call, ErrorKind::full, "the file system is read-only");
    disk_->rename(*old_place, *new_place);
    return {};
  });
}

Result<NameInfo> SimulatedFileSystem::inspect(const std::string& path) {
  const Call call{"inspect", path, Nature::reads};
  return disk_->take(call, disk_->kAnyLife, [&](const MaybeFault&) -> Result<NameInfo> {
    const auto node = disk_->find(call, path);
    if (!node.ok()) return node.error();
    const Node& it = **node;
    return NameInfo{it.type, it.content.size(), it.content.blocks() * kPageSize, it.mode, it.ours};
  });
}

Result<void> SimulatedFileSystem::list(const std::string& path,
                                       const std::function<bool(std::string_view, NameType)>& visit) {
  const Call call{"list", path, Nature::reads};
  std::vector<std::pair<std::string, NameType>> names;
  HOLDFAST_TRY(disk_->take(call, disk_->kAnyLife, [&](const MaybeFault&) -> Result<void> {
    const auto node = disk_->find(call, path);
    if (!node.ok()) return node.error();
    if ((*node)->type != NameType::directory) return failed(call, ErrorKind::invalid, "not a directory");
    for (const auto& [name, entry] : (*node)->names) {
      if (entry.now) names.emplace_back(name, entry.now->type);
    }
    return {};
  }));
  // In no order that anyone could get used to, and always in the same one.
  Dice shuffle(disk_->order_seed);
  for (std::size_t left = names.size(); left > 1; --left) std::swap(names[left - 1], names[shuffle.below(left)]);
  for (const auto& [name, type] : names) {
    if (!visit(name, type)) break;
  }
  return {};
}

Result<void> SimulatedFileSystem::sync_directory(const std::string& path) {
  const Call call{"sync_directory", path, Nature::syncs};
  return disk_->take(call, disk_->kAnyLife, [&](const MaybeFault& fault) -> Result<void> {
    const auto node = disk_->find(call, path);
    if (!node.ok()) return node.error();
    if ((*node)->type != NameType::directory) return failed(call, ErrorKind::invalid, "not a directory");
    if (writes_to_medium_fail(fault)) return failed(call, ErrorKind::io, "a fault was asked for");
    if (disk_->read_only && (*node)->unsynced()) return failed(call, ErrorKind::io, "read-only");
    if (!fault) settle_names(**node);
    return {};
  });
}

Result<void> SimulatedFileSystem::sync_all() {
  static const std::string everything;
  const Call call{"sync_all", everything, Nature::syncs};
  return disk_->take(call, disk_->kAnyLife, [&](const MaybeFault& fault) -> Result<void> {
    if (writes_to_medium_fail(fault)) {
      disk_->fail_sync_all(fault->partly ? &disk_->dice : nullptr);
      return failed(call, ErrorKind::io, "a fault was asked for");
    }
    if (disk_->read_only && disk_->unsynced()) return failed(call, ErrorKind::io, "read-only");
    if (!fault) disk_->sync_all();
    return {};
  });
}

Result<SpaceInfo> SimulatedFileSystem::space() {
  static const std::string everything;
  return disk_->take({"measure", everything, Nature::reads}, disk_->kAnyLife,
                     [&](const MaybeFault&) -> Result<SpaceInfo> {
                       SpaceInfo info = disk_->kind;
                       info.total_bytes = disk_->block_capacity * kPageSize;
                       info.free_bytes = disk_->free_blocks() * kPageSize;
                       info.total_inodes = disk_->inode_capacity;
                       info.free_inodes = disk_->free_inodes();
                       return info;
                     });
}

}  // namespace holdfast
