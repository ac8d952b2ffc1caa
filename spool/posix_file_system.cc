#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstdio>

#include "spool/path.h"
#include "spool/posix_file.h"

namespace holdfast {

namespace {

constexpr mode_t kFileMode = 0600;
constexpr mode_t kDirectoryMode = 0700;
constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY;

int open_at(int directory, const char* name, int flags, mode_t mode) {
  return uninterrupted([&] { return ::openat(directory, name, flags | O_NOFOLLOW | O_CLOEXEC, mode); });
}

// Opens a path beneath `root` without leaving it, following a symlink, or crossing into another mount (which sync_all
// would not reach).
int open_beneath(int root, const char* path, int flags, mode_t mode) {
  open_how how{};
  how.flags = static_cast<decltype(how.flags)>(flags | O_NOFOLLOW | O_CLOEXEC);
  how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
  return uninterrupted([&] { return static_cast<int>(::syscall(SYS_openat2, root, path, &how, sizeof how)); });
}

// The same for kernels before 5.6, one directory at a time (mounts are crossed).
int open_by_steps(int root, std::string_view path, int flags, mode_t mode) {
  Descriptor step;
  int directory = root;
  for (std::size_t slash = path.find('/'); slash != std::string_view::npos; slash = path.find('/')) {
    step = Descriptor(open_at(directory, std::string(path.substr(0, slash)).c_str(), O_PATH | O_DIRECTORY, 0));
    if (!step) return -1;
    directory = step.get();
    path.remove_prefix(slash + 1);
  }
  return open_at(directory, std::string(path).c_str(), flags, mode);
}

NameType name_type(mode_t mode) {
  if (S_ISREG(mode)) return NameType::file;
  return S_ISDIR(mode) ? NameType::directory : NameType::other;
}

struct KnownType {
  const char* name;
  std::uint32_t magic;
  bool safe;
};

// Those whose syncs can be believed; the rest only so that a refusal can name them.
constexpr KnownType kKnownTypes[] = {
    {"ext4", EXT4_SUPER_MAGIC, true},
    {"xfs", 0x58465342, true},
    {"btrfs", BTRFS_SUPER_MAGIC, true},
    {"f2fs", F2FS_SUPER_MAGIC, true},
    {"tmpfs", TMPFS_MAGIC, false},
    {"ramfs", RAMFS_MAGIC, false},
    {"overlayfs", OVERLAYFS_SUPER_MAGIC, false},
    {"nfs", NFS_SUPER_MAGIC, false},
    {"fuse", 0x65735546, false},
    {"vfat", MSDOS_SUPER_MAGIC, false},
    {"exfat", 0x2011bab0, false},
    {"cifs", 0xff534d42, false},
    {"smb2", 0xfe534d42, false},
    {"9p", V9FS_MAGIC, false},
};

// Since 5.17 syncfs returns what the file system's own sync_fs failed with, and not only lost data pages.
bool kernel_syncs_whole() {
  utsname about{};
  int major = 0;
  int minor = 0;
  if (::uname(&about) != 0 || std::sscanf(about.release, "%d.%d", &major, &minor) != 2) return false;
  return major > 5 || (major == 5 && minor >= 17);
}

Error not_a_path(const char* verb, const std::string& path) {
  return {ErrorKind::invalid, std::string("cannot ") + verb + " \"" + path + "\": not a path beneath the root"};
}

class PosixFileSystem : public FileSystem {
 public:
  PosixFileSystem(Descriptor root, std::string name)
      : root_(std::move(root)),
        name_(std::move(name)),
        whole_paths_(Descriptor(open_beneath(root_.get(), ".", O_PATH, 0))) {}

  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override;
  Result<void> make_directory(const std::string& path) override;
  Result<void> remove(const std::string& path) override;
  Result<void> rename(const std::string& from, const std::string& to, Rename rename) override;
  Result<NameInfo> inspect(const std::string& path) override;
  Result<void> list(const std::string& path, const std::function<bool(std::string_view, NameType)>& visit) override;
  Result<void> sync_directory(const std::string& path) override;
  Result<void> sync_all() override { return sync_point_.sync(&::syncfs, root_.get(), "sync all of", name_); }
  Result<SpaceInfo> space() override;
  Result<std::unique_ptr<File>> lock(const std::string& path) override;

 private:
  // The descriptor or -1 and errno; "" is the root.
  Descriptor open_path(const std::string& path, int flags, mode_t mode) const {
    if (path.empty()) return Descriptor(open_at(root_.get(), ".", flags, mode));
    return Descriptor(whole_paths_ ? open_beneath(root_.get(), path.c_str(), flags, mode)
                                   : open_by_steps(root_.get(), path, flags, mode));
  }
  Descriptor open_parent(const std::string& path) const {
    return open_path(parent_path(path), O_PATH | O_DIRECTORY, 0);
  }
  Result<OpenedFile> open_file(const std::string& path, int flags) const;
  Result<OpenedFile> open_direct(const std::string& path) const;
  Result<OpenedFile> create_file(const std::string& path, bool may_exist) const;
  Result<void> visit_names(DIR* directory, const std::string& path,
                           const std::function<bool(std::string_view, NameType)>& visit) const;

  const Descriptor root_;  // opened before anything is written: syncfs reports what was lost since then
  const std::string name_;
  const bool whole_paths_;  // the kernel has openat2
  SyncPoint sync_point_;
};

// An existing regular file, and nothing else: a pipe in its place neither hangs us nor is taken for one.
Result<OpenedFile> PosixFileSystem::open_file(const std::string& path, int flags) const {
  // Reading a record is no reason to write its inode. Only a file's owner may ask for that.
  const int quiet = (flags & O_ACCMODE) == O_RDONLY ? O_NOATIME : 0;
  Descriptor file = open_path(path, flags | quiet | O_NONBLOCK | O_NOCTTY, 0);
  if (!file && errno == EPERM && quiet != 0) file = open_path(path, flags | O_NONBLOCK | O_NOCTTY, 0);
  if (!file) return posix_error("open", path, errno, Effect::looks);
  struct stat about {};
  if (::fstat(file.get(), &about) != 0) return posix_error("open", path, errno, Effect::looks);
  if (!S_ISREG(about.st_mode)) return Error{ErrorKind::invalid, "cannot open " + path + ": not a file"};
  return OpenedFile{std::move(file), static_cast<std::uint64_t>(about.st_size)};
}

Result<OpenedFile> PosixFileSystem::open_direct(const std::string& path) const {
  Result<OpenedFile> file = open_file(path, O_RDONLY);
  if (!file.ok() || ::fcntl(file->descriptor.get(), F_SETFL, O_DIRECT) == 0) return file;
  return Error{ErrorKind::unavailable, "cannot read " + path + " past the page cache: not in this file system"};
}

// The name is tried as new first and as existing second, so that the mode is set by whoever made it, whatever the
// umask.
Result<OpenedFile> PosixFileSystem::create_file(const std::string& path, bool may_exist) const {
  Descriptor file = open_path(path, O_RDWR | O_CREAT | O_EXCL, kFileMode);
  if (!file && errno == EEXIST && may_exist) return open_file(path, O_RDWR);
  if (!file) return posix_error("create", path, errno, Effect::makes);
  struct stat about {};
  if (::fstat(file.get(), &about) != 0) return posix_error("create", path, errno, Effect::looks);
  if ((about.st_mode & 07777) != kFileMode && ::fchmod(file.get(), kFileMode) != 0) {
    return posix_error("set the mode of", path, errno, Effect::makes);
  }
  return OpenedFile{std::move(file), static_cast<std::uint64_t>(about.st_size)};
}

Result<std::unique_ptr<File>> PosixFileSystem::open(const std::string& path, OpenMode mode) {
  if (!is_inner_path(path)) return not_a_path("open", path);
  Result<OpenedFile> file = OpenedFile();
  Access access = Access::write;
  switch (mode) {
    case OpenMode::read:
      file = open_file(path, O_RDONLY);
      access = Access::read;
      break;
    case OpenMode::read_direct:
      file = open_direct(path);
      access = Access::read_direct;
      break;
    case OpenMode::write:
      file = open_file(path, O_RDWR);
      break;
    case OpenMode::create_new:
    case OpenMode::create:
      file = create_file(path, mode == OpenMode::create);
      break;
  }
  if (file.ok()) return make_posix_file(*std::move(file), path, access);
  return file.error();
}

Result<void> PosixFileSystem::make_directory(const std::string& path) {
  if (!is_inner_path(path)) return not_a_path("make", path);
  const Descriptor parent = open_parent(path);
  if (!parent) return posix_error("make", path, errno, Effect::makes);
  const std::string name = last_name(path);
  if (::mkdirat(parent.get(), name.c_str(), kDirectoryMode) != 0) {
    return posix_error("make", path, errno, Effect::makes);
  }
  struct stat about {};
  if (::fstatat(parent.get(), name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0) {
    return posix_error("inspect", path, errno, Effect::looks);
  }
  if ((about.st_mode & 0777) == kDirectoryMode) return {};
  if (::fchmodat(parent.get(), name.c_str(), kDirectoryMode, 0) == 0) return {};
  return posix_error("set the mode of", path, errno, Effect::makes);
}

Result<void> PosixFileSystem::remove(const std::string& path) {
  if (!is_inner_path(path)) return not_a_path("remove", path);
  const Descriptor parent = open_parent(path);
  if (!parent) return posix_error("remove", path, errno, Effect::looks);
  if (uninterrupted([&] { return ::unlinkat(parent.get(), last_name(path).c_str(), 0); }) == 0) return {};
  return posix_error("remove", path, errno, Effect::looks);
}

// Where the file system knows no RENAME_NOREPLACE, a crash between the two steps leaves both names.
int link_then_unlink(int from_parent, const char* from, int to_parent, const char* to) {
  if (::linkat(from_parent, from, to_parent, to, 0) != 0) return -1;
  return ::unlinkat(from_parent, from, 0);
}

Result<void> PosixFileSystem::rename(const std::string& from, const std::string& to, Rename rename) {
  if (!is_inner_path(from)) return not_a_path("rename", from);
  if (!is_inner_path(to)) return not_a_path("rename to", to);
  const Descriptor from_parent = open_parent(from);
  if (!from_parent) return posix_error("rename", from, errno, Effect::makes);
  const Descriptor to_parent = open_parent(to);
  if (!to_parent) return posix_error("rename to", to, errno, Effect::makes);
  const std::string both = from + " to " + to;
  const std::string old_name = last_name(from);
  const std::string new_name = last_name(to);
  const unsigned flags = rename == Rename::no_replace ? RENAME_NOREPLACE : 0U;
  int result = flags == 0 ? ::renameat(from_parent.get(), old_name.c_str(), to_parent.get(), new_name.c_str())
                          : ::renameat2(from_parent.get(), old_name.c_str(), to_parent.get(), new_name.c_str(), flags);
  if (result != 0 && flags != 0 && (errno == EINVAL || errno == ENOSYS)) {
    result = link_then_unlink(from_parent.get(), old_name.c_str(), to_parent.get(), new_name.c_str());
  }
  if (result == 0) return {};
  return posix_error("rename", both, errno, Effect::makes);
}

Result<NameInfo> PosixFileSystem::inspect(const std::string& path) {
  if (!path.empty() && !is_inner_path(path)) return not_a_path("inspect", path);
  const Descriptor parent = open_parent(path);
  struct stat about {};
  const std::string name = path.empty() ? "." : last_name(path);
  if (!parent || ::fstatat(parent.get(), name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0) {
    return posix_error("inspect", path, errno, Effect::looks);
  }
  constexpr std::uint64_t kBlockUnit = 512;  // of st_blocks, whatever the file system's own
  NameInfo info;
  info.type = name_type(about.st_mode);
  info.size = static_cast<std::uint64_t>(about.st_size);
  info.allocated = static_cast<std::uint64_t>(about.st_blocks) * kBlockUnit;
  info.mode = about.st_mode & 07777;
  info.ours = about.st_uid == ::geteuid();
  return info;
}

Result<void> PosixFileSystem::list(const std::string& path,
                                   const std::function<bool(std::string_view, NameType)>& visit) {
  if (!path.empty() && !is_inner_path(path)) return not_a_path("list", path);
  Descriptor descriptor = open_path(path, kDirectoryFlags, 0);
  if (!descriptor) return posix_error("list", path, errno, Effect::looks);
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::fdopendir(descriptor.get()), &::closedir);
  if (!directory) return posix_error("list", path, errno, Effect::looks);
  descriptor.release();  // the stream closes it
  return visit_names(directory.get(), path, visit);
}

Result<void> PosixFileSystem::visit_names(DIR* directory, const std::string& path,
                                          const std::function<bool(std::string_view, NameType)>& visit) const {
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(directory);
    if (entry == nullptr && errno != 0) return posix_error("list", path, errno, Effect::looks);
    if (entry == nullptr) return {};
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    auto mode = static_cast<mode_t>(DTTOIF(entry->d_type));
    if (entry->d_type == DT_UNKNOWN) {
      struct stat about {};
      if (::fstatat(::dirfd(directory), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0) continue;  // gone meanwhile
      mode = about.st_mode;
    }
    if (!visit(name, name_type(mode))) return {};
  }
}

// A name that is wrong is said to be; whatever else keeps the sync from succeeding is the end, an open that failed
// included.
Result<void> PosixFileSystem::sync_directory(const std::string& path) {
  if (!path.empty() && !is_inner_path(path)) return not_a_path("sync", path);
  const Descriptor directory = open_path(path, kDirectoryFlags, 0);
  if (!directory) {
    Error error = posix_error("sync", path, errno, Effect::looks);
    if (error.kind == ErrorKind::unavailable) error.kind = ErrorKind::io;
    return error;
  }
  if (::fsync(directory.get()) == 0) return {};
  return posix_error("sync", path, errno, Effect::syncs);
}

Result<SpaceInfo> PosixFileSystem::space() {
  struct statvfs counts {};
  struct statfs kind {};
  if (uninterrupted([&] { return ::fstatvfs(root_.get(), &counts); }) != 0 ||
      uninterrupted([&] { return ::fstatfs(root_.get(), &kind); }) != 0) {
    return posix_error("measure", name_, errno, Effect::looks);
  }
  SpaceInfo info;
  info.free_bytes = std::uint64_t{counts.f_bavail} * counts.f_frsize;
  info.total_bytes = std::uint64_t{counts.f_blocks} * counts.f_frsize;
  info.free_inodes = counts.f_favail;
  info.total_inodes = counts.f_files;
  info.safe = false;
  char unknown[32];
  std::snprintf(unknown, sizeof unknown, "unknown (0x%lx)", static_cast<unsigned long>(kind.f_type));
  info.type = unknown;
  for (const KnownType& known : kKnownTypes) {
    if (known.magic != static_cast<std::uint32_t>(kind.f_type)) continue;
    info.type = known.name;
    info.safe = known.safe;
  }
  info.syncs_whole = info.safe && whole_paths_ && kernel_syncs_whole();
  return info;
}

Result<std::unique_ptr<File>> PosixFileSystem::lock(const std::string& path) {
  if (!is_inner_path(path)) return not_a_path("lock", path);
  Result<OpenedFile> file = create_file(path, true);
  if (!file.ok()) return file.error();
  if (uninterrupted([&] { return ::flock(file->descriptor.get(), LOCK_EX | LOCK_NB); }) == 0) {
    return make_posix_file(*std::move(file), path, Access::write);
  }
  if (errno == EWOULDBLOCK) return Error{ErrorKind::unavailable, "cannot lock " + path + ": another process holds it"};
  return posix_error("lock", path, errno, Effect::looks);
}

}  // namespace

Result<std::unique_ptr<FileSystem>> open_posix_file_system(const std::string& root) {
  std::string name = root;
  while (name.size() > 1 && name.back() == '/') name.pop_back();  // a slash behind a symlink would follow it
  Descriptor directory(open_at(AT_FDCWD, name.c_str(), kDirectoryFlags, 0));
  if (!directory) return posix_error("open", name, errno, Effect::looks);
  return std::unique_ptr<FileSystem>(std::make_unique<PosixFileSystem>(std::move(directory), std::move(name)));
}

}  // namespace holdfast
