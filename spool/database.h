// The one door to SQLite. Every byte it reads or writes goes through the FileSystem seam.
//
// A database is opened exclusively, in WAL mode, with locking_mode=EXCLUSIVE (no shared memory file), temp_store=MEMORY
// and wal_autocheckpoint=0. A transaction is atomic; a lazy one may be lost by a power cut after its commit() (never
// torn, never out of order), a durable one is on the medium when commit() returns, together with all before it.
//
// At open nothing that an earlier life wrote is known to be on the medium: a failed sync leaves good bytes in the page
// cache, clean. So the WAL is copied into a new file, synced, and put in the place of the old one; then all of it is
// moved into the database, synced. What remains possible, where the medium lied to a sync that returned success: an
// older state, or damage, which is found (`corrupt`). Neither is a lost record to who can rebuild the database.
//
// Errors: `full` when there is no room (the transaction is rolled back); `corrupt` when the file is not a sound
// database, `io` for any SQLITE_IOERR: after these two nothing works any more, nothing is written or synced again (I4):
// they end this life.
//
// Threads: one at a time; the caller holds the lock.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "spool/file_system.h"

struct sqlite3;
struct sqlite3_stmt;

namespace holdfast {

enum class Durability : std::uint8_t { lazy, durable };

class Database;
struct SqliteSeam;

// Must be gone before its Database is.
class Statement {
 public:
  Statement() = default;
  Statement(Statement&&) noexcept;
  Statement& operator=(Statement&&) noexcept;
  ~Statement();

  Statement& bind(int index, std::uint64_t value);  // stored as the two's complement i64
  Statement& bind(int index, ByteView blob);        // the bytes must live until the next reset
  Statement& bind_text(int index, std::string_view text);

  // True: a row is there to be read. False: done, and reset for the next use. An error resets, too.
  Result<bool> step();
  // For statements without rows: steps to the end.
  Result<void> run();
  void reset();

  std::uint64_t u64(int column) const;
  ByteView blob(int column) const;  // until the next step
  std::string_view text(int column) const;

 private:
  friend class Database;
  Statement(Database* database, sqlite3_stmt* statement) : database_(database), statement_(statement) {}
  Database* database_ = nullptr;
  sqlite3_stmt* statement_ = nullptr;
};

// A statement left before its last row holds the WAL in its place; this lets go of it at the end of the block.
class ResetAtEnd {
 public:
  explicit ResetAtEnd(Statement& statement) : statement_(statement) {}
  ~ResetAtEnd() { statement_.reset(); }
  ResetAtEnd(const ResetAtEnd&) = delete;

 private:
  Statement& statement_;
};

class Database {
 public:
  // Makes the file when it is absent. `invalid` when something that is no file has its name.
  static Result<std::unique_ptr<Database>> open(FileSystem& fs, const std::string& path);
  // Leaves the WAL as it is. close() first, where that can be afforded.
  ~Database();
  Database(const Database&) = delete;

  Result<void> execute(const std::string& sql);
  Result<Statement> prepare(std::string_view sql);
  Result<void> prepare(Statement& into, std::string_view sql);
  std::uint64_t changes() const;  // rows changed by the last statement that changes any

  Result<void> begin(Durability durability);
  Result<void> commit();  // an error has rolled back
  void rollback();

  // Moves the WAL into the database file, synced, and starts it anew; the file keeps its blocks, up to kKeptWalBytes.
  Result<void> checkpoint();
  std::uint64_t wal_bytes() const;  // since the last checkpoint
  // Moves the WAL into the database file, synced, and cuts it to nothing.
  Result<void> close();
  // A sound b-tree, page by page; slow.
  Result<void> check_integrity();

  // The `corrupt` of who reads rows that cannot be ours; the same end as one that SQLite finds.
  Error damaged(std::string_view what);
  // Called once, at the first `corrupt`, from inside the call that is about to return it.
  void on_corrupt(std::function<void()> mark) { on_corrupt_ = std::move(mark); }

 private:
  friend class Statement;
  explicit Database(std::unique_ptr<SqliteSeam> seam);
  Result<void> connect();
  Result<void> check_size();
  Result<void> checkpoint_as(int mode);
  Error error(int code, std::string_view what);

  std::unique_ptr<SqliteSeam> seam_;
  sqlite3* handle_ = nullptr;
  bool full_sync_ = false;     // what PRAGMA synchronous stands at
  bool durable_ = false;       // what begin() was told
  bool lazy_pending_ = false;  // a lazy commit has not been synced since
  std::function<void()> on_corrupt_;
};

// What a checkpoint leaves allocated of the WAL, so that a durable commit overwrites blocks instead of asking for new
// ones.
inline constexpr std::uint64_t kKeptWalBytes = 4 << 20;

}  // namespace holdfast
