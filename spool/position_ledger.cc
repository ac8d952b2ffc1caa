#include "spool/position_ledger.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace holdfast {

namespace {

constexpr std::size_t kRowBytes = 3900;      // a row that fills one page and does not overflow it
constexpr std::size_t kFullRowBytes = 2900;  // what comes after such a row begins a new one
constexpr std::size_t kLeastEntryBytes = 6;
constexpr std::uint64_t kTop = std::numeric_limits<std::int64_t>::max();  // of what SQLite can order

constexpr const char* kTables =
    "CREATE TABLE IF NOT EXISTS position_row(row INTEGER PRIMARY KEY, stream INTEGER NOT NULL, first INTEGER NOT NULL,"
    " last INTEGER NOT NULL, positions INTEGER NOT NULL, entries BLOB NOT NULL);"
    "CREATE UNIQUE INDEX IF NOT EXISTS position_row_first ON position_row(stream, first);"
    "CREATE TABLE IF NOT EXISTS position_stream(stream INTEGER PRIMARY KEY, greatest INTEGER NOT NULL,"
    " positions INTEGER NOT NULL, floors BLOB NOT NULL)";

bool before(const PositionEntry& a, const PositionEntry& b) {
  return std::tie(a.sequence, a.timestamp_ns) < std::tie(b.sequence, b.timestamp_ns);
}
bool same(const PositionEntry& a, const PositionEntry& b) {
  return !before(a, b) && !before(b, a);
}

void put_varint(std::uint64_t value, Bytes& out) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<std::uint8_t>(value | 0x80));
  out.push_back(static_cast<std::uint8_t>(value));
}

// Nothing when it does not end within the bytes.
std::optional<std::uint64_t> take_varint(ByteView& in) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < in.size() && i < 10; ++i) {
    value |= std::uint64_t{in[i] & 0x7FU} << (7 * i);
    if (in[i] >= 0x80) continue;
    in = in.subspan(i + 1);
    return value;
  }
  return std::nullopt;
}

// Steps are taken modulo 2^64, so that none overflows.
std::uint64_t zigzag(std::uint64_t step) {
  return (step << 1) ^ (std::uint64_t{0} - (step >> 63));
}
std::uint64_t unzigzag(std::uint64_t value) {
  return (value >> 1) ^ (std::uint64_t{0} - (value & 1));
}

void put_entry(const PositionEntry& before, const PositionEntry& entry, Bytes& out) {
  put_varint(entry.sequence - before.sequence, out);
  put_varint(zigzag(static_cast<std::uint64_t>(entry.timestamp_ns) - static_cast<std::uint64_t>(before.timestamp_ns)),
             out);
  out.insert(out.end(), entry.content.begin(), entry.content.end());
}

}  // namespace

Bytes encode_positions(std::span<const PositionEntry> entries) {
  Bytes out;
  PositionEntry previous{entries.empty() ? 0 : entries.front().sequence, 0, {}};
  for (const PositionEntry& entry : entries) {
    put_entry(previous, entry, out);
    previous = entry;
  }
  return out;
}

std::optional<std::vector<PositionEntry>> decode_positions(std::uint64_t first_sequence, ByteView bytes) {
  std::vector<PositionEntry> entries;
  entries.reserve(bytes.size() / kLeastEntryBytes + 1);
  PositionEntry entry{first_sequence, 0, {}};
  while (!bytes.empty()) {
    const auto step = take_varint(bytes);
    const auto time_step = take_varint(bytes);
    if (!step || !time_step || bytes.size() < entry.content.size()) return std::nullopt;
    entry.sequence += *step;
    entry.timestamp_ns =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(entry.timestamp_ns) + unzigzag(*time_step));
    std::copy_n(bytes.begin(), entry.content.size(), entry.content.begin());
    bytes = bytes.subspan(entry.content.size());
    entries.push_back(entry);
  }
  if (entries.empty() || entries.front().sequence != first_sequence) return std::nullopt;
  return entries;
}

Result<std::unique_ptr<PositionLedger>> PositionLedger::open(Database& database) {
  HOLDFAST_TRY(database.execute(kTables));
  std::unique_ptr<PositionLedger> ledger(new PositionLedger(database));
  HOLDFAST_TRY(ledger->prepare());
  HOLDFAST_TRY(ledger->load());
  return ledger;
}

Result<void> PositionLedger::prepare() {
  HOLDFAST_TRY(database_.prepare(at_or_below_,
                                 "SELECT row, first, last, entries FROM position_row WHERE stream = ? AND first <= ?"
                                 " ORDER BY first DESC LIMIT 1"));
  HOLDFAST_TRY(database_.prepare(
      above_, "SELECT first FROM position_row WHERE stream = ? AND first > ? ORDER BY first LIMIT 1"));
  HOLDFAST_TRY(database_.prepare(
      insert_, "INSERT INTO position_row(stream, first, last, positions, entries) VALUES(?, ?, ?, ?, ?)"));
  HOLDFAST_TRY(database_.prepare(remove_, "DELETE FROM position_row WHERE row = ?"));
  HOLDFAST_TRY(database_.prepare(
      write_stream_, "INSERT OR REPLACE INTO position_stream(stream, greatest, positions, floors) VALUES(?, ?, ?, ?)"));
  return database_.prepare(
      below_, "SELECT row, positions FROM position_row WHERE stream = ? AND first < ? ORDER BY first LIMIT ?");
}

Result<void> PositionLedger::load() {
  Statement rows;
  HOLDFAST_TRY(database_.prepare(rows, "SELECT stream, greatest, positions, floors FROM position_stream"));
  for (;;) {
    const auto row = rows.step();
    if (!row.ok()) return row.error();
    if (!*row) break;
    auto floors = FloorHistory::decode(rows.blob(3));
    if (!floors) return database_.damaged("the floors of a stream");
    streams_[rows.u64(0)] = {rows.u64(1), rows.u64(2), *std::move(floors)};
  }
  keep();
  return {};
}

Result<std::optional<PositionLedger::Row>> PositionLedger::row_at(std::uint64_t stream_tag, std::uint64_t sequence) {
  at_or_below_.bind(1, stream_tag).bind(2, std::min(sequence, kTop));
  const ResetAtEnd reset(at_or_below_);
  const auto found = at_or_below_.step();
  if (!found.ok()) return found.error();
  if (!*found) return std::optional<Row>{};
  const ByteView blob = at_or_below_.blob(3);
  auto entries = decode_positions(at_or_below_.u64(1), blob);
  if (!entries) return database_.damaged("a row of positions");
  return std::optional(Row{at_or_below_.u64(0), at_or_below_.u64(2), *std::move(entries), blob.size()});
}

Result<std::uint64_t> PositionLedger::first_above(std::uint64_t stream_tag, std::uint64_t sequence) {
  above_.bind(1, stream_tag).bind(2, std::min(sequence, kTop));
  const ResetAtEnd reset(above_);
  const auto found = above_.step();
  if (!found.ok()) return found.error();
  return *found ? above_.u64(0) : std::numeric_limits<std::uint64_t>::max();
}

Result<void> PositionLedger::remember(std::uint64_t stream_tag, std::vector<PositionEntry> entries) {
  std::stable_sort(entries.begin(), entries.end(), before);
  entries.erase(std::unique(entries.begin(), entries.end(), same), entries.end());
  for (std::span<const PositionEntry> rest(entries); !rest.empty();) {
    const auto placed = place(stream_tag, rest);
    if (!placed.ok()) return placed.error();
    rest = rest.subspan(*placed);
  }
  if (entries.empty()) return {};
  Stream& stream = streams_[stream_tag];
  stream.greatest = std::max(stream.greatest, entries.back().sequence);
  return write_stream(stream_tag);
}

Result<void> PositionLedger::write_stream(std::uint64_t stream_tag) {
  const Stream& stream = streams_[stream_tag];
  write_stream_.bind(1, stream_tag).bind(2, stream.greatest).bind(3, stream.positions);
  const Bytes floors = stream.floors.encode();
  return write_stream_.bind(4, floors).run();
}

// Puts the first of the entries, and all that belong to the same row, into it. Returns how many.
Result<std::size_t> PositionLedger::place(std::uint64_t stream_tag, std::span<const PositionEntry> entries) {
  const std::uint64_t first = entries.front().sequence;
  const auto row = row_at(stream_tag, first);
  if (!row.ok()) return row.error();
  const auto bound = first_above(stream_tag, first);
  if (!bound.ok()) return bound.error();
  const auto end =
      std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.sequence >= *bound; });
  const auto mine = entries.first(static_cast<std::size_t>(end - entries.begin()));

  const bool begins_a_row = !*row || ((*row)->last < first && (*row)->bytes >= kFullRowBytes);
  if (begins_a_row) {
    HOLDFAST_TRY(write(stream_tag, mine));
    return mine.size();
  }
  const auto& known = (*row)->entries;
  std::vector<PositionEntry> merged;
  std::merge(known.begin(), known.end(), mine.begin(), mine.end(), std::back_inserter(merged), before);
  merged.erase(std::unique(merged.begin(), merged.end(), same), merged.end());  // of two that are one, the known stays
  if (merged.size() == known.size()) return mine.size();
  HOLDFAST_TRY(remove_.bind(1, (*row)->number).run());
  streams_[stream_tag].positions -= known.size();
  HOLDFAST_TRY(write(stream_tag, merged));
  return mine.size();
}

// As many rows as it takes; a cut is never between two entries of one sequence.
Result<void> PositionLedger::write(std::uint64_t stream_tag, std::span<const PositionEntry> entries) {
  while (!entries.empty()) {
    Bytes blob;
    PositionEntry previous{entries.front().sequence, 0, {}};
    std::size_t count = 0;
    for (; count < entries.size(); previous = entries[count++]) {
      if (blob.size() >= kRowBytes && entries[count].sequence != previous.sequence) break;
      put_entry(previous, entries[count], blob);
    }
    insert_.bind(1, stream_tag).bind(2, entries.front().sequence).bind(3, previous.sequence);
    HOLDFAST_TRY(insert_.bind(4, std::uint64_t{count}).bind(5, blob).run());
    streams_[stream_tag].positions += count;
    entries = entries.subspan(count);
  }
  return {};
}

bool PositionLedger::maybe_seen(const StreamPosition& position) const {
  const auto stream = streams_.find(position.stream_tag);
  return stream != streams_.end() && position.sequence <= stream->second.greatest;
}

Result<std::optional<PositionEntry>> PositionLedger::find(const StreamPosition& position) {
  if (!maybe_seen(position)) return std::optional<PositionEntry>{};
  const auto row = row_at(position.stream_tag, position.sequence);
  if (!row.ok()) return row.error();
  if (!*row) return std::optional<PositionEntry>{};
  const PositionEntry wanted{position.sequence, position.timestamp_ns, {}};
  const auto& entries = (*row)->entries;
  const auto at = std::lower_bound(entries.begin(), entries.end(), wanted, before);
  if (at == entries.end() || !same(*at, wanted)) return std::optional<PositionEntry>{};
  return std::optional(*at);
}

Result<std::vector<PositionEntry>> PositionLedger::last(std::uint64_t stream_tag, std::uint64_t at_or_below) {
  const auto row = row_at(stream_tag, at_or_below);
  if (!row.ok()) return row.error();
  if (!*row) return std::vector<PositionEntry>{};
  const auto& entries = (*row)->entries;
  const auto end =
      std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return e.sequence > at_or_below; });
  CHECK(end != entries.begin());  // the row begins at or below
  const std::uint64_t sequence = std::prev(end)->sequence;
  const auto begin = std::find_if(entries.begin(), end, [&](const auto& e) { return e.sequence == sequence; });
  return std::vector<PositionEntry>(begin, end);
}

Result<std::optional<std::uint64_t>> PositionLedger::first(std::uint64_t stream_tag) {
  above_.bind(1, stream_tag).bind(2, ~std::uint64_t{0});  // -1
  const ResetAtEnd reset(above_);
  const auto found = above_.step();
  if (!found.ok()) return found.error();
  return *found ? std::optional(above_.u64(0)) : std::nullopt;
}

Result<void> PositionLedger::note_floor(std::uint64_t stream_tag, std::uint64_t floor, Nanoseconds now,
                                        Nanoseconds window) {
  const auto stream = streams_.find(stream_tag);
  if (stream == streams_.end() || !stream->second.floors.note(floor, now, window)) return {};
  return write_stream(stream_tag);
}

std::uint64_t PositionLedger::forgettable_below(std::uint64_t stream_tag, Nanoseconds now, Nanoseconds window) const {
  const auto stream = streams_.find(stream_tag);
  return stream == streams_.end() ? 0 : stream->second.floors.aged(now, window);
}

// The last row that begins below the floor stays: it is what the stream is compared with when it has gone back (R59).
Result<bool> PositionLedger::forget_below(std::uint64_t stream_tag, std::uint64_t floor, std::size_t limit) {
  std::vector<std::uint64_t> old;
  std::uint64_t positions = 0;
  below_.bind(1, stream_tag).bind(2, std::min(floor, kTop)).bind(3, std::uint64_t{limit} + 1);
  {
    const ResetAtEnd reset(below_);
    std::uint64_t row = 0, positions_in_row = 0;
    for (bool first = true;; first = false) {
      const auto next = below_.step();
      if (!next.ok()) return next.error();
      if (!*next) break;
      if (!first) {
        old.push_back(row);
        positions += positions_in_row;
      }
      row = below_.u64(0);
      positions_in_row = below_.u64(1);
    }
  }
  if (old.empty()) return false;
  for (const std::uint64_t number : old) HOLDFAST_TRY(remove_.bind(1, number).run());
  streams_[stream_tag].positions -= positions;
  HOLDFAST_TRY(write_stream(stream_tag));
  return old.size() == limit;
}

std::uint64_t PositionLedger::positions(std::uint64_t stream_tag) const {
  const auto stream = streams_.find(stream_tag);
  return stream == streams_.end() ? 0 : stream->second.positions;
}

}  // namespace holdfast
