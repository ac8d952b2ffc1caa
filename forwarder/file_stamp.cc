#include "forwarder/file_stamp.h"

#include <sys/stat.h>

namespace holdfast {
namespace {

std::int64_t nanoseconds(const timespec& time) {
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

FileStamp file_stamp(const std::string& path) {
  struct stat facts {};
  if (path.empty() || ::stat(path.c_str(), &facts) != 0) return {};
  FileStamp stamp;
  stamp.device = facts.st_dev;
  stamp.inode = facts.st_ino;
  stamp.size = static_cast<std::uint64_t>(facts.st_size);
  stamp.changed_ns = nanoseconds(facts.st_mtim);
  stamp.touched_ns = nanoseconds(facts.st_ctim);
  return stamp;
}

}  // namespace holdfast
