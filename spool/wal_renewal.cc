#include "spool/wal_renewal.h"

#include "spool/path.h"

namespace holdfast {

namespace {

constexpr std::size_t kPieceBytes = 256 << 10;

Result<void> copy_bytes(File& from, File& to) {
  Bytes piece(kPieceBytes);
  for (std::uint64_t offset = 0;;) {
    const auto got = from.read_at(offset, piece);
    if (!got.ok()) return got.error();
    if (*got == 0) return {};
    HOLDFAST_TRY(to.write_at(offset, ByteView(piece).first(*got)));
    offset += *got;
  }
}

Result<void> copy_file(FileSystem& fs, const std::string& from_path, const std::string& to_path) {
  const auto from = fs.open(from_path, OpenMode::read);
  if (!from.ok()) return from.error();
  const auto to = fs.open(to_path, OpenMode::create_new);
  if (!to.ok()) return to.error();
  HOLDFAST_TRY(copy_bytes(**from, **to));
  return (*to)->sync();
}

}  // namespace

Result<void> renew_wal(FileSystem& fs, const std::string& database) {
  const std::string wal = database + "-wal";
  const std::string copy = database + "-wal-copy";
  const auto stale = fs.remove(copy);
  if (!stale.ok() && stale.error().kind != ErrorKind::not_found) return stale;
  const auto info = fs.inspect(wal);
  if (!info.ok() && info.error().kind != ErrorKind::not_found) return info.error();
  if (!info.ok() || info->size == 0) return {};
  HOLDFAST_TRY(copy_file(fs, wal, copy));
  HOLDFAST_TRY(fs.rename(copy, wal, Rename::replace));
  return fs.sync_directory(parent_path(database));
}

}  // namespace holdfast
