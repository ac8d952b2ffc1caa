// The journal: a ring of append-only segments, and the point at which a record becomes durable.
//
// append() returns after one sync that covers the whole batch; an error `io` ends this life (I4). At most one batch is
// unsynced at any time, so after a power cut only the last batch of a segment can be torn.
//
// Segments are used in the order of their bases and given back in the same order. A segment that an earlier life wrote
// is read, never appended to again. Nothing is preallocated without being written: zeros are on the medium before a
// segment is first used, so a commit changes no metadata and meets no full disk.
//
// Threads: append, start_segment, make_segment, fits: one at a time. The others: any thread at any time; retire_oldest
// not of the segment that is appended to meanwhile. Who reads a frame of a segment that was reused meanwhile gets other
// bytes, and finds out by the sequence in the frame's header.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "crypto/frame.h"
#include "spool/batch.h"
#include "spool/file_system.h"

namespace holdfast {

// Where a frame lies.
struct FrameSpot {
  std::uint32_t segment = 0;  // its number, as in the file's name
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
};

struct JournalOptions {
  std::uint64_t segment_bytes = 16u << 20;
  std::uint32_t segments = 4;
};

// Bytes of the journal that should have been frames and are not.
struct JournalDamage {
  Bytes bytes;
  bool acknowledged = false;       // a valid later batch follows: what was here had been promised
  std::uint64_t puts_missing = 0;  // as far as the totals around it tell
};

// What recovery meets, in order. `bytes` starts at the frame and ends with its body.
struct JournalVisitor {
  std::function<Result<void>(std::uint64_t base)> segment_begins;
  std::function<Result<void>(const FrameHeader&, ByteView bytes, FrameSpot)> frame;
  std::function<Result<void>(const JournalDamage&)> damage;
};

class Journal {
 public:
  static Result<std::unique_ptr<Journal>> open(FileSystem& fs, const Namer& namer, const JournalOptions& options);
  ~Journal();

  // Syncs every segment and reads it from the medium, past the page cache: what an earlier life wrote is not known to
  // be there, and the cache shows what was written, not what is stored. Segments whose base is at or below
  // `retired_base` are free. Once, before anything else. Returns false when the file system refuses direct reads: every
  // live record must then be written again before it is believed.
  Result<bool> recover(std::uint64_t retired_base, const JournalVisitor& visitor);

  // Whether frames of so many bytes fit the active segment.
  bool fits(std::size_t frame_bytes) const;
  std::size_t largest_frame() const;  // what belongs in a journal: a quarter of a segment
  // A free segment is there, or may be made.
  bool can_start() const;
  // Makes the next segment file when none is free; `full` when there is no room for it. Nothing when one is free or the
  // ring is whole.
  Result<void> make_segment();
  // Takes a free segment into use, durably. `base` is above every sequence and base given so far.
  Result<void> start_segment(std::uint64_t base);

  // `batch` begins with kBatchHeaderSize bytes of room, then whole frames. Returns where the first frame lies.
  Result<FrameSpot> append(Bytes& batch, std::uint32_t frames, std::uint32_t puts);

  Result<void> read(FrameSpot spot, Bytes& out);

  // Oldest first. The last one is active if this life has started one.
  struct Segment {
    std::uint32_t number = 0;
    std::uint64_t base = 0;
  };
  std::vector<Segment> in_use() const;
  std::uint32_t free_segments() const;  // free or not made yet
  // The oldest segment is free from now on; the caller has made durable what it held.
  void retire_oldest();
  std::uint64_t disk_bytes() const;

 private:
  struct Parts;
  explicit Journal(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace holdfast
