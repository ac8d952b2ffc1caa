// Why the intake must pause: limits that are reached, a disk that is full (INVARIANTS.md, I9). With hysteresis.
// Threads: the spool holds its state lock.
#pragma once

#include <cstdint>
#include <optional>

#include "spool/clock.h"
#include "spool/file_system.h"
#include "spool/spool_options.h"
#include "spool/spool_status.h"

namespace holdfast {

class PressureGauge {
 public:
  explicit PressureGauge(const SpoolLimits& limits) : limits_(limits) {}

  // What is ours. What is in the journal only may have to go to files, and is counted as if it were there.
  struct Used {
    std::uint64_t bytes = 0;
    std::uint64_t records = 0;
    bool reserve_spent = false;
  };
  void read(const SpaceInfo& space, const Used& used, Nanoseconds now);
  // A commit found none, though no limit was reached.
  void note_no_room(Nanoseconds now);
  // A commit found it so.
  void note_full_quarantine(Nanoseconds now) { quarantine_full_ = now; }

  Pressure pressure() const { return pressure_; }
  // For an operator: also what holds single sources.
  Pressure shown(Nanoseconds now) const;
  const SpaceInfo& space() const { return space_; }

 private:
  bool still_no_room(Nanoseconds now);

  struct NoRoom {
    Nanoseconds found{0};
    std::uint64_t free_bytes = 0, free_inodes = 0;  // the least since
  };
  const SpoolLimits limits_;
  Pressure pressure_;
  SpaceInfo space_;
  std::optional<NoRoom> no_room_;
  std::optional<Nanoseconds> quarantine_full_;  // the last time
};

}  // namespace holdfast
