// The limit that the spool is measured against: the same bytes, sealed and brought to the medium by straight code that
// keeps no promise beyond that.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "crypto/bytes.h"

namespace holdfast {

// One file of written zeros, written again from the front when it is full; each append is followed by fdatasync.
class PlainLog {
 public:
  PlainLog(const std::string& path, std::uint64_t size);
  ~PlainLog();
  void append(Bytes& batch);  // to the next 4 KiB, in batch too

 private:
  int fd_ = -1;
  std::uint64_t size_ = 0;
  std::uint64_t offset_ = 0;
};

// XChaCha20-Poly1305 by libsodium, one call a record, one behind the other.
class PlainSealer {
 public:
  PlainSealer();
  void seal(ByteView plain, Bytes& out);

 private:
  std::vector<std::uint8_t> key_;
  std::uint64_t nonce_ = 0;
};

// One record durable by itself, as it is done without a journal: a temporary file, fsync, link, unlink, fsync of the
// directory.
void write_alone(const std::string& directory, std::uint64_t number, ByteView bytes);

// Files in 256 directories, created and written; sync_all makes what was written so far durable.
class PlainFiles {
 public:
  explicit PlainFiles(const std::string& directory);
  ~PlainFiles();
  void write(std::uint64_t number, ByteView bytes);
  void sync_all();

 private:
  std::string directory_;
  int fd_ = -1;
};

}  // namespace holdfast
