// What waits for a target, in order, from the journal and from files.

#include <fmt/format.h>

#include <algorithm>

#include "spool/parts.h"

namespace holdfast {

// The places of the next records: both the journal's and the files', merged. Nothing is read from the records
// themselves.
Result<std::vector<Spool::Parts::DuePlace>> Spool::Parts::due_places(TargetNumber target, Drain drain,
                                                                     const DueCursor& cursor, std::size_t limit) {
  std::vector<DuePlace> places;
  // The journal first: a record that is flushed between the two looks is then seen twice, not missed. What is taken
  // after this moment waits for the next look: a file that is committed between the two would carry the cursor past a
  // record of the journal before it.
  const Sequence horizon = next_sequence;
  {
    const std::lock_guard lock(state_mutex);
    // Most of a long backlog has its frames in the journal still, and is read from files.
    const bool any = target_state(target).journal_records > 0;
    for (Priority priority = 0; any && priority < kPriorities; ++priority) {
      std::size_t found = 0;
      records.for_each_above(priority, cursor.after[priority], [&](const JournalRecord& record) {
        const TargetBits bit = bit_of(record.route, target);
        if (record.place != Place::journal || (record.waiting & bit) == 0) return true;
        if (hidden.contains({record.sequence, target})) return true;
        const bool unsent = record.this_life && (record.handed_out & bit) == 0;
        places.push_back({record.sequence, record.id, priority, record.spot.size, record.spot, unsent, false});
        return ++found < limit;
      });
    }
  }
  {
    const std::lock_guard lock(index_mutex);
    const auto& counts = index->waiting();
    const bool any = std::ranges::any_of(
        counts, [&](const WaitingCount& count) { return count.target == target && count.records > 0; });
    for (Priority priority = 0; any && priority < kPriorities; ++priority) {
      // What is hidden counts for nothing: a page of it, and later records of the journal behind it, would carry the
      // cursor past the rows in between.
      std::size_t found = 0;
      for (Sequence after = cursor.after[priority]; found < limit;) {
        auto rows = index->due(target, priority, after, limit);
        if (!rows) return rows.error();
        const std::lock_guard state_lock(state_mutex);
        for (const DueRow& row : *rows) {
          after = row.sequence;
          if (row.sequence >= horizon || hidden.contains({row.sequence, target})) continue;
          // While its segment is there, one read of the journal is cheaper than opening a file.
          const JournalRecord* record = records.find(row.sequence);
          const auto spot = record == nullptr ? std::nullopt : std::optional(record->spot);
          places.push_back({row.sequence, row.id, priority, row.size, spot, false, true});
          ++found;
        }
        if (rows->size() < limit) break;
      }
    }
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

bool Spool::Parts::is_frame_of(ByteView bytes, Sequence sequence) const {
  const auto header = read_header(bytes, keyring->namer());
  return header && header->sequence == sequence && read_body(*header, bytes, keyring->namer());
}

// From the journal if it is still there, whole: a segment may have been reused since we looked, and what has rotted in
// the one place may be sound in the other.
Result<void> Spool::Parts::read_frame(Sequence sequence, const RecordId& id, const std::optional<FrameSpot>& spot,
                                      Bytes& frame) {
  if (spot) {
    HOLDFAST_TRY(journal->read(*spot, frame));
    if (is_frame_of(frame, sequence)) return {};
  }
  return files->read(id, frame);
}

// How many, from the first on, one read of the journal can bring: neighbours in one segment, in its order.
std::size_t Spool::Parts::neighbours(std::span<const DuePlace> places) {
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

void Spool::Parts::open_neighbours(std::span<const DuePlace> places, std::span<DueFrame> frames, Buffers& buffers) {
  const auto& first = places.front().spot;
  const auto& last = places.back().spot;
  Result<void> together;
  buffers.run.clear();
  if (first)
    together = journal->read({first->segment, first->offset, last->offset + last->size - first->offset}, buffers.run);
  for (std::size_t i = 0; i < places.size(); ++i) {
    Result<void> read = together;
    ByteView frame;
    if (const auto& spot = places[i].spot; spot && read)
      frame = ByteView(buffers.run).subspan(spot->offset - first->offset, spot->size);
    if (read ? !is_frame_of(frame, places[i].sequence) : places[i].filed) {
      read = files->read(places[i].id, buffers.file);
      frame = buffers.file;
    }
    if (!read && (read.error().kind == ErrorKind::unavailable || read.error().kind == ErrorKind::io))
      frames[i].read = read;
    if (!read) continue;
    frames[i].size = frame.size();
    frames[i].opened = open_record(frame, *keyring, buffers.plain);
  }
}

std::vector<Spool::Parts::DueFrame> Spool::Parts::open_frames(std::span<const DuePlace> places) {
  std::vector<DueFrame> frames(places.size());
  crew.share(places.size(), kReadTogether, [&](std::size_t first, std::size_t last) {
    Buffers buffers;
    for (std::size_t count = 0; first < last; first += count) {
      count = neighbours(places.subspan(first, last - first));
      open_neighbours(places.subspan(first, count), std::span(frames).subspan(first, count), buffers);
    }
  });
  return frames;
}

Result<std::vector<DueRecord>> Spool::due(TargetNumber target, Drain drain, DueCursor& cursor, std::size_t max_records,
                                          std::size_t max_bytes) {
  Parts& parts = *parts_;
  if (const auto error = parts.dead_error()) return *error;
  {
    const std::lock_guard lock(parts.state_mutex);
    const std::uint64_t generation = parts.target_state(target).generation;
    if (cursor.generation < generation) cursor = DueCursor{{}, generation};
  }
  auto places = parts.due_places(target, drain, cursor, max_records);
  if (!places) return parts.fail(places.error());
  // Only as many as there is room for.
  std::size_t count = 0;
  for (std::uint64_t bytes = 0; count < places->size(); ++count) {
    bytes += (*places)[count].size;
    if (count > 0 && bytes > max_bytes) break;
  }
  places->resize(count);
  auto frames = parts.open_frames(*places);
  std::vector<DueRecord> due;
  for (std::size_t i = 0; i < count; ++i) {
    const Parts::DuePlace& place = (*places)[i];
    auto& [read, size, opened] = frames[i];
    if (!read && read.error().kind == ErrorKind::unavailable) {
      if (due.empty()) return read.error();
      break;
    }
    if (!read) return parts.fail(read.error());
    cursor.after[place.priority] = place.sequence;
    if (const Reason* bad = std::get_if<Reason>(&opened)) {
      // One record that cannot be opened is never in the way of the others (I6): housekeeping looks at it again, and
      // sets it aside.
      const std::lock_guard lock(parts.state_mutex);
      if (parts.reject({place.sequence, place.id, TargetNumber{}, *bad, {}}))
        parts.hidden.insert({place.sequence, target});
      continue;
    }
    auto& [header, body] = std::get<OpenedBody>(opened);
    due.push_back({place.sequence, place.id, place.priority, std::move(body.key), std::move(body.envelope),
                   header.accepted_wall_ns, header.clock_trusted, place.surely_unsent, size});
  }
  const std::lock_guard lock(parts.state_mutex);
  for (const DueRecord& record : due) {
    JournalRecord* known = parts.records.find(record.sequence);
    if (known != nullptr) known->handed_out |= parts.bit_of(known->route, target);
  }
  return due;
}

}  // namespace holdfast
