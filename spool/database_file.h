// A file of a database, as SQLite needs it and the disk allows it: pages are sealed and checked, a new name is synced
// with the first bytes, a WAL is cut so that no part of it can come back alone.
#pragma once

#include <memory>
#include <string>

#include "spool/file_system.h"

namespace holdfast {

enum class DatabaseRole : std::uint8_t { pages, wal, journal };

class DatabaseFile {
 public:
  // `not_found` when it is absent and may not be made.
  static Result<std::unique_ptr<DatabaseFile>> open(FileSystem& fs, const std::string& path, DatabaseRole role,
                                                    bool may_make);

  DatabaseRole role() const { return role_; }

  // How many bytes were there. `corrupt` for a page that is not sound, or not whole.
  Result<std::size_t> read(std::uint64_t offset, std::span<std::uint8_t> out);
  Result<void> write(std::uint64_t offset, ByteView bytes);
  Result<void> cut(std::uint64_t size);
  Result<void> sync();
  Result<std::uint64_t> size() { return file_->size(); }

 private:
  DatabaseFile(FileSystem& fs, std::string path, DatabaseRole role) : fs_(fs), path_(std::move(path)), role_(role) {}
  bool is_page(std::uint64_t offset, std::size_t count) const;

  FileSystem& fs_;
  std::string path_;
  DatabaseRole role_;
  std::unique_ptr<File> file_;
  bool new_name_ = false;  // made by us, its directory not synced since
};

}  // namespace holdfast
