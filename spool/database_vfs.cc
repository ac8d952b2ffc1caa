// The calls that SQLite makes on files and names, handed to the FileSystem.
#include "spool/database_vfs.h"

#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "spool/path.h"

namespace holdfast {
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
  OpenFile& self = opened(base);
  if (self.seam->wal == self.file) self.seam->wal = nullptr;
  delete std::exchange(self.file, nullptr);
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
    self.seam->transaction_begin = std::min(self.seam->transaction_begin.value_or(start), start);
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
  if (self.file->role() == DatabaseRole::wal) seam.wal = self.file;
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

}  // namespace

SqliteSeam::SqliteSeam(FileSystem& file_system, std::string database_path)
    : fs(file_system), path(std::move(database_path)), methods(std::make_unique<sqlite3_vfs>()) {
  static std::atomic<unsigned> count{0};
  name = "holdfast-" + std::to_string(count.fetch_add(1));
  sqlite3_vfs& calls = *methods;
  calls.iVersion = 1;
  calls.szOsFile = sizeof(OpenFile);
  calls.mxPathname = kLongestPath;
  calls.zName = name.c_str();
  calls.pAppData = this;
  calls.xOpen = vfs_open;
  calls.xDelete = vfs_delete;
  calls.xAccess = vfs_access;
  calls.xFullPathname = vfs_full_path;
  calls.xRandomness = vfs_randomness;
  calls.xSleep = vfs_sleep;
  calls.xCurrentTime = vfs_time;
  calls.xGetLastError = vfs_last_error;
  CHECK(sqlite3_vfs_register(&calls, 0) == SQLITE_OK);
}

SqliteSeam::~SqliteSeam() {
  sqlite3_vfs_unregister(methods.get());
}

int SqliteSeam::fail(int code, const Error& error) {
  said = error;
  if (error.kind == ErrorKind::io) broken = true;
  if (error.kind == ErrorKind::corrupt) return SQLITE_CORRUPT;
  return error.kind == ErrorKind::full ? SQLITE_FULL : code;
}

Result<void> SqliteSeam::forget_transaction() {
  if (wal == nullptr || !transaction_begin) return {};
  HOLDFAST_TRY(wal->cut(*transaction_begin));
  wal_end = *transaction_begin;
  return wal->sync();
}

}  // namespace holdfast
