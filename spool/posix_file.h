// The ground under the real FileSystem: descriptors, errno as an Error, one open file. For posix_*.cc only.
#pragma once

#include <cerrno>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "spool/file_system.h"

namespace holdfast {

// Owns a file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();

  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

// Calls until it is not interrupted. Never for a sync: there an interruption is a failure like any other (I4).
template <typename Call>
auto uninterrupted(Call call) {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

// What a failed call was about; decides what its errno means.
enum class Effect : std::uint8_t {
  looks,  // or takes away: a lack of space is not to be expected
  makes,  // or extends: a lack of space is `full`
  syncs,  // everything is `io`
};

// "cannot write records/ab/x.rec: No space left on device"
Error posix_error(const char* verb, const std::string& path, int code, Effect effect);

// A sync of a descriptor that can fail once only: after the first failure every call fails, without another attempt.
// Callers take turns, because the kernel reports a lost write once per descriptor, to whoever asks first.
class SyncPoint {
 public:
  // `call` is fdatasync, fsync or syncfs.
  Result<void> sync(int (*call)(int), int fd, const char* verb, const std::string& path);

 private:
  std::mutex turn_;
  bool failed_ = false;
};

// An open regular file.
struct OpenedFile {
  Descriptor descriptor;
  std::uint64_t size = 0;  // when it was opened
};

enum class Access : std::uint8_t { read, read_direct, write };

// Takes it over. `path` is for the texts of errors.
std::unique_ptr<File> make_posix_file(OpenedFile file, std::string path, Access access);

}  // namespace holdfast
