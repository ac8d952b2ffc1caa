#include "spool/database.h"

#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <utility>

#include "spool/database_vfs.h"
#include "spool/page_check.h"
#include "spool/path.h"
#include "spool/wal_renewal.h"

namespace holdfast {
namespace {

// --- What went wrong

ErrorKind kind_of(int code, const std::optional<Error>& said) {
  switch (code & 0xff) {
    case SQLITE_FULL:
      return ErrorKind::full;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return ErrorKind::corrupt;
    case SQLITE_IOERR:
      return ErrorKind::io;
    case SQLITE_CANTOPEN:
      return said ? said->kind : ErrorKind::unavailable;
    case SQLITE_NOMEM:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return ErrorKind::unavailable;
    case SQLITE_CONSTRAINT:
      return ErrorKind::exists;
    default:
      return ErrorKind::invalid;
  }
}

}  // namespace

// --- Statement

Statement::Statement(Statement&& other) noexcept
    : database_(std::exchange(other.database_, nullptr)), statement_(std::exchange(other.statement_, nullptr)) {}

Statement& Statement::operator=(Statement&& other) noexcept {
  std::swap(database_, other.database_);
  std::swap(statement_, other.statement_);
  return *this;
}

Statement::~Statement() {
  sqlite3_finalize(statement_);
}

Statement& Statement::bind(int index, std::uint64_t value) {
  CHECK(sqlite3_bind_int64(statement_, index, static_cast<sqlite3_int64>(value)) == SQLITE_OK);
  return *this;
}

Statement& Statement::bind(int index, ByteView blob) {
  const void* const bytes = blob.empty() ? "" : static_cast<const void*>(blob.data());
  CHECK(sqlite3_bind_blob64(statement_, index, bytes, blob.size(), SQLITE_STATIC) == SQLITE_OK);
  return *this;
}

Statement& Statement::bind_text(int index, std::string_view text) {
  const char* const bytes = text.empty() ? "" : text.data();
  CHECK(sqlite3_bind_text64(statement_, index, bytes, text.size(), SQLITE_STATIC, SQLITE_UTF8) == SQLITE_OK);
  return *this;
}

Result<bool> Statement::step() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) {
    reset();
    return false;
  }
  Error error = database_->error(code, "a statement");
  reset();
  return error;
}

Result<void> Statement::run() {
  for (;;) {
    const auto row = step();
    if (!row.ok()) return row.error();
    if (!*row) return {};
  }
}

void Statement::reset() {
  sqlite3_reset(statement_);
}

std::uint64_t Statement::u64(int column) const {
  return static_cast<std::uint64_t>(sqlite3_column_int64(statement_, column));
}

ByteView Statement::blob(int column) const {
  const auto* bytes = static_cast<const std::uint8_t*>(sqlite3_column_blob(statement_, column));
  return {bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

std::string_view Statement::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return {bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

// --- Database

Database::Database(std::unique_ptr<SqliteSeam> seam) : seam_(std::move(seam)) {}

Database::~Database() {
  // Anything but OK is a statement that outlives its database.
  CHECK(sqlite3_close(handle_) == SQLITE_OK);
}

Result<std::unique_ptr<Database>> Database::open(FileSystem& fs, const std::string& path) {
  HOLDFAST_TRY(renew_wal(fs, path));
  auto seam = std::make_unique<SqliteSeam>(fs, path);
  std::unique_ptr<Database> database(new Database(std::move(seam)));
  HOLDFAST_TRY(database->connect());
  return database;
}

Result<void> Database::connect() {
  constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const int code = sqlite3_open_v2(seam_->path.c_str(), &handle_, kFlags, seam_->name.c_str());
  if (code != SQLITE_OK) return error(code, "open");
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  int reserved = kPageCheckBytes;
  sqlite3_file_control(handle_, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved);
  HOLDFAST_TRY(
      execute("PRAGMA locking_mode=EXCLUSIVE;"  // before the first access: no shared memory file
              "PRAGMA page_size=4096;"
              "PRAGMA temp_store=MEMORY;"
              "PRAGMA cache_size=-4096;"
              "PRAGMA mmap_size=0;"
              "PRAGMA secure_delete=OFF;"
              "PRAGMA cell_size_check=ON;"
              "PRAGMA trusted_schema=OFF;"
              "PRAGMA synchronous=FULL;"
              "PRAGMA journal_mode=WAL;"
              "PRAGMA wal_autocheckpoint=0;"));
  HOLDFAST_TRY(execute("PRAGMA journal_size_limit=" + std::to_string(kKeptWalBytes)));
  full_sync_ = true;
  HOLDFAST_TRY(checkpoint_as(SQLITE_CHECKPOINT_TRUNCATE));
  return check_size();
}

// A last page that is there in part would else be found only when it is read.
Result<void> Database::check_size() {
  Statement pages;
  HOLDFAST_TRY(prepare(pages, "PRAGMA page_count"));
  const auto row = pages.step();
  if (!row.ok()) return row.error();
  const auto info = seam_->fs.inspect(seam_->path);
  if (!info.ok()) return info.error();
  return *row && pages.u64(0) * kPageBytes == info->size ? Result<void>() : damaged("its size");
}

Error Database::error(int code, std::string_view what) {
  const ErrorKind kind = kind_of(code, seam_->said);
  std::string text = seam_->path + ": " + std::string(what) + ": ";
  text += handle_ != nullptr ? sqlite3_errmsg(handle_) : sqlite3_errstr(code);
  if (auto said = std::exchange(seam_->said, std::nullopt)) text += " (" + said->text + ")";
  const bool over = kind == ErrorKind::io || kind == ErrorKind::corrupt;
  if (over) seam_->broken = true;
  if (auto mark = kind == ErrorKind::corrupt ? std::exchange(on_corrupt_, nullptr) : nullptr) mark();
  return {kind, std::move(text)};
}

Result<void> Database::execute(const std::string& sql) {
  const int code = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return error(code, "a statement");
  return {};
}

Result<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(handle_, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                                      &statement, nullptr);
  if (code != SQLITE_OK) return error(code, "prepare");
  return Statement(this, statement);
}

Result<void> Database::prepare(Statement& into, std::string_view sql) {
  auto statement = prepare(sql);
  if (!statement.ok()) return statement.error();
  into = *std::move(statement);
  return {};
}

std::uint64_t Database::changes() const {
  return static_cast<std::uint64_t>(sqlite3_changes64(handle_));
}

Result<void> Database::begin(Durability durability) {
  durable_ = durability == Durability::durable;
  if (durable_ != full_sync_) {  // cannot be changed inside a transaction
    HOLDFAST_TRY(execute(durable_ ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL"));
    full_sync_ = durable_;
  }
  seam_->transaction_begin.reset();
  return execute("BEGIN IMMEDIATE");
}

Result<void> Database::commit() {
  const std::uint64_t syncs_before = seam_->wal_syncs;
  auto committed = execute("COMMIT");
  if (!committed.ok()) {
    rollback();
    if (seam_->broken) return committed.error();
    if (const auto forgotten = seam_->forget_transaction(); !forgotten.ok()) {
      seam_->broken = true;
      return Error{ErrorKind::io, "what a failed commit wrote cannot be taken back: " + forgotten.error().text};
    }
    return committed.error();
  }
  if (!durable_) {
    lazy_pending_ = true;
    return {};
  }
  // A transaction that changed nothing syncs nothing, not even what was before it.
  if (seam_->wal_syncs == syncs_before && lazy_pending_) HOLDFAST_TRY(checkpoint());
  lazy_pending_ = false;
  return {};
}

void Database::rollback() {
  if (sqlite3_get_autocommit(handle_) == 0) sqlite3_exec(handle_, "ROLLBACK", nullptr, nullptr, nullptr);
}

Result<void> Database::checkpoint() {
  return checkpoint_as(SQLITE_CHECKPOINT_RESTART);
}

Result<void> Database::close() {
  return checkpoint_as(SQLITE_CHECKPOINT_TRUNCATE);
}

Result<void> Database::checkpoint_as(int mode) {
  int frames = 0;
  int moved = 0;
  const int code = sqlite3_wal_checkpoint_v2(handle_, nullptr, mode, &frames, &moved);
  if (code != SQLITE_OK) return error(code, "checkpoint");
  if (moved < frames)
    return Error{ErrorKind::unavailable, seam_->path + ": checkpoint: a statement is still being read"};
  seam_->wal_end = 0;
  lazy_pending_ = false;
  return {};
}

std::uint64_t Database::wal_bytes() const {
  return seam_->wal_end;
}

Result<void> Database::check_integrity() {
  auto check = prepare("PRAGMA integrity_check(1)");
  if (!check.ok()) return check.error();
  const ResetAtEnd reset(*check);
  const auto row = check->step();
  if (!row.ok()) return row.error();
  if (*row && check->text(0) == "ok") return {};
  return damaged("integrity check");
}

Error Database::damaged(std::string_view what) {
  return error(SQLITE_CORRUPT, what);
}

}  // namespace holdfast
