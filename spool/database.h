// The one door to SQLite. Every byte it reads or writes goes through the FileSystem seam.
//
// A database is opened exclusively, in WAL mode, with locking_mode=EXCLUSIVE (no shared memory file), temp_store=MEMORY and
// wal_autocheckpoint=0. A transaction is atomic; after commit(Durability::lazy) it may be lost by a power cut (never torn, never
// out of order), after commit(Durability::durable) it is on the medium together with all before it.
//
// Errors: `full` when SQLite has no room (the transaction is rolled back), `corrupt` when the file is not a sound database,
// `io` for any SQLITE_IOERR: it ends this life.
//
// Threads: one at a time; the caller holds the lock.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "spool/file_system.h"

struct sqlite3;
struct sqlite3_stmt;

namespace holdfast {

enum class Durability : std::uint8_t { lazy, durable };

class Statement {
 public:
  Statement() = default;
  Statement(Statement&&) noexcept;
  Statement& operator=(Statement&&) noexcept;
  ~Statement();

  Statement& bind(int index, std::uint64_t value);  // stored as the two's complement i64
  Statement& bind(int index, ByteView blob);        // the bytes must live until the next reset
  Statement& bind_text(int index, std::string_view text);

  // True: a row is there to be read. False: done, and reset for the next use.
  Result<bool> step();
  // For statements without rows: steps to the end.
  Result<void> run();
  void reset();

  std::uint64_t u64(int column) const;
  ByteView blob(int column) const;  // until the next step
  std::string_view text(int column) const;

 private:
  friend class Database;
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}
  sqlite3_stmt* statement_ = nullptr;
};

class Database {
 public:
  static Result<std::unique_ptr<Database>> open(FileSystem& fs, const std::string& path);
  ~Database();
  Database(const Database&) = delete;

  Result<void> execute(const std::string& sql);
  Result<Statement> prepare(std::string_view sql);

  Result<void> begin();
  Result<void> commit(Durability durability);
  void rollback();

  // Moves the WAL into the database file and empties it. Both files are synced.
  Result<void> checkpoint();
  std::uint64_t wal_bytes() const;
  // A sound b-tree, page by page; slow.
  Result<void> check_integrity();

 private:
  struct Vfs;
  Database() = default;
  std::unique_ptr<Vfs> vfs_;
  sqlite3* handle_ = nullptr;
};

}  // namespace holdfast
