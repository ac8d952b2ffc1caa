#include "spool/file_system.h"

namespace holdfast {

Result<Bytes> read_file(FileSystem& fs, const std::string& path, std::size_t limit) {
  Bytes bytes;
  HOLDFAST_TRY(read_file_into(fs, path, limit, bytes));
  return bytes;
}

Result<void> read_file_into(FileSystem& fs, const std::string& path, std::size_t limit, Bytes& bytes) {
  auto file = fs.open(path, OpenMode::read);
  if (!file.ok()) return file.error();
  const auto size = (*file)->size();
  if (!size.ok()) return size.error();
  if (*size > limit) {
    return Error{ErrorKind::invalid, path + " is larger than " + std::to_string(limit) + " bytes"};
  }
  bytes.resize(static_cast<std::size_t>(*size));
  const auto count = (*file)->read_at(0, bytes);
  if (!count.ok()) return count.error();
  bytes.resize(*count);
  return {};
}

}  // namespace holdfast
