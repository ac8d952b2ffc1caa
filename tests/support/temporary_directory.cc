#include "tests/support/temporary_directory.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "spool/check.h"

namespace holdfast {

TemporaryDirectory::TemporaryDirectory() {
  const char* parent = std::getenv("TMPDIR");
  path_ = std::string(parent != nullptr && *parent != '\0' ? parent : "/tmp") + "/holdfast-XXXXXX";
  CHECK(::mkdtemp(path_.data()) != nullptr);
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace holdfast
