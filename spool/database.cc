#include "spool/database.h"

#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <utility>

#include "spool/database_file.h"
#include "spool/page_check.h"
#include "spool/path.h"
#include "spool/wal_renewal.h"

namespace holdfast {

// What SQLite has for a file system: the seam. One for each database, registered under a name of its own.
struct SqliteSeam {
  SqliteSeam(FileSystem& file_system, std::string database_path) : fs(file_system), path(std::move(database_path)) {}
  ~SqliteSeam() { sqlite3_vfs_unregister(&methods); }
  SqliteSeam(const SqliteSeam&) = delete;

  // Keeps what the seam said, for the error that SQLite will make of it.
  int fail(int code, const Error& error) {
    said = error;
    if (error.kind == ErrorKind::io) broken = true;
    if (error.kind == ErrorKind::corrupt) return SQLITE_CORRUPT;
    return error.kind == ErrorKind::full ? SQLITE_FULL : code;
  }

  FileSystem& fs;
  std::string path;
  std::string name;
  sqlite3_vfs methods{};
  std::optional<Error> said;
  bool broken = false;        // nothing goes to the disk any more
  std::uint64_t wal_end = 0;  // of what was written since the last checkpoint
  std::uint64_t wal_syncs = 0;
};

namespace {

constexpr int kSectorBytes = 4096;
constexpr int kLongestPath = 512;

// --- Files, as SQLite calls them

struct OpenFile {
  sqlite3_file base;
  SqliteSeam* seam;
  DatabaseFile* file;
};

OpenFile& opened(sqlite3_file* base) {
  return *reinterpret_cast<OpenFile*>(base);
}

int file_close(sqlite3_file* base) {
  delete std::exchange(opened(base).file, nullptr);
  return SQLITE_OK;
}

int file_read(sqlite3_file* base, void* out, int count, sqlite3_int64 offset) {
  const OpenFile& self = opened(base);
  if (self.seam->broken) return SQLITE_IOERR_READ;
  const std::span<std::uint8_t> bytes(static_cast<std::uint8_t*>(out), static_cast<std::size_t>(count));
  const auto got = self.file->read(static_cast<std::uint64_t>(offset), bytes);
  if (!got.ok()) return self.seam->fail(SQLITE_IOERR_READ, got.error());
  if (*got == bytes.size()) return SQLITE_OK;
  std::memset(bytes.data() + *got, 0, bytes.size() - *got);
  return SQLITE_IOERR_SHORT_READ;
}

int file_write(sqlite3_file* base, const void* from, int count, sqlite3_int64 offset) {
  const OpenFile& self = opened(base);
  if (self.seam->broken) return SQLITE_IOERR_WRITE;
  const ByteView bytes(static_cast<const std::uint8_t*>(from), static_cast<std::size_t>(count));
  const auto start = static_cast<std::uint64_t>(offset);
  const auto written = self.file->write(start, bytes);
  if (!written.ok()) return self.seam->fail(SQLITE_IOERR_WRITE, written.error());
  if (self.file->role() == DatabaseRole::wal) {
    self.seam->wal_end = std::max(start == 0 ? 0 : self.seam->wal_end, start + bytes.size());
  }
  return SQLITE_OK;
}

int file_truncate(sqlite3_file* base, sqlite3_int64 size) {
  const OpenFile& self = opened(base);
  if (self.seam->broken) return SQLITE_IOERR_TRUNCATE;
  const auto cut = self.file->cut(static_cast<std::uint64_t>(size));
  return cut.ok() ? SQLITE_OK : self.seam->fail(SQLITE_IOERR_TRUNCATE, cut.error());
}

int file_sync(sqlite3_file* base, int) {
  const OpenFile& self = opened(base);
  if (self.seam->broken) return SQLITE_IOERR_FSYNC;
  const auto synced = self.file->sync();
  if (!synced.ok()) return self.seam->fail(SQLITE_IOERR_FSYNC, synced.error());
  if (self.file->role() == DatabaseRole::wal) ++self.seam->wal_syncs;
  return SQLITE_OK;
}

int file_size(sqlite3_file* base, sqlite3_int64* out) {
  const OpenFile& self = opened(base);
  if (self.seam->broken) return SQLITE_IOERR_FSTAT;
  const auto size = self.file->size();
  if (!size.ok()) return self.seam->fail(SQLITE_IOERR_FSTAT, size.error());
  *out = static_cast<sqlite3_int64>(*size);
  return SQLITE_OK;
}

// The spool's own lock file keeps others out.
int file_lock(sqlite3_file*, int) {
  return SQLITE_OK;
}
int file_is_reserved(sqlite3_file*, int* out) {
  *out = 0;
  return SQLITE_OK;
}
int file_control(sqlite3_file*, int, void*) {
  return SQLITE_NOTFOUND;
}
int file_sector(sqlite3_file*) {
  return kSectorBytes;
}
// None. POWERSAFE_OVERWRITE above all is not claimed: flash tears the whole block that it is programming, so a block
// that was synced must not be written again by a later commit. Without it SQLite fills the block at the end of a
// durable commit with one more frame (4120 bytes, about 5% of a flush of 4096 records).
int file_characteristics(sqlite3_file*) {
  return 0;
}

const sqlite3_io_methods kFileMethods = [] {
  sqlite3_io_methods methods{};
  methods.iVersion = 1;  // no shared memory, no mapping
  methods.xClose = file_close;
  methods.xRead = file_read;
  methods.xWrite = file_write;
  methods.xTruncate = file_truncate;
  methods.xSync = file_sync;
  methods.xFileSize = file_size;
  methods.xLock = file_lock;
  methods.xUnlock = file_lock;
  methods.xCheckReservedLock = file_is_reserved;
  methods.xFileControl = file_control;
  methods.xSectorSize = file_sector;
  methods.xDeviceCharacteristics = file_characteristics;
  return methods;
}();

// --- Names, as SQLite calls them

SqliteSeam& seam_of(sqlite3_vfs* vfs) {
  return *static_cast<SqliteSeam*>(vfs->pAppData);
}

DatabaseRole role_of(int flags) {
  if ((flags & SQLITE_OPEN_MAIN_DB) != 0) return DatabaseRole::pages;
  return (flags & SQLITE_OPEN_WAL) != 0 ? DatabaseRole::wal : DatabaseRole::journal;
}

int vfs_open(sqlite3_vfs* vfs, const char* name, sqlite3_file* base, int flags, int* out_flags) {
  SqliteSeam& seam = seam_of(vfs);
  OpenFile& self = opened(base);
  self = OpenFile{{nullptr}, &seam, nullptr};
  if (name == nullptr || seam.broken) return SQLITE_CANTOPEN;  // without a name: a temporary file, and there are none
  auto file = DatabaseFile::open(seam.fs, name, role_of(flags), (flags & SQLITE_OPEN_CREATE) != 0);
  if (!file.ok()) return seam.fail(SQLITE_CANTOPEN, file.error());
  self.file = std::move(*file).release();
  self.base.pMethods = &kFileMethods;
  if (out_flags != nullptr) *out_flags = flags;
  return SQLITE_OK;
}

int vfs_delete(sqlite3_vfs* vfs, const char* name, int sync_directory) {
  SqliteSeam& seam = seam_of(vfs);
  if (seam.broken) return SQLITE_IOERR_DELETE;
  const auto removed = seam.fs.remove(name);
  if (!removed.ok()) {
    const bool absent = removed.error().kind == ErrorKind::not_found;
    return absent ? SQLITE_IOERR_DELETE_NOENT : seam.fail(SQLITE_IOERR_DELETE, removed.error());
  }
  if (sync_directory == 0) return SQLITE_OK;
  const auto synced = seam.fs.sync_directory(parent_path(seam.path));
  return synced.ok() ? SQLITE_OK : seam.fail(SQLITE_IOERR_DIR_FSYNC, synced.error());
}

int vfs_access(sqlite3_vfs* vfs, const char* name, int, int* out) {
  SqliteSeam& seam = seam_of(vfs);
  if (seam.broken) return SQLITE_IOERR_ACCESS;
  const auto info = seam.fs.inspect(name);
  if (!info.ok() && info.error().kind != ErrorKind::not_found) return seam.fail(SQLITE_IOERR_ACCESS, info.error());
  *out = info.ok() && info->size > 0;  // an empty journal is none
  return SQLITE_OK;
}

int vfs_full_path(sqlite3_vfs*, const char* name, int size, char* out) {
  sqlite3_snprintf(size, out, "%s", name);
  return SQLITE_OK;
}

int vfs_randomness(sqlite3_vfs*, int count, char* out) {
  sqlite3_vfs* const machine = sqlite3_vfs_find(nullptr);
  return machine->xRandomness(machine, count, out);
}
int vfs_sleep(sqlite3_vfs*, int microseconds) {
  return microseconds;
}
int vfs_time(sqlite3_vfs*, double* out) {
  *out = 0;  // no statement of ours asks for the time
  return SQLITE_OK;
}
int vfs_last_error(sqlite3_vfs*, int, char*) {
  return 0;
}

void enlist(SqliteSeam& seam) {
  static std::atomic<unsigned> count{0};
  seam.name = "holdfast-" + std::to_string(count.fetch_add(1));
  sqlite3_vfs& methods = seam.methods;
  methods.iVersion = 1;
  methods.szOsFile = sizeof(OpenFile);
  methods.mxPathname = kLongestPath;
  methods.zName = seam.name.c_str();
  methods.pAppData = &seam;
  methods.xOpen = vfs_open;
  methods.xDelete = vfs_delete;
  methods.xAccess = vfs_access;
  methods.xFullPathname = vfs_full_path;
  methods.xRandomness = vfs_randomness;
  methods.xSleep = vfs_sleep;
  methods.xCurrentTime = vfs_time;
  methods.xGetLastError = vfs_last_error;
  CHECK(sqlite3_vfs_register(&methods, 0) == SQLITE_OK);
}

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
  enlist(*seam);
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
  return execute("BEGIN IMMEDIATE");
}

Result<void> Database::commit() {
  const std::uint64_t syncs_before = seam_->wal_syncs;
  auto committed = execute("COMMIT");
  if (!committed.ok()) {
    rollback();
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
