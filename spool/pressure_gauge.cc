#include "spool/pressure_gauge.h"

#include <algorithm>

namespace holdfast {
namespace {

// Pressure is released only when this much of a limit is free again, so that the intake does not flutter.
constexpr double kRelease = 0.95;
// A commit that found no room tries again when so much has become free, or after a while: the journal frees itself
// without the disk.
constexpr std::uint64_t kSomeRoom = 1u << 20;
constexpr std::uint64_t kSomeInodes = 16;
constexpr Nanoseconds kTryForRoom = std::chrono::seconds(1);
// A source that a full quarantine holds tries more often than this.
constexpr Nanoseconds kQuarantineHolds = std::chrono::seconds(2);

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

void PressureGauge::read(const SpaceInfo& space, const Used& used, Nanoseconds now) {
  space_ = space;
  const double slack = pressure_.paused() ? kRelease : 1.0;
  const auto over = [&](std::uint64_t what, std::uint64_t limit) {
    return static_cast<double>(what) >= static_cast<double>(limit) * slack;
  };
  const auto under = [&](double free, double least) { return free * slack < least; };
  const double inodes_least = limits_.min_free_inodes_percent / 100.0 * static_cast<double>(space.total_inodes);
  pressure_.kind = used.reserve_spent ? PressureKind::disk_bytes : PressureKind::none;
  if (still_no_room(now)) pressure_.kind = PressureKind::disk_full;
  if (under(static_cast<double>(space.free_bytes), static_cast<double>(limits_.min_free_bytes)))
    pressure_.kind = PressureKind::disk_bytes;
  if (space.total_inodes != 0 && under(static_cast<double>(space.free_inodes), inodes_least))
    pressure_.kind = PressureKind::disk_inodes;
  if (over(used.bytes, limits_.max_bytes)) pressure_.kind = PressureKind::max_bytes;
  if (over(used.records, limits_.max_records)) pressure_.kind = PressureKind::max_records;
}

void PressureGauge::note_no_room(Nanoseconds now) {
  no_room_ = NoRoom{now, space_.free_bytes, space_.free_inodes};
  pressure_.kind = PressureKind::disk_full;
}

bool PressureGauge::still_no_room(Nanoseconds now) {
  if (!no_room_) return false;
  const bool freed = space_.free_bytes >= no_room_->free_bytes + kSomeRoom ||
                     space_.free_inodes >= no_room_->free_inodes + kSomeInodes;
  if (freed || now - no_room_->found >= kTryForRoom) no_room_.reset();
  if (!no_room_) return false;
  no_room_->free_bytes = std::min(no_room_->free_bytes, space_.free_bytes);
  no_room_->free_inodes = std::min(no_room_->free_inodes, space_.free_inodes);
  return true;
}

Pressure PressureGauge::shown(Nanoseconds now) const {
  const bool holds = quarantine_full_ && now - *quarantine_full_ < kQuarantineHolds;
  return holds && !pressure_.paused() ? Pressure{PressureKind::quarantine} : pressure_;
}

}  // namespace holdfast
