#include "spool/database_file.h"

#include <algorithm>
#include <array>

#include "spool/page_check.h"
#include "spool/path.h"

namespace holdfast {

namespace {

constexpr std::size_t kWalHeaderBytes = 32;

std::uint32_t page_number(std::uint64_t offset) {
  return static_cast<std::uint32_t>(offset / kPageBytes + 1);
}

}  // namespace

Result<std::unique_ptr<DatabaseFile>> DatabaseFile::open(FileSystem& fs, const std::string& path, DatabaseRole role,
                                                         bool may_make) {
  std::unique_ptr<DatabaseFile> opened(new DatabaseFile(fs, path, role));
  auto file = fs.open(path, OpenMode::write);
  if (!file.ok() && file.error().kind == ErrorKind::not_found && may_make) {
    file = fs.open(path, OpenMode::create_new);
    opened->new_name_ = file.ok();
  }
  if (!file.ok()) return file.error();
  opened->file_ = *std::move(file);
  return opened;
}

// Everything but the header on its own, which is looked at before the size of a page is known.
bool DatabaseFile::is_page(std::uint64_t offset, std::size_t count) const {
  return role_ == DatabaseRole::pages && count == kPageBytes && offset % kPageBytes == 0;
}

Result<std::size_t> DatabaseFile::read(std::uint64_t offset, std::span<std::uint8_t> out) {
  const auto got = file_->read_at(offset, out);
  if (!got.ok() || *got == 0 || !is_page(offset, out.size())) return got;
  if (*got == kPageBytes && page_is_sound(page_number(offset), out.first<kPageBytes>())) return got;
  return Error{ErrorKind::corrupt,
               path_ + ": page " + std::to_string(page_number(offset)) + " is not what was written"};
}

Result<void> DatabaseFile::write(std::uint64_t offset, ByteView bytes) {
  if (!is_page(offset, bytes.size())) return file_->write_at(offset, bytes);
  std::array<std::uint8_t, kPageBytes> page;
  std::copy(bytes.begin(), bytes.end(), page.begin());
  seal_page(page_number(offset), page);
  return file_->write_at(offset, page);
}

// A WAL whose end went before its beginning would be taken for an older one, and replayed over a newer database. So its
// header goes first, for good: a cut need not be atomic.
Result<void> DatabaseFile::cut(std::uint64_t size) {
  const auto before = file_->size();
  if (!before.ok()) return before.error();
  if (*before == size) return {};
  if (role_ == DatabaseRole::wal && size == 0) {
    HOLDFAST_TRY(file_->write_at(0, std::array<std::uint8_t, kWalHeaderBytes>{}));
    HOLDFAST_TRY(file_->sync());
  }
  return file_->truncate(size);
}

Result<void> DatabaseFile::sync() {
  HOLDFAST_TRY(file_->sync());
  if (!new_name_) return {};
  HOLDFAST_TRY(fs_.sync_directory(parent_path(path_)));
  new_name_ = false;
  return {};
}

}  // namespace holdfast
