// How a spool is to be kept: its limits, how it syncs, how much it works side by side. Values; whoever opens the spool
// decides them, and they hold for that life.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "spool/clock.h"

namespace holdfast {

struct SpoolLimits {
  std::uint64_t max_bytes = 10ull << 30;  // everything of ours on the disk, as allocated
  std::uint64_t max_records = 10'000'000;
  std::uint64_t min_free_bytes = 256ull << 20;
  double min_free_inodes_percent = 1.0;
  std::uint64_t quarantine_max_bytes = 1ull << 30;
  std::uint64_t max_record_bytes = 64ull << 20;  // payload and headers of one message
};

enum class SyncMode : std::uint8_t { automatic, files };

// As many as there are processors for this process beside one; three at most.
unsigned helpers_of_this_machine();
inline constexpr unsigned kRemovers = 3;

struct SpoolOptions {
  std::string site;
  SpoolLimits limits;
  Nanoseconds linger = std::chrono::seconds(1);  // 0: every record is in its own file before its verdict
  std::uint64_t journal_bytes = 64ull << 20;     // four segments
  SyncMode sync = SyncMode::automatic;
  bool allow_unsafe_fs = false;
  std::uint64_t data_key_bytes = 64ull << 30;  // sealed with one data key before another is made
  Nanoseconds ledger_window = std::chrono::hours(24 * 7);
  std::uint64_t ledger_max = 10'000'000;
  // One for each source: until all of a stream's have noted it (note_stream), nothing of it is forgotten.
  std::vector<std::string> source_streams;
  // Threads that share the work: of sealing and opening, and of removing files, which may wait for the device and not
  // for the processor. Without any the order of calls is fixed.
  unsigned helpers = 0, removers = 0;
};

}  // namespace holdfast
