// What SQLite has for a file system: the seam. One for each database, registered under a name of its own. Private to
// database.cc.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "spool/database_file.h"

struct sqlite3_vfs;

namespace holdfast {

struct SqliteSeam {
  SqliteSeam(FileSystem& file_system, std::string database_path);  // registers itself
  ~SqliteSeam();
  SqliteSeam(const SqliteSeam&) = delete;

  // Keeps what the seam said, for the error that SQLite will make of it.
  int fail(int code, const Error& error);
  // The frames of a transaction that failed must not be read by another life: the last of them may say that it was
  // committed, where SQLite failed with what it writes behind it (R54).
  Result<void> forget_transaction();

  FileSystem& fs;
  std::string path;
  std::string name;
  std::unique_ptr<sqlite3_vfs> methods;  // registered under the name
  std::optional<Error> said;
  bool broken = false;        // nothing goes to the disk any more
  std::uint64_t wal_end = 0;  // of what was written since the last checkpoint
  std::uint64_t wal_syncs = 0;
  DatabaseFile* wal = nullptr;                     // while it is open
  std::optional<std::uint64_t> transaction_begin;  // where in the WAL the first frame of this transaction lies
};

}  // namespace holdfast
