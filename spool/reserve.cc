#include "spool/reserve.h"

#include "spool/path.h"

namespace holdfast {

namespace {
constexpr std::uint64_t kPieceBytes = 256 << 10;
constexpr std::uint64_t kRoomFactor = 4;
}  // namespace

Result<bool> Reserve::whole() {
  const auto info = fs_.inspect(path_);
  if (info.ok()) return info->size == kReserveBytes && info->allocated >= kReserveBytes;
  if (info.error().kind == ErrorKind::not_found) return false;
  return info.error();
}

Result<void> Reserve::make() {
  const auto there = whole();
  if (!there.ok()) return there.error();
  if (*there) {
    spent_ = false;
    return {};
  }
  const auto space = fs_.space();
  if (!space.ok()) return space.error();
  if (space->free_bytes <= kRoomFactor * kReserveBytes) return {};
  auto written = write();
  if (written.ok()) spent_ = false;
  if (written.ok() || written.error().kind != ErrorKind::full) return written;
  const auto gone = give_back();
  return gone.ok() ? Result<void>{} : gone.error();
}

// Written, not merely promised (fallocate): blocks of which the file system knows that they were never written may cost
// more to write.
Result<void> Reserve::write() {
  const auto file = fs_.open(path_, OpenMode::create);
  if (!file.ok()) return file.error();
  const Bytes zeros(kPieceBytes);
  for (std::uint64_t offset = 0; offset < kReserveBytes; offset += kPieceBytes) {
    HOLDFAST_TRY((*file)->write_at(offset, zeros));
  }
  HOLDFAST_TRY((*file)->sync());
  return fs_.sync_directory(parent_path(path_));
}

Result<bool> Reserve::give_back() {
  const auto removed = fs_.remove(path_);
  if (removed.ok()) {
    spent_ = true;
    return true;
  }
  if (removed.error().kind == ErrorKind::not_found) return false;
  return removed.error();
}

}  // namespace holdfast
