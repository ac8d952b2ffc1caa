// A directory as an archive: every record is one line (archive_line.h) of a file that is appended to and rotated. For
// whoever reads files from their beginning to their end, or follows them: a line that was synced never changes, and a
// file that is no longer the last one never grows.
//
//     <writer>-<n>.ndjson   the segments; the last one grows until it has rotate_bytes, has been open for rotate_after
//                           or has 65,536 records; the next window opens another, so one may be longer by a window
//     <writer>-<n>.keys     beside each that is closed: the keys of its records (archive_keys.h)
//
// A record is reported delivered after the window it was written in was synced, once, and the segment's name with it.
//
// What is promised of duplicates: a record of the spool is in the archive once, however often it is delivered: after a
// power cut at any point, after a failed sync, by any number of later processes, out of order, after the spool's index
// was lost. It is found by its key in the segment that is open, and in the keys of those closed segments whose spool
// sequences lie around its own, however old: so a new record costs no reading, and memory does not grow with the
// archive but by 32 bytes a segment. The same content is a duplicate; another under one key is rejected
// (exists_otherwise). What the promise ends at: a message that the spool takes in *anew* (its ledger has forgotten it,
// or it is another spool) under a sequence that no closed segment spans is another line. A segment may be moved away
// when it is closed; as long as its .keys stay, its records are known. Whoever removes those too has their records
// forgotten.
//
// A start costs reading the open segment once, whole, and the header of each .keys; a .keys that is missing or torn is
// made again from its segment. What a power cut leaves of the last window is cut off (archive_segment.h).
//
// rotate_after goes by the box's monotonic clock and begins anew with a process; an archive that gets nothing is not
// rotated until it does. No room: retry, `disk_full`, and what was written of the window before is kept. Directory and
// file are opened for each window, so that a medium can be changed between two; whatever is not as it was left is
// recovered. Two that write to one directory need two writers' names. Threads: as Target.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <unordered_map>

#include "forwarder/archive_keys.h"
#include "forwarder/file_target.h"

namespace holdfast {

struct ArchiveOptions {
  std::string writer = "holdfast";
  std::uint64_t rotate_bytes = 64u << 20;
  Nanoseconds rotate_after = std::chrono::hours(1);
  const Clock* clock = &system_clock();
};

// What is known of the archive between two windows.
struct ArchiveState {
  struct Hash {
    std::size_t operator()(const ArchiveDigest& digest) const { return load_le<std::size_t>(digest.data()); }
  };
  struct Open {
    std::uint64_t number = 0;
    std::uint64_t size = 0;
    Nanoseconds begun{0};
    Bytes last;  // its last bytes: whether it is the same file
    std::unordered_map<ArchiveDigest, ArchiveMark, Hash> marks;
  };
  std::optional<Open> open;
  std::map<std::uint64_t, ArchiveKeys> closed;
  std::uint64_t next_number = 1;
};

class ArchiveTarget : public Target {
 public:
  ArchiveTarget(OpenDirectory open, ArchiveOptions options) : open_(std::move(open)), options_(std::move(options)) {}

  Result<void> deliver(std::span<const Delivery> window, const Report& report) override;
  // Ends the delivery in progress, or the next one if there is none.
  void interrupt() override { interrupted_ = true; }

 private:
  const OpenDirectory open_;
  const ArchiveOptions options_;
  std::optional<ArchiveState> state_;  // nothing: to be recovered
  std::atomic<bool> interrupted_ = false;
};

}  // namespace holdfast
