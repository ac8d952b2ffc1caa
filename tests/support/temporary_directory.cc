#include "tests/support/temporary_directory.h"

#include <cstdlib>

#include "spool/check.h"
#include "tests/support/remove_tree.h"

namespace holdfast {

TemporaryDirectory::TemporaryDirectory() {
  const char* parent = std::getenv("TMPDIR");
  path_ = std::string(parent != nullptr && *parent != '\0' ? parent : "/tmp") + "/holdfast-XXXXXX";
  CHECK(::mkdtemp(path_.data()) != nullptr);
}

TemporaryDirectory::~TemporaryDirectory() {
  remove_tree(path_);
}

}  // namespace holdfast
