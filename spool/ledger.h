// The ledger: remembers identities after the journal segment that committed them is gone, so that a redelivery is
// recognised. It only answers whether an arriving identity was seen; it never decides that a record has left.
//
// Two kinds of memory: positions in a stream, packed one row a run of neighbours (8 to 12 bytes each, kept for as long
// as the stream could redeliver them, and a window beyond), and ids, in sorted runs with a filter in memory (16 bytes
// on disk, about 2 in memory, kept for the window). A fresh message is told apart without touching the disk.
//
// Every record's position is remembered, whatever names it: where it is not the identity, it is a witness of what the
// stream was (how a source finds out that its stream went back).
//
// Written only inside Index::apply, in its transaction. Threads: as Index.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "crypto/digest.h"
#include "spool/clock.h"
#include "spool/database.h"
#include "spool/floor_history.h"
#include "spool/identity.h"

namespace holdfast {

struct LedgerEntry {
  RecordId id;
  std::optional<StreamPosition> position;  // nothing: it could not be read
  bool positional = false;                 // the position is the identity; else the id is
  ContentDigest content;
};

// What is remembered of an identity: the first 4 bytes of its content digest.
struct Seen {
  std::array<std::uint8_t, 4> content{};
};

class Ledger {
 public:
  // Makes its tables when they are not there, and loads the filters.
  static Result<std::unique_ptr<Ledger>> open(Database& database);
  ~Ledger();

  // Inside a transaction of the caller's, whose end is told: keep() when it was committed, undo() when it was rolled
  // back. `now` is running time: monotonic time summed over lives. Idempotent: an entry remembered twice is one, with
  // the content and the age that it had first.
  Result<void> remember(std::span<const LedgerEntry> entries, Nanoseconds now);
  void keep();
  void undo();

  // False without touching the disk for nearly every fresh identity; may say true for one.
  bool maybe_seen(const RecordId& id, const std::optional<StreamPosition>& position) const;
  // Exact for positions. Of an id 12 bytes are kept: that some two of ten million share them has a chance of about
  // 2^-50, and then the contents differ, which makes the newcomer a conflict: kept, not dropped.
  Result<std::optional<Seen>> find(const RecordId& id, const std::optional<StreamPosition>& position);

  // Forgets ids older than `window`, and the oldest above `max_ids`; a bounded piece of work a call, in a transaction
  // of its own. True: there is more. Ids go in runs of at most 1,000,000 whose ages lie within a sixteenth of the
  // window: one is kept that much longer than it need be, never shorter, and the newest `max_ids` always. None goes for
  // its age that was remembered after `redeliverable_since`: its acknowledgement may not have reached the server.
  struct IdLimits {
    Nanoseconds window{0};
    std::uint64_t max_ids = 0;
    Nanoseconds redeliverable_since = Nanoseconds::max();  // running time
  };
  Result<bool> prune(Nanoseconds now, const IdLimits& limits);
  // What a source has just been told of its stream. Positions below `floor.gone` are forgotten when they have been gone
  // for a window; while the stream has more than `max_positions`, the oldest below `floor.acknowledged` go, too (and
  // are not recognised if they come again all the same). In rows of some hundreds, at most kPrunedRows a call, in a
  // transaction of its own: some are kept longer. True: there is more.
  struct PositionLimits {
    Nanoseconds window{0};
    std::uint64_t max_positions = 0;
  };
  Result<bool> prune_positions(std::uint64_t stream_tag, const PositionFloor& floor, Nanoseconds now,
                               const PositionLimits& limits);

  // The positions of the greatest sequence at or below one: several where a sequence was given again.
  Result<std::vector<StreamPosition>> last_positions(std::uint64_t stream_tag, std::uint64_t at_or_below);
  Result<std::optional<std::uint64_t>> first_sequence(std::uint64_t stream_tag);
  std::uint64_t positions(std::uint64_t stream_tag) const;
  std::uint64_t ids() const;
  std::size_t memory_bytes() const;  // of filters and fences: about 1.8 an id

 private:
  struct Parts;
  explicit Ledger(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

inline constexpr std::size_t kPrunedRows = 1024;

}  // namespace holdfast
