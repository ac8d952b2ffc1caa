// What cannot be delivered or opened is kept, counted and out of the way (I6).

#include <fmt/format.h>

#include <algorithm>

#include "spool/parts.h"

namespace holdfast {
namespace {

constexpr std::size_t kMaxFileRead = std::size_t{kMaxFrameBody} + (64u << 10);

using Row = std::optional<IndexedRecord>;  // nothing: the journal alone has the record

Result<Row> find_row(Spool::Parts& parts, Sequence sequence) {
  const std::lock_guard lock(parts.index_mutex);
  return parts.index->find(sequence);
}

// A required target that has not said its word about the record yet: it shall have it first. state_mutex held.
bool other_required_waits(Spool::Parts& parts, const Rejection& rejection, const Row& row) {
  if (rejection.target == TargetNumber{}) return false;
  std::vector<TargetNumber> waiting;
  RouteNumber route{};
  if (row) {
    waiting = row->waiting;
    route = row->route;
  } else if (const JournalRecord* record = parts.custody.records().find(rejection.sequence)) {
    waiting = parts.custody.waiting_targets(*record);
    route = record->route;
  }
  return std::ranges::any_of(waiting, [&](TargetNumber target) {
    return target != rejection.target && !is_optional(parts.custody.route(route), target) &&
           !parts.unwritten.is_filed({target, rejection.sequence}) &&
           parts.unwritten.remembered(rejection.sequence, target) == nullptr;
  });
}

// It has left otherwise, after its file in quarantine was written and before the index knew: the file goes.
Result<void> remove_begun(Spool::Parts& parts, const Rejection& rejection) {
  if (!rejection.begun) return {};
  {
    const std::lock_guard lock(parts.index_mutex);
    auto rows = parts.index->list_quarantine(rejection.sequence - 1, 1);
    if (!rows) return rows.error();
    const bool there = std::ranges::any_of(*rows, [&](const QuarantinedRecord& row) {
      return row.sequence == rejection.sequence && row.id == rejection.id;
    });
    if (there) return {};
  }
  return parts.leaving->remove_quarantined({{rejection.id, rejection.sequence}});
}

// What could not be read once can be read now: the memory's fault.
void back_into_line(Spool::Parts& parts, Sequence sequence) {
  const std::lock_guard lock(parts.state_mutex);
  parts.custody.send_all_back();
  parts.unwritten.show(sequence);
}

// The bytes as they are, sound or not: from the journal while it holds the record, else from the file. Sound ones
// rather than others.
Result<Bytes> frame_to_keep(Spool::Parts& parts, Sequence sequence, const RecordId& id, const Row& row) {
  std::optional<FrameSpot> spot;
  {
    const std::lock_guard lock(parts.state_mutex);
    if (const JournalRecord* record = parts.custody.records().find(sequence)) spot = record->spot;
  }
  Bytes frame;
  if (spot) {
    const auto read = parts.journal->read(*spot, frame);
    if (read && (!row || parts.frames->is_frame_of(frame, sequence))) return frame;
    if (!row) return read.error();
  }
  CHECK(row.has_value());
  auto file = read_file(parts.fs, record_path(id), kMaxFileRead);
  if (spot && !frame.empty() && !(file && parts.frames->is_frame_of(*file, sequence))) return frame;
  return file;
}

// Why, in the end. None: it is sound after all.
Reason reason_of(Spool::Parts& parts, const Rejection& rejection, const RecordId& id, ByteView frame,
                 const FrameHeader* header) {
  if (rejection.reason == Reason::none) {
    const auto earlier = parts.files->peek(id);
    const bool same = earlier && header != nullptr && earlier->content == header->content;
    return same ? Reason::duplicate_record : Reason::conflict;
  }
  const bool unreadable = rejection.target == TargetNumber{} && rejection.reason >= Reason::damaged &&
                          rejection.reason <= Reason::undecodable;
  const bool sound = unreadable && std::holds_alternative<OpenedBody>(open_record(frame, *parts.keyring));
  return sound ? Reason::none : rejection.reason;
}

// The file in quarantine is on the medium: the record's own place is given up, by one durable transaction.
Result<void> move_to_quarantine(Spool::Parts& parts, const QuarantinedRecord& record, bool has_row) {
  IndexChange change;
  change.set_aside.push_back(record);
  (has_row ? change.left : change.entombed).push_back(record.sequence);
  if (!has_row) {
    change.unlinked.push_back(record.sequence);
    const std::lock_guard lock(parts.state_mutex);
    const JournalRecord* journalled = parts.custody.records().find(record.sequence);
    if (journalled != nullptr && journalled->place == Place::journal)
      change.remember.push_back(ledger_entry(*journalled));
  }
  HOLDFAST_TRY(parts.apply(change, Durability::durable, [&] { parts.give_up_place(record.sequence); }));
  if (!has_row) return {};
  return parts.unlink(std::vector{parts.leaving->file(record.id, record.sequence, 0)});
}

// Whether it was begun is noted in the rejection, for the next try.
Result<void> set_aside(Spool::Parts& parts, Rejection& rejection) {
  const Sequence sequence = rejection.sequence;
  const auto row = find_row(parts, sequence);
  if (!row) return row.error();
  std::optional<RecordId> id;
  {
    const std::lock_guard lock(parts.state_mutex);
    const JournalRecord* record = parts.custody.records().find(sequence);
    if (*row) {
      id = (*row)->id;
    } else if (record != nullptr && parts.custody.in_custody(*record)) {
      id = record->id;
    } else {
      parts.unwritten.show(sequence);
    }
    if (id && other_required_waits(parts, rejection, *row)) {
      parts.unwritten.remember(rejection);
      return {};
    }
  }
  if (!id) return remove_begun(parts, rejection);

  const auto frame = frame_to_keep(parts, sequence, *id, *row);
  if (!frame && frame.error().kind == ErrorKind::not_found) return parts.declare_lost(sequence, *id);
  if (!frame) return frame.error();
  const auto header = read_header(*frame, parts.keyring->namer());
  const Reason reason = reason_of(parts, rejection, *id, *frame, header ? &*header : nullptr);
  if (reason == Reason::none) {
    back_into_line(parts, sequence);
    return {};
  }

  FrameHeader note_header;
  note_header.sequence = sequence;
  note_header.id = *id;
  if (header) note_header = *header;
  Bytes note;
  parts.sealer->append_note(note_header, reason, rejection.target, rejection.words, note);
  rejection.id = *id;
  rejection.begun = true;
  // On the medium before the record's own place is touched (R28).
  HOLDFAST_TRY(parts.files->write_quarantined(*id, sequence, *frame, note));
  return move_to_quarantine(parts,
                            {sequence, *id, reason, rejection.target, static_cast<RouteNumber>(note_header.route),
                             note_header.priority, frame->size() + note.size(), note_header.accepted_wall_ns},
                            row->has_value());
}

}  // namespace

Result<void> Spool::Parts::set_aside_rejected() {
  for (;;) {
    std::optional<Rejection> rejection;
    {
      const std::lock_guard lock(state_mutex);
      unwritten.ask_for_forgotten();
      rejection = unwritten.take_rejection();
    }
    if (!rejection) return {};
    auto done = set_aside(*this, *rejection);
    if (done.ok()) continue;
    const std::lock_guard lock(state_mutex);
    unwritten.put_back(std::move(*rejection));
    return done;
  }
}

void Spool::Parts::give_up_place(Sequence sequence) {
  unwritten.forget(sequence);
  unwritten.show(sequence);
  if (JournalRecord* record = custody.records().find(sequence)) custody.leave(*record, Place::left);
}

// A row without a file, and nothing that explains it: the loss alarm (R45).
Result<void> Spool::Parts::declare_lost(Sequence sequence, const RecordId& id) {
  IndexChange change;
  change.left.push_back(sequence);
  change.unlinked.push_back(sequence);
  change.add.lost = 1;
  HOLDFAST_TRY(apply(change, Durability::durable));
  life.notice(fmt::format("LOST: record {} (sequence {}) has no file and nothing says why", id.short_hex(), sequence));
  expected_names.row_left(id, sequence);
  const std::lock_guard lock(state_mutex);
  unwritten.forget(sequence);
  unwritten.show(sequence);
  return {};
}

}  // namespace holdfast
