#include "spool/posix_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <system_error>

namespace holdfast {

static_assert(sizeof(off_t) == 8, "build with _FILE_OFFSET_BITS=64");

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

namespace {

ErrorKind error_kind(int code, Effect effect) {
  if (effect == Effect::syncs) return ErrorKind::io;
  switch (code) {
    case ENOSPC:
    case EDQUOT:
    case EROFS:
      return effect == Effect::makes ? ErrorKind::full : ErrorKind::io;
    case ENOENT:
      return ErrorKind::not_found;
    case EEXIST:
      return ErrorKind::exists;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EAGAIN:
      return ErrorKind::unavailable;
    case EACCES:
    case EPERM:
    case ELOOP:
    case EISDIR:
    case ENOTDIR:
    case ENOTEMPTY:
    case ENAMETOOLONG:
    case ENXIO:
    case EXDEV:
      return ErrorKind::invalid;
    default:
      return ErrorKind::io;
  }
}

}  // namespace

Error posix_error(const char* verb, const std::string& path, int code, Effect effect) {
  const std::string name = path.empty() ? "the directory" : path;
  return {error_kind(code, effect),
          std::string("cannot ") + verb + " " + name + ": " + std::generic_category().message(code)};
}

Result<void> SyncPoint::sync(int (*call)(int), int fd, const char* verb, const std::string& path) {
  const std::lock_guard turn(turn_);
  if (failed_) return Error{ErrorKind::io, std::string("cannot ") + verb + " " + path + ": an earlier sync failed"};
  if (call(fd) == 0) return {};
  failed_ = true;
  return posix_error(verb, path, errno, Effect::syncs);
}

namespace {

class PosixFile : public File {
 public:
  PosixFile(OpenedFile file, std::string path, Access access)
      : descriptor_(std::move(file.descriptor)), size_at_open_(file.size), path_(std::move(path)), access_(access) {}

  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::uint8_t> out) override {
    CHECK(!direct() || aligned(offset, out));
    std::size_t done = 0;
    while (done < out.size()) {
      const ssize_t count = uninterrupted([&] {
        return ::pread(descriptor_.get(), out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
      });
      if (count < 0) return read_error(errno);
      if (count == 0) break;
      done += static_cast<std::size_t>(count);
      // A direct read stops between two blocks only where the file ends, and cannot go on from there.
      if (direct() && done % kDirectAlignment != 0) break;
    }
    return done;
  }

  Result<void> write_at(std::uint64_t offset, ByteView bytes) override {
    const Result<std::uint64_t> old_size = size();
    if (!old_size.ok()) return old_size.error();
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t count = uninterrupted([&] {
        return ::pwrite(descriptor_.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
      });
      const int code = count < 0 ? errno : EIO;
      if (count <= 0) return write_error(code, done, offset >= *old_size, *old_size);
      done += static_cast<std::size_t>(count);
    }
    return {};
  }

  Result<std::uint64_t> size() override {
    if (access_ != Access::write) return size_at_open_;
    struct stat about {};
    if (::fstat(descriptor_.get(), &about) != 0) return posix_error("inspect", path_, errno, Effect::looks);
    return static_cast<std::uint64_t>(about.st_size);
  }

  Result<void> truncate(std::uint64_t size) override {
    const int result = uninterrupted([&] { return ::ftruncate(descriptor_.get(), static_cast<off_t>(size)); });
    if (result != 0) return posix_error("resize", path_, errno, Effect::makes);
    return {};
  }

  Result<void> sync() override { return sync_point_.sync(&::fdatasync, descriptor_.get(), "sync", path_); }

 private:
  bool direct() const { return access_ == Access::read_direct; }
  static bool aligned(std::uint64_t offset, std::span<std::uint8_t> out) {
    return offset % kDirectAlignment == 0 && out.size() % kDirectAlignment == 0 &&
           reinterpret_cast<std::uintptr_t>(out.data()) % kDirectAlignment == 0;
  }

  Error read_error(int code) const {
    Error error = posix_error("read", path_, code, Effect::looks);
    if (direct() && code == EINVAL) error.kind = ErrorKind::unavailable;
    return error;
  }

  // A write that stopped half-way may still count as not begun when all of it lies behind the old end: it is cut off
  // again.
  Error write_error(int code, std::size_t done, bool appended, std::uint64_t old_size) {
    Error error = posix_error("write", path_, code, Effect::makes);
    if (done == 0) return error;
    if (error.kind == ErrorKind::full && appended && truncate(old_size).ok()) return error;
    return {ErrorKind::io, error.text + " (half-way)"};
  }

  const Descriptor descriptor_;
  const std::uint64_t size_at_open_;
  const std::string path_;
  const Access access_;
  SyncPoint sync_point_;
};

}  // namespace

std::unique_ptr<File> make_posix_file(OpenedFile file, std::string path, Access access) {
  return std::make_unique<PosixFile>(std::move(file), std::move(path), access);
}

}  // namespace holdfast
