// The part of the ledger that remembers positions in streams: rows of neighbours, packed (entries of 8 to 10 bytes),
// which do not overlap: a question reads one row, and none when the position lies above everything its stream had.
//
// An entry: varint of the step from the sequence before it, zigzag varint of the step of its timestamp, 4 bytes of
// content. Ordered by sequence, then timestamp. One sequence's entries are all in one row.
//
// Writes happen in the caller's transaction, whose end is told: keep() when it was committed, undo() when it was rolled
// back.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "crypto/bytes.h"
#include "spool/database.h"
#include "spool/floor_history.h"
#include "spool/identity.h"

namespace holdfast {

struct PositionEntry {
  std::uint64_t sequence = 0;
  std::int64_t timestamp_ns = 0;
  std::array<std::uint8_t, 4> content{};
  bool operator==(const PositionEntry&) const = default;
};

// What one row holds, its first sequence apart.
Bytes encode_positions(std::span<const PositionEntry> entries);
// Nothing when the bytes are not exactly one row's.
std::optional<std::vector<PositionEntry>> decode_positions(std::uint64_t first_sequence, ByteView bytes);

inline constexpr std::size_t kPositionsInRow = 650;  // at most

class PositionLedger {
 public:
  static Result<std::unique_ptr<PositionLedger>> open(Database& database);

  Result<void> remember(std::uint64_t stream_tag, std::vector<PositionEntry> entries);
  bool maybe_seen(const StreamPosition& position) const;
  Result<std::optional<PositionEntry>> find(const StreamPosition& position);
  // All of the greatest sequence at or below one. None: nothing is known there.
  Result<std::vector<PositionEntry>> last(std::uint64_t stream_tag, std::uint64_t at_or_below);
  // The least sequence that is remembered.
  Result<std::optional<std::uint64_t>> first(std::uint64_t stream_tag);

  // What lies below the floor could not be redelivered, as was told just now.
  Result<void> note_floor(std::uint64_t stream_tag, std::uint64_t floor, Nanoseconds now, Nanoseconds window);
  // Below what a stream's positions can be forgotten: the floor of a whole window. 0: nothing can.
  std::uint64_t forgettable_below(std::uint64_t stream_tag, Nanoseconds now, Nanoseconds window) const;
  // Forgets at most `limit` rows that lie below the floor as a whole, and never the last that begins there: of a stream
  // that was there something is always known. True: there may be more.
  Result<bool> forget_below(std::uint64_t stream_tag, std::uint64_t floor, std::size_t limit);

  std::uint64_t positions(std::uint64_t stream_tag) const;

  void keep() { kept_ = streams_; }
  void undo() { streams_ = kept_; }

 private:
  struct Stream {
    std::uint64_t greatest = 0;  // sequence that it ever had
    std::uint64_t positions = 0;
    FloorHistory floors;
  };
  struct Row {
    std::uint64_t number = 0;
    std::uint64_t last = 0;
    std::vector<PositionEntry> entries;
    std::size_t bytes = 0;
  };
  explicit PositionLedger(Database& database) : database_(database) {}
  Result<void> prepare();
  Result<void> load();
  Result<std::optional<Row>> row_at(std::uint64_t stream_tag, std::uint64_t sequence);
  Result<std::uint64_t> first_above(std::uint64_t stream_tag, std::uint64_t sequence);
  Result<std::size_t> place(std::uint64_t stream_tag, std::span<const PositionEntry> entries);
  Result<void> write(std::uint64_t stream_tag, std::span<const PositionEntry> entries);
  Result<void> write_stream(std::uint64_t stream_tag);

  Database& database_;
  Statement at_or_below_, above_, insert_, remove_, write_stream_, below_;
  std::map<std::uint64_t, Stream> streams_, kept_;
};

}  // namespace holdfast
