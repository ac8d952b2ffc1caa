// Whether a file is still the one that was read: for files that somebody renews while the program runs (credentials,
// certificates), in place or under the same name.
#pragma once

#include <cstdint>
#include <string>

namespace holdfast {

// What stat(2) says of it; all zero where there is none, or no name was given.
struct FileStamp {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::int64_t changed_ns = 0;  // content
  std::int64_t touched_ns = 0;  // content, name, mode
  bool operator==(const FileStamp&) const = default;
};

FileStamp file_stamp(const std::string& path);

}  // namespace holdfast
