// The index: which records lie in files, what is due where, what was counted. Rebuildable from the record files: losing
// it costs duplicates, never a record (I8).
//
// A change is a value, and one transaction. Reads see every applied change. What a power cut leaves is the state after
// some change, and after every durable one; database.h says what remains possible where the medium lied: an older
// state, or damage. Either costs duplicates: files and journal say what is in custody, the ledger only what was seen.
//
// `corrupt`, from any call: the index has been damaged. It has been renamed to index.bad at once (best effort: a power
// cut that undoes the rename leaves the damage to be found again), nothing works any more, this life ends, and the next
// makes a new one. `io` ends this life and sets nothing aside. `full`: nothing changed.
//
// Threads: one at a time; the spool holds the lock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "crypto/digest.h"
#include "spool/database.h"
#include "spool/ledger.h"
#include "spool/manifest.h"
#include "spool/priority.h"
#include "spool/reason.h"

namespace holdfast {

using Sequence = std::uint64_t;

// A record in a file.
struct IndexedRecord {
  Sequence sequence = 0;
  RecordId id;
  RouteNumber route{};
  Priority priority = 0;
  std::uint64_t size = 0;  // of its file
  std::int64_t accepted_wall_ns = 0;
  std::vector<TargetNumber> waiting;  // targets that do not have it yet
};

struct QuarantinedRecord {
  Sequence sequence = 0;
  RecordId id;
  Reason reason = Reason::none;
  TargetNumber target{};  // who rejected it, 0 for none
  RouteNumber route{};
  Priority priority = 0;
  std::uint64_t size = 0;
  std::int64_t accepted_wall_ns = 0;
};

// The accounting (I3): taken = delivered + in custody + quarantined + expired + discarded + lost. What is in custody or
// quarantined is counted by looking; these are the sums that cannot be looked at.
struct Totals {
  std::uint64_t taken = 0;  // committed by segments that are retired, or found without one
  std::uint64_t delivered = 0;
  std::uint64_t discarded = 0;
  std::uint64_t expired = 0;
  std::uint64_t lost = 0;
  bool operator==(const Totals&) const = default;
};

// Applied in the order of its fields; what it names and is not there is passed over.
struct IndexChange {
  // Replaces what was known under the same sequence, a tombstone included.
  std::vector<IndexedRecord> filed{};
  std::vector<std::pair<TargetNumber, Sequence>> settled{};  // no longer waits for that target
  std::vector<Sequence> left{};                              // record and what it waits for are gone; a tombstone stays
  std::vector<Sequence> entombed{};  // the same for a sequence that never had a row: its tombstone has no id
  std::vector<Sequence> unlinked{};  // tombstones whose unlink is on the medium
  std::optional<Sequence> forget_tombstones_below{};  // only those that `unlinked` has named
  std::vector<QuarantinedRecord> set_aside{};         // beside what the record tables say: `left` is said apart
  std::vector<std::pair<RecordId, Sequence>> quarantine_dropped{};
  Totals add{};  // added to the totals
  std::vector<LedgerEntry> remember{};
  std::optional<std::uint64_t> retired_base{};  // segments up to this base are applied and counted; never goes back
  Nanoseconds running_time{0};                  // now, for the ledger's age; never goes back
};

struct DueRow {
  Sequence sequence = 0;
  RecordId id;
  std::uint64_t size = 0;  // of the frame
};

struct WaitingCount {
  TargetNumber target{};
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
};

class Index {
 public:
  // Opens or makes `index.sqlite3`. One that is damaged, cut, another spool's or of another version is set aside as
  // index.bad with its WAL as index.bad-wal (replacing older ones), and a new one is made: rebuilt() then says so.
  // `era` of a new one is the name given.
  static Result<std::unique_ptr<Index>> open(FileSystem& fs, const std::array<std::uint8_t, 16>& spool_uuid,
                                             const std::string& era);
  ~Index();

  bool rebuilt() const;  // made anew in this life
  const std::string& era() const;
  const Totals& totals() const;
  std::uint64_t retired_base() const;
  Nanoseconds running_time() const;  // as of the last applied change
  std::uint64_t records() const;     // rows of records in files
  std::uint64_t file_bytes() const;  // allocated by them: sizes rounded up to 4 KiB
  std::uint64_t quarantined() const;
  std::uint64_t quarantine_bytes() const;  // likewise
  std::uint64_t disk_bytes() const;        // of the index itself: WAL, reserve and one that was set aside included
  // In the order of targets; those that nothing waits for are not named.
  const std::vector<WaitingCount>& waiting() const;

  // All of it or nothing. `full`: there is no room, and for a change that files nothing the reserve was given back and
  // there is still none; nothing changed.
  Result<void> apply(const IndexChange& change, Durability durability);
  bool reserve_spent() const;  // nothing may be taken in until it is there again
  // Makes the reserve when it is not there and there is room (not open(): starting is quick). Checkpoints when the WAL
  // is above 4 MiB (apply() does above 16 MiB). `full` hurts nobody: the WAL stays until there is room.
  Result<void> tidy();

  // Records in files that wait for the target, of one priority, above `after`, in order.
  Result<std::vector<DueRow>> due(TargetNumber target, Priority priority, Sequence after, std::size_t limit);
  Result<std::optional<IndexedRecord>> find(Sequence sequence);
  // The next records above `after`, in order.
  Result<std::vector<IndexedRecord>> list(Sequence after, std::size_t limit);
  // All those of one sequence come together, even above the limit.
  Result<std::vector<QuarantinedRecord>> list_quarantine(Sequence after, std::size_t limit);
  Result<bool> is_tombstone(Sequence sequence);
  // Tombstones whose file may still be there, lowest first. All zeros for an id: the record never had a row.
  Result<std::vector<std::pair<Sequence, RecordId>>> tombstones_to_unlink(Sequence after, std::size_t limit);
  // Of all that is known here: records, quarantine, tombstones.
  Result<Sequence> highest_sequence();
  // When the oldest record that waits for the target was accepted, by the wall clock.
  Result<std::optional<std::int64_t>> oldest_waiting(TargetNumber target);

  Ledger& ledger();
  Result<void> close();  // checkpoint; nothing may be called after it

 private:
  struct Parts;
  explicit Index(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace holdfast
