#include "tests/bench/plain_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spool/check.h"

namespace holdfast {
namespace {

constexpr std::size_t kBlock = 4096;

void write_all(int fd, ByteView bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    CHECK(written > 0);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
}

int make_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  CHECK(fd >= 0);
  return fd;
}

}  // namespace

PlainLog::PlainLog(const std::string& path, std::uint64_t size) : fd_(make_file(path)), size_(size) {
  const Bytes zeros(1u << 20);
  for (std::uint64_t at = 0; at < size; at += zeros.size()) write_all(fd_, zeros, at);
  CHECK(::fsync(fd_) == 0);
}
PlainLog::~PlainLog() {
  ::close(fd_);
}

void PlainLog::append(Bytes& batch) {
  const std::uint64_t extent = (batch.size() + kBlock - 1) / kBlock * kBlock;
  if (offset_ + extent > size_) offset_ = 0;
  batch.resize(extent);
  write_all(fd_, batch, offset_);
  CHECK(::fdatasync(fd_) == 0);
  offset_ += extent;
}

PlainSealer::PlainSealer() : key_(crypto_aead_xchacha20poly1305_ietf_KEYBYTES, 7) {
  CHECK(sodium_init() >= 0);
}

void PlainSealer::seal(ByteView plain, Bytes& out) {
  std::uint8_t nonce[crypto_aead_xchacha20poly1305_ietf_NPUBBYTES] = {};
  store_le(nonce, ++nonce_);
  const std::size_t at = out.size();
  out.resize(at + sizeof nonce + plain.size() + crypto_aead_xchacha20poly1305_ietf_ABYTES);
  std::copy(std::begin(nonce), std::end(nonce), out.begin() + static_cast<std::ptrdiff_t>(at));
  crypto_aead_xchacha20poly1305_ietf_encrypt(out.data() + at + sizeof nonce, nullptr, plain.data(), plain.size(),
                                             nullptr, 0, nullptr, nonce, key_.data());
}

void write_alone(const std::string& directory, std::uint64_t number, ByteView bytes) {
  const std::string temporary = fmt::format("{}/temporary", directory);
  const std::string name = fmt::format("{}/{}", directory, number);
  const int fd = make_file(temporary);
  write_all(fd, bytes, 0);
  CHECK(::fsync(fd) == 0 && ::close(fd) == 0);
  CHECK(::link(temporary.c_str(), name.c_str()) == 0 && ::unlink(temporary.c_str()) == 0);
  const int at = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  CHECK(at >= 0 && ::fsync(at) == 0 && ::close(at) == 0);
}

PlainFiles::PlainFiles(const std::string& directory) : directory_(directory) {
  ::mkdir(directory.c_str(), 0700);
  for (int i = 0; i < 256; ++i) ::mkdir(fmt::format("{}/{:02x}", directory, i).c_str(), 0700);
  fd_ = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  CHECK(fd_ >= 0);
}
PlainFiles::~PlainFiles() {
  ::close(fd_);
}

void PlainFiles::write(std::uint64_t number, ByteView bytes) {
  // Names as long and as scattered as those of record files.
  const std::uint64_t scattered = number * 0x9e3779b97f4a7c15;
  const int fd = make_file(fmt::format("{}/{:02x}/{:016x}{:048x}.rec", directory_, scattered >> 56, scattered, number));
  write_all(fd, bytes, 0);
  CHECK(::close(fd) == 0);
}

void PlainFiles::sync_all() {
  CHECK(::syncfs(fd_) == 0);
}

}  // namespace holdfast
