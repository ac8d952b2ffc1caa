// What the spool tells of itself: values only, nothing secret (I7).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spool/clock.h"
#include "spool/index.h"

namespace holdfast {

enum class PressureKind : std::uint8_t { none, max_bytes, max_records, disk_bytes, disk_inodes, disk_full, quarantine };

struct Pressure {
  PressureKind kind = PressureKind::none;
  bool paused() const { return kind != PressureKind::none; }
};
const char* pressure_text(PressureKind kind);

struct TargetStatus {
  TargetNumber number{};
  std::string name;
  bool active = false;  // the configuration has it
  std::uint64_t waiting_records = 0;
  std::uint64_t waiting_bytes = 0;
  std::uint64_t delivered = 0;  // in this life, as are the next three
  std::uint64_t duplicates = 0;
  std::uint64_t duplicates_unexpected = 0;
  std::uint64_t rejected = 0;
  std::optional<std::int64_t> oldest_accepted_wall_ns;
};

// Verdicts since this life began.
struct VerdictCounts {
  std::uint64_t accepted = 0, refused = 0;
  std::uint64_t duplicate_in_batch = 0, duplicate_in_custody = 0, duplicate_in_ledger = 0;
  std::uint64_t conflicts = 0;
  bool operator==(const VerdictCounts&) const = default;
  std::uint64_t duplicates() const { return duplicate_in_batch + duplicate_in_custody + duplicate_in_ledger; }
};

struct SpoolStatus {
  std::string era;
  Totals totals;
  std::uint64_t in_custody = 0;
  std::uint64_t in_journal = 0;  // of those, not in files
  std::uint64_t in_files = 0;
  std::uint64_t quarantined = 0;
  std::uint64_t quarantine_bytes = 0;
  std::uint64_t disk_bytes = 0;  // everything of ours, as allocated
  std::uint64_t free_bytes = 0;
  std::uint64_t free_inodes = 0;
  std::uint64_t ignored_names = 0;  // names in our directories that are not ours
  std::uint64_t bad_done_frames = 0;
  Pressure pressure;
  VerdictCounts verdicts;
  std::vector<TargetStatus> targets;
  Nanoseconds slowest_sync{0};  // of the last minute
  bool slow_disk = false;       // a sync of the last minute took over 1 s
  bool reconciling = false;     // files and index are still being compared after the start
  bool unsafe_file_system = false;
  bool site_changed = false;  // the configuration names another site than the manifest
  std::uint32_t boot = 0;
  std::uint64_t next_sequence = 0;
  std::vector<std::string> notices;  // what recovery found and did, bounded
};

struct AuditReport {
  std::string era;
  std::uint64_t taken = 0, delivered = 0, in_custody = 0, quarantined = 0, expired = 0, discarded = 0, lost = 0;
  std::uint64_t files_without_row = 0, rows_without_file = 0;
  bool balanced() const {
    return taken == delivered + in_custody + quarantined + expired + discarded + lost && rows_without_file == 0;
  }
};

}  // namespace holdfast
