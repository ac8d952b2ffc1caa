// A file of written blocks that is given back when the disk is full, so that settling, which makes room, can go on.
// What is in it never matters. Threads: one at a time.
#pragma once

#include <string>

#include "spool/file_system.h"

namespace holdfast {

inline constexpr std::uint64_t kReserveBytes = 8 << 20;
inline constexpr const char* kReservePath = "index.reserve";

class Reserve {
 public:
  Reserve(FileSystem& fs, std::string path) : fs_(fs), path_(std::move(path)) {}

  // Makes it when it is not there as a whole and four times its size are free. No room is no error.
  Result<void> make();
  // False: there was none.
  Result<bool> give_back();
  // Given back, and not made again yet.
  bool spent() const { return spent_; }

 private:
  Result<bool> whole();
  Result<void> write();

  FileSystem& fs_;
  std::string path_;
  bool spent_ = false;
};

}  // namespace holdfast
