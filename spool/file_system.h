// The file system seam: everything that holdfast does to a disk goes through here, SQLite's own calls included, so that
// a test can fail any call, forget what was not synced, and cut the power between any two.
//
// A FileSystem is rooted in one directory; every path is relative to it, never absolute, never with "..". A symlink is
// never followed, not even in the middle of a path.
//
// What survives a power cut: nothing but what a later successful sync covers. Bytes of a file: File::sync. A name
// (made, renamed, removed): sync_directory of the directory that holds it, or sync_all. Order between two unsynced
// things is never implied.
//
// Errors. `full`: ENOSPC, EDQUOT, EROFS, and only from calls that make or extend something. `not_found`: ENOENT.
// `exists`: EEXIST. `unavailable`: EMFILE, ENFILE, ENOMEM, EAGAIN. `invalid`: the name is not what was asked for (a
// symlink, a directory, EACCES, EPERM). `io`: everything else, and whatever a sync returns that is not success. EINTR
// is never seen. A sync that failed must not be called again (I4): the caller ends this life.
//
// Threads: any, for both classes; calls on different files do not wait for each other.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "crypto/bytes.h"
#include "spool/result.h"

namespace holdfast {

enum class OpenMode : std::uint8_t {
  read,  // must exist
  // Must exist; reads come from the medium, past the page cache (O_DIRECT); offsets, sizes and the memory are multiples
  // of kDirectAlignment; `unavailable` where the file system refuses.
  read_direct,
  write,       // must exist; read and write
  create_new,  // must not exist (O_EXCL), mode 0600; read and write
  create,      // made when absent, mode 0600; read and write
};

inline constexpr std::size_t kDirectAlignment = 4096;

class File {
 public:
  virtual ~File() = default;
  // Fills as much of `out` as the file has from there; less than out.size() only at the end of the file.
  virtual Result<std::size_t> read_at(std::uint64_t offset, std::span<std::uint8_t> out) = 0;
  // All of it or an error. `full` only when nothing of it was written; a partial write that cannot be completed is
  // `io`.
  virtual Result<void> write_at(std::uint64_t offset, ByteView bytes) = 0;
  // Of a file opened to be read: at that moment, or later.
  virtual Result<std::uint64_t> size() = 0;
  virtual Result<void> truncate(std::uint64_t size) = 0;
  // The file's bytes, and what is needed to find them (fdatasync(2)).
  virtual Result<void> sync() = 0;
};

enum class NameType : std::uint8_t { file, directory, other };

struct NameInfo {
  NameType type = NameType::other;
  std::uint64_t size = 0;
  std::uint64_t allocated = 0;  // bytes on the medium
  std::uint32_t mode = 0;       // permission bits
  bool ours = false;            // owned by this process's effective user
};

struct SpaceInfo {
  std::uint64_t free_bytes = 0;  // for us, not for root
  std::uint64_t total_bytes = 0;
  std::uint64_t free_inodes = 0;
  std::uint64_t total_inodes = 0;  // 0 where the file system makes them as needed
  bool safe = true;                // a type whose syncs can be believed; false: tmpfs, overlayfs, NFS, FUSE, vfat
  bool syncs_whole = false;  // sync_all reports every earlier write error (ext4, xfs, btrfs, f2fs, kernel >= 5.17)
  std::string type;          // "ext4"
};

enum class Rename : std::uint8_t { replace, no_replace };

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  virtual Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) = 0;
  virtual Result<void> make_directory(const std::string& path) = 0;  // 0700; `exists` when there
  virtual Result<void> remove(const std::string& path) = 0;          // a file
  virtual Result<void> rename(const std::string& from, const std::string& to, Rename rename) = 0;
  virtual Result<NameInfo> inspect(const std::string& path) = 0;  // "" is the root
  // Calls `visit` with each name in the directory, in no order, "." and ".." left out; stops when it returns false.
  virtual Result<void> list(const std::string& path, const std::function<bool(std::string_view, NameType)>& visit) = 0;
  virtual Result<void> sync_directory(const std::string& path) = 0;  // "" is the root
  // Everything written to this file system so far (syncfs(2)), through one descriptor opened before this object's first
  // write.
  virtual Result<void> sync_all() = 0;
  virtual Result<SpaceInfo> space() = 0;
  // Holds an exclusive lock on the file, made when absent, until the File goes. `unavailable` when another holds it.
  virtual Result<std::unique_ptr<File>> lock(const std::string& path) = 0;
};

// The real one. Directories down to `root` must exist. Opens `root` without following a symlink.
Result<std::unique_ptr<FileSystem>> open_posix_file_system(const std::string& root);

// What a file of so many bytes takes on the medium.
constexpr std::uint64_t allocated(std::uint64_t size) {
  constexpr std::uint64_t kUnit = 4096;
  return (size + kUnit - 1) / kUnit * kUnit;
}

// Reads a whole file of at most `limit` bytes; `invalid` when it is larger.
Result<Bytes> read_file(FileSystem& fs, const std::string& path, std::size_t limit);
// The same into a buffer that is used again and again.
Result<void> read_file_into(FileSystem& fs, const std::string& path, std::size_t limit, Bytes& bytes);

}  // namespace holdfast
