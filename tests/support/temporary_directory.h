// A directory of the test's own, gone with it.
#pragma once

#include <string>

namespace holdfast {

class TemporaryDirectory {
 public:
  TemporaryDirectory();  // under $TMPDIR, else /tmp; 0700
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace holdfast
