// What waits for a target, in order, from the journal and from files.

#include <fmt/format.h>

#include <algorithm>

#include "spool/parts.h"

namespace holdfast {
namespace {

constexpr std::size_t kReadTogether = 16;          // records: what a helper of the crew takes at once
constexpr std::uint32_t kReadAtOnce = 256u << 10;  // bytes of the journal

struct DuePlace {
  Sequence sequence = 0;
  RecordId id;
  Priority priority = 0;
  std::uint64_t size = 0;         // of the frame
  std::optional<FrameSpot> spot;  // while the journal has its frame; else in a file alone
  bool surely_unsent = false;
  bool filed = false;
};

struct DueFrame {
  Result<void> read;  // only `unavailable` and `io` are failures
  std::size_t size = 0;
  std::variant<OpenedBody, Reason> opened = Reason::damaged;
};

struct Buffers {
  Bytes run, file, plain;
};

// The journal first: a record that is flushed between the two looks is then seen twice, not missed. state_mutex held.
void add_journalled(Spool::Parts& parts, TargetNumber target, const DueCursor& cursor, std::size_t limit,
                    std::vector<DuePlace>& places) {
  JournalCustody& custody = parts.custody;
  // Most of a long backlog has its frames in the journal still, and is read from files.
  if (custody.target(target).journal_records == 0) return;
  for (Priority priority = 0; priority < kPriorities; ++priority) {
    std::size_t found = 0;
    custody.records().for_each_above(priority, cursor.after[priority], [&](const JournalRecord& record) {
      const TargetBits bit = bit_of(custody.route(record.route), target);
      if (record.place != Place::journal || (record.waiting & bit) == 0) return true;
      if (parts.unwritten.hides(record.sequence, target)) return true;
      const bool unsent = record.this_life && (record.handed_out & bit) == 0;
      places.push_back({record.sequence, record.id, priority, record.spot.size, record.spot, unsent, false});
      return ++found < limit;
    });
  }
}

// What is hidden counts for nothing: a page of it, and later records of the journal behind it, would carry the cursor
// past the rows in between. Likewise what was taken at or after `horizon`. index_mutex held.
Result<void> add_filed(Spool::Parts& parts, TargetNumber target, const DueCursor& cursor, Sequence horizon,
                       std::size_t limit, std::vector<DuePlace>& places) {
  const auto& counts = parts.index->waiting();
  const bool any = std::ranges::any_of(
      counts, [&](const WaitingCount& count) { return count.target == target && count.records > 0; });
  for (Priority priority = 0; any && priority < kPriorities; ++priority) {
    std::size_t found = 0;
    for (Sequence after = cursor.after[priority]; found < limit;) {
      auto rows = parts.index->due(target, priority, after, limit);
      if (!rows) return rows.error();
      const std::lock_guard state_lock(parts.state_mutex);
      for (const DueRow& row : *rows) {
        after = row.sequence;
        if (row.sequence >= horizon || parts.unwritten.hides(row.sequence, target)) continue;
        // While its segment is there, one read of the journal is cheaper than opening a file.
        const JournalRecord* record = parts.custody.records().find(row.sequence);
        const auto spot = record == nullptr ? std::nullopt : std::optional(record->spot);
        places.push_back({row.sequence, row.id, priority, row.size, spot, false, true});
        ++found;
      }
      if (rows->size() < limit) break;
    }
  }
  return {};
}

// The places of the next records: both the journal's and the files', merged. Nothing is read from the records
// themselves.
Result<std::vector<DuePlace>> due_places(Spool::Parts& parts, TargetNumber target, Drain drain, const DueCursor& cursor,
                                         std::size_t limit) {
  std::vector<DuePlace> places;
  // What is taken after this moment waits for the next look: a file that is committed between the two would carry the
  // cursor past a record of the journal before it.
  const Sequence horizon = parts.next_sequence;
  {
    const std::lock_guard lock(parts.state_mutex);
    add_journalled(parts, target, cursor, limit, places);
  }
  {
    const std::lock_guard lock(parts.index_mutex);
    HOLDFAST_TRY(add_filed(parts, target, cursor, horizon, limit, places));
  }
  std::ranges::sort(places, [&](const DuePlace& a, const DuePlace& b) {
    if (drain == Drain::priority && a.priority != b.priority) return a.priority < b.priority;
    return a.sequence < b.sequence;
  });
  // Not std::ranges::unique, whose subrange clang 14 cannot read with this library.
  const auto same = [](const DuePlace& a, const DuePlace& b) { return a.sequence == b.sequence; };
  places.erase(std::unique(places.begin(), places.end(), same), places.end());
  if (places.size() > limit) places.resize(limit);
  return places;
}

// Only as many as there is room for, and one whatever its size.
void keep_within(std::size_t max_bytes, std::vector<DuePlace>& places) {
  std::size_t count = 0;
  for (std::uint64_t bytes = 0; count < places.size(); ++count) {
    bytes += places[count].size;
    if (count > 0 && bytes > max_bytes) break;
  }
  places.resize(count);
}

// How many, from the first on, one read of the journal can bring: neighbours in one segment, in its order.
std::size_t neighbours(std::span<const DuePlace> places) {
  const auto& first = places.front().spot;
  std::size_t count = 1;
  for (; first && count < places.size(); ++count) {
    const auto& before = places[count - 1].spot;
    const auto& spot = places[count].spot;
    if (!spot || spot->segment != first->segment || spot->offset < before->offset + before->size) break;
    if (spot->offset + spot->size - first->offset > kReadAtOnce) break;
  }
  return count;
}

void open_neighbours(Spool::Parts& parts, std::span<const DuePlace> places, std::span<DueFrame> frames,
                     Buffers& buffers) {
  const auto& first = places.front().spot;
  const auto& last = places.back().spot;
  Result<void> together;
  buffers.run.clear();
  if (first)
    together =
        parts.journal->read({first->segment, first->offset, last->offset + last->size - first->offset}, buffers.run);
  for (std::size_t i = 0; i < places.size(); ++i) {
    Result<void> read = together;
    ByteView frame;
    if (const auto& spot = places[i].spot; spot && read)
      frame = ByteView(buffers.run).subspan(spot->offset - first->offset, spot->size);
    if (read ? !parts.frames->is_frame_of(frame, places[i].sequence) : places[i].filed) {
      read = parts.files->read(places[i].id, buffers.file);
      frame = buffers.file;
    }
    if (!read && (read.error().kind == ErrorKind::unavailable || read.error().kind == ErrorKind::io))
      frames[i].read = read;
    if (!read) continue;
    frames[i].size = frame.size();
    frames[i].opened = open_record(frame, *parts.keyring, buffers.plain);
  }
}

std::vector<DueFrame> open_frames(Spool::Parts& parts, std::span<const DuePlace> places) {
  std::vector<DueFrame> frames(places.size());
  parts.crew.share(places.size(), kReadTogether, [&](std::size_t first, std::size_t last) {
    Buffers buffers;
    for (std::size_t count = 0; first < last; first += count) {
      count = neighbours(places.subspan(first, last - first));
      open_neighbours(parts, places.subspan(first, count), std::span(frames).subspan(first, count), buffers);
    }
  });
  return frames;
}

}  // namespace

Result<std::vector<DueRecord>> Spool::due(TargetNumber target, Drain drain, DueCursor& cursor, std::size_t max_records,
                                          std::size_t max_bytes) {
  Parts& parts = *parts_;
  if (const auto error = parts.life.over()) return *error;
  {
    const std::lock_guard lock(parts.state_mutex);
    const std::uint64_t generation = parts.custody.target(target).generation;
    if (cursor.generation < generation) cursor = DueCursor{{}, generation};
  }
  auto places = due_places(parts, target, drain, cursor, max_records);
  if (!places) return parts.life.fail(places.error());
  keep_within(max_bytes, *places);
  auto frames = open_frames(parts, *places);
  std::vector<DueRecord> due;
  for (std::size_t i = 0; i < places->size(); ++i) {
    const DuePlace& place = (*places)[i];
    auto& [read, size, opened] = frames[i];
    if (!read && read.error().kind == ErrorKind::unavailable) {
      if (due.empty()) return read.error();
      break;
    }
    if (!read) return parts.life.fail(read.error());
    cursor.after[place.priority] = place.sequence;
    if (const Reason* bad = std::get_if<Reason>(&opened)) {
      // One record that cannot be opened is never in the way of the others (I6): housekeeping looks at it again, and
      // sets it aside.
      const std::lock_guard lock(parts.state_mutex);
      parts.unwritten.reject({place.sequence, place.id, TargetNumber{}, *bad, {}}, target);
      continue;
    }
    auto& [header, body] = std::get<OpenedBody>(opened);
    due.push_back({place.sequence, place.id, place.priority, std::move(body.key), std::move(body.envelope),
                   header.accepted_wall_ns, header.clock_trusted, place.surely_unsent, size});
  }
  const std::lock_guard lock(parts.state_mutex);
  for (const DueRecord& record : due) {
    JournalRecord* known = parts.custody.records().find(record.sequence);
    if (known != nullptr) known->handed_out |= bit_of(parts.custody.route(known->route), target);
  }
  return due;
}

}  // namespace holdfast
