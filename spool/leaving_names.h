// Names of what has left: record files whose tombstones are on the medium, and quarantine files. They are removed in
// steps; what cannot go now goes later, and what a life does not come to is the next one's.
//
// A name that comes back after a power cut meets its tombstone, which goes only after a sync has covered the unlink
// (R26). Threads: one at a time; files() and bytes(): any. Errors: `io`, and nothing else.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "spool/crew.h"
#include "spool/expected_names.h"
#include "spool/file_lot.h"

namespace holdfast {

inline constexpr std::size_t kUnlinksBeforeSync = 4096;
inline constexpr std::size_t kUnlinkBacklog = 65536;  // above, targets wait for names to go

// A file whose record has left.
struct LeavingFile {
  RecordId id;
  Sequence sequence = 0;
  std::uint64_t bytes = 0;  // on the medium, and in no row any more
  bool expected = false;    // its directory counts it still
};

class LeavingNames {
 public:
  LeavingNames(RecordFiles& files, FileLot& lot, Crew& removers, ExpectedNames& expected)
      : files_(files), lot_(lot), removers_(removers), expected_(expected) {}

  // To be made when its row goes. Of `size` bytes: counted until it is removed; 0: removed at once.
  LeavingFile file(const RecordId& id, Sequence sequence, std::uint64_t size) const {
    return {id, sequence, allocated(size), expected_.counts(sequence)};
  }

  Result<void> remove(std::span<const LeavingFile> left);
  void remove_later(const std::vector<LeavingFile>& left);
  // A step of what waits. True: there is more, and what was tried could go.
  Result<bool> remove_some();
  // Of an identity that is in custody again. True: it waited, and could go.
  Result<bool> remove_waiting(const RecordId& id);

  using Quarantined = std::pair<RecordId, Sequence>;
  Result<void> remove_quarantined(const std::vector<Quarantined>& left);
  Result<void> remove_waiting_quarantined() { return remove_quarantined(std::exchange(waiting_quarantined_, {})); }
  std::size_t waiting_quarantined() const { return waiting_quarantined_.size(); }

  // Removed, and no sync has covered it yet.
  const std::vector<Sequence>& unsynced() const { return unsynced_; }
  void synced() { unsynced_.clear(); }

  // That have left the index and not the disk.
  std::uint64_t files() const { return counted_files_; }
  std::uint64_t bytes() const { return counted_bytes_; }

 private:
  RecordFiles& files_;
  FileLot& lot_;
  Crew& removers_;
  ExpectedNames& expected_;
  std::deque<LeavingFile> waiting_;
  std::vector<Quarantined> waiting_quarantined_;
  std::vector<Sequence> unsynced_;
  std::atomic<std::uint64_t> counted_files_{0}, counted_bytes_{0};
};

}  // namespace holdfast
