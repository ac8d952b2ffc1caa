// Why the intake must pause: limits that are reached, a disk that is full (INVARIANTS.md, I9).

#include <algorithm>

#include "spool/parts.h"

namespace holdfast {
namespace {

// Pressure is released only when this much of a limit is free again, so that the intake does not flutter.
constexpr double kRelease = 0.95;
// A commit that found no room tries again when so much has become free, or after a while: the journal frees itself
// without the disk.
constexpr std::uint64_t kSomeRoom = 1u << 20;
constexpr std::uint64_t kSomeInodes = 16;
constexpr Nanoseconds kTryForRoom = std::chrono::seconds(1);

}  // namespace

const char* pressure_text(PressureKind kind) {
  switch (kind) {
    case PressureKind::none:
      return "none";
    case PressureKind::max_bytes:
      return "spool.max_bytes is reached";
    case PressureKind::max_records:
      return "spool.max_records is reached";
    case PressureKind::disk_bytes:
      return "the disk has less than spool.min_free_bytes left";
    case PressureKind::disk_inodes:
      return "the disk has less than spool.min_free_inodes left";
    case PressureKind::disk_full:
      return "the disk has no room, or can only be read";
    case PressureKind::quarantine:
      return "spool.quarantine_max_bytes is reached";
  }
  return "unknown";
}

Result<void> Spool::Parts::update_pressure() {
  auto now = fs.space();
  if (!now) return now.error();
  std::uint64_t index_bytes = 0, file_records = 0;
  bool reserve_spent = false;
  {
    const std::lock_guard lock(index_mutex);
    index_bytes = index->file_bytes() + index->quarantine_bytes() + index->disk_bytes();
    file_records = index->records();
    reserve_spent = index->reserve_spent();
  }
  const std::lock_guard lock(state_mutex);
  space = *now;
  const SpoolLimits& limits = options.limits;
  const double slack = pressure.paused() ? kRelease : 1.0;
  const auto over = [&](std::uint64_t used, std::uint64_t limit) {
    return static_cast<double>(used) >= static_cast<double>(limit) * slack;
  };
  const auto under = [&](double free, double least) { return free * slack < least; };
  const double inodes_least = limits.min_free_inodes_percent / 100.0 * static_cast<double>(space.total_inodes);
  pressure.kind = reserve_spent ? PressureKind::disk_bytes : PressureKind::none;
  if (still_no_room()) pressure.kind = PressureKind::disk_full;
  if (under(static_cast<double>(space.free_bytes), static_cast<double>(limits.min_free_bytes)))
    pressure.kind = PressureKind::disk_bytes;
  if (space.total_inodes != 0 && under(static_cast<double>(space.free_inodes), inodes_least))
    pressure.kind = PressureKind::disk_inodes;
  // What is in the journal only may have to go to files.
  if (over(index_bytes + leaving_bytes + journal_disk_bytes + journal_live_bytes, limits.max_bytes))
    pressure.kind = PressureKind::max_bytes;
  if (over(file_records + journal_live, limits.max_records)) pressure.kind = PressureKind::max_records;
  return {};
}

void Spool::Parts::note_no_room() {
  const std::lock_guard lock(state_mutex);
  no_room = NoRoom{clock.monotonic(), space.free_bytes, space.free_inodes};
  pressure.kind = PressureKind::disk_full;
}

bool Spool::Parts::still_no_room() {
  if (!no_room) return false;
  const bool freed =
      space.free_bytes >= no_room->free_bytes + kSomeRoom || space.free_inodes >= no_room->free_inodes + kSomeInodes;
  if (freed || clock.monotonic() - no_room->found >= kTryForRoom) no_room.reset();
  if (!no_room) return false;
  no_room->free_bytes = std::min(no_room->free_bytes, space.free_bytes);
  no_room->free_inodes = std::min(no_room->free_inodes, space.free_inodes);
  return true;
}

Pressure Spool::pressure() const {
  const std::lock_guard lock(parts_->state_mutex);
  return parts_->pressure;
}

}  // namespace holdfast
