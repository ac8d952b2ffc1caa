// What cannot be delivered or opened is kept, counted and out of the way (I6).

#include <fmt/format.h>

#include <algorithm>

#include "spool/note.h"
#include "spool/parts.h"

namespace holdfast {
namespace {

constexpr std::size_t kMaxFileRead = std::size_t{kMaxFrameBody} + (64u << 10);

}  // namespace

Result<void> Spool::Parts::set_aside_rejected() {
  for (;;) {
    Rejection rejection;
    {
      const std::lock_guard lock(state_mutex);
      ask_for_forgotten_rejections();
      if (rejections.empty()) return {};
      rejection = std::move(rejections.front());
      rejections.pop_front();
    }
    auto done = set_aside(rejection);
    if (done.ok()) continue;
    const std::lock_guard lock(state_mutex);
    rejections.push_front(std::move(rejection));
    return done;
  }
}

// A required target that has not said its word about the record yet: it shall have it first.
bool Spool::Parts::other_required_waits(const Rejection& rejection, const std::optional<IndexedRecord>& row) {
  if (rejection.target == TargetNumber{}) return false;
  std::vector<TargetNumber> waiting;
  RouteNumber route{};
  if (row) {
    waiting = row->waiting;
    route = row->route;
  } else if (const JournalRecord* record = records.find(rejection.sequence)) {
    waiting = waiting_targets(*record);
    route = record->route;
  }
  const auto& targets_of = route_locked(route);
  return std::ranges::any_of(waiting, [&](TargetNumber target) {
    const auto place = std::ranges::find(targets_of, target, &RouteTarget::target);
    const bool optional = place != targets_of.end() && !place->required;
    const bool settled = std::ranges::any_of(filed_settled, [&](const FiledSettlement& settlement) {
      return settlement.target == target && settlement.sequence == rejection.sequence;
    });
    return target != rejection.target && !optional && !settled && !reject_marks.contains({rejection.sequence, target});
  });
}

// Where too many wait for another target's word, the target is asked again once some of them have left.
void Spool::Parts::remember_rejection(const Rejection& rejection) {
  if (reject_marks.size() < kMaxRejectMarks) {
    reject_marks.insert_or_assign({rejection.sequence, rejection.target}, rejection);
    return;
  }
  hidden.erase({rejection.sequence, rejection.target});
  rejections_forgotten = true;
}

Result<void> Spool::Parts::set_aside(Rejection& rejection) {
  std::optional<IndexedRecord> row;
  {
    const std::lock_guard lock(index_mutex);
    auto found = index->find(rejection.sequence);
    if (!found) return found.error();
    row = *found;
  }
  RecordId id = rejection.id;
  bool left = false;
  {
    const std::lock_guard lock(state_mutex);
    const JournalRecord* record = records.find(rejection.sequence);
    const bool in_journal = record != nullptr && record->place == Place::journal && !complete(*record);
    if (!row && !in_journal) unhide(rejection.sequence);
    left = !row && !in_journal;
  }
  if (left) return remove_begun(rejection);
  {
    const std::lock_guard lock(state_mutex);
    const JournalRecord* record = records.find(rejection.sequence);
    id = row ? row->id : record->id;
    if (other_required_waits(rejection, row)) {
      remember_rejection(rejection);
      return {};
    }
  }
  Rejection known = rejection;
  known.id = id;
  auto frame = frame_to_set_aside(known, row);
  if (!frame && frame.error().kind == ErrorKind::not_found) return declare_lost(rejection.sequence, id);
  if (!frame) return frame.error();

  const auto header = read_header(*frame, keyring->namer());
  if (known.reason == Reason::none) {
    const auto earlier = files->peek(id);
    known.reason =
        earlier && header && earlier->content == header->content ? Reason::duplicate_record : Reason::conflict;
  }
  const bool found_by_us =
      known.target == TargetNumber{} && known.reason >= Reason::damaged && known.reason <= Reason::undecodable;
  if (found_by_us && std::holds_alternative<OpenedBody>(open_record(*frame, *keyring))) {
    back_into_line(rejection.sequence);
    return {};
  }
  FrameHeader note_header;
  note_header.sequence = rejection.sequence;
  note_header.id = id;
  if (header) note_header = *header;
  Bytes note;
  append_note(note_header, known.reason, known.target, known.words, note);
  rejection.id = id;
  rejection.begun = true;
  // On the medium before the record's own place is touched (R28).
  HOLDFAST_TRY(files->write_quarantined(id, rejection.sequence, *frame, note));

  IndexChange change;
  change.set_aside.push_back({rejection.sequence, id, known.reason, known.target,
                              static_cast<RouteNumber>(note_header.route), note_header.priority,
                              frame->size() + note.size(), note_header.accepted_wall_ns});
  (row ? change.left : change.entombed).push_back(rejection.sequence);
  if (!row) change.unlinked.push_back(rejection.sequence);
  {
    const std::lock_guard lock(state_mutex);
    const JournalRecord* record = records.find(rejection.sequence);
    if (!row && record != nullptr && record->place == Place::journal) change.remember.push_back(ledger_entry(*record));
  }
  HOLDFAST_TRY(apply(change, Durability::durable, [&] { leave_aside(rejection.sequence); }));
  return row ? unlink(std::vector{leaving(id, rejection.sequence, 0)}) : Result<void>();
}

// It has left otherwise, after its file in quarantine was written and before the index knew: the file goes.
Result<void> Spool::Parts::remove_begun(const Rejection& rejection) {
  if (!rejection.begun) return {};
  {
    const std::lock_guard lock(index_mutex);
    auto rows = index->list_quarantine(rejection.sequence - 1, 1);
    if (!rows) return rows.error();
    const bool there = std::ranges::any_of(*rows, [&](const QuarantinedRecord& row) {
      return row.sequence == rejection.sequence && row.id == rejection.id;
    });
    if (there) return {};
  }
  return unlink_quarantined({{rejection.id, rejection.sequence}});
}

// What could not be read once can be read now: the memory's fault.
void Spool::Parts::back_into_line(Sequence sequence) {
  const std::lock_guard lock(state_mutex);
  for (TargetState& target : targets) send_back(target);
  unhide(sequence);
}

// The record's own place is given up, as the index knows that it left.
void Spool::Parts::leave_aside(Sequence sequence) {
  drop_reject_marks(sequence);
  unhide(sequence);
  JournalRecord* record = records.find(sequence);
  if (record == nullptr) return;
  if (record->place == Place::journal) leaves_journal(*record);
  record->place = Place::aside;
}

// The bytes as they are, sound or not: from the journal while it holds the record, else from the file. Sound ones
// rather than others.
Result<Bytes> Spool::Parts::frame_to_set_aside(const Rejection& rejection, const std::optional<IndexedRecord>& row) {
  std::optional<FrameSpot> spot;
  {
    const std::lock_guard lock(state_mutex);
    if (const JournalRecord* record = records.find(rejection.sequence)) spot = record->spot;
  }
  Bytes frame;
  if (spot) {
    const auto read = journal->read(*spot, frame);
    if (read && (!row || is_frame_of(frame, rejection.sequence))) return frame;
    if (!row) return read.error();
  }
  CHECK(row.has_value());
  auto file = read_file(fs, record_path(rejection.id), kMaxFileRead);
  if (spot && !frame.empty() && !(file && is_frame_of(*file, rejection.sequence))) return frame;
  return file;
}

// A row without a file, and nothing that explains it: the loss alarm (R45).
Result<void> Spool::Parts::declare_lost(Sequence sequence, const RecordId& id) {
  IndexChange change;
  change.left.push_back(sequence);
  change.unlinked.push_back(sequence);
  change.add.lost = 1;
  HOLDFAST_TRY(apply(change, Durability::durable));
  notice(fmt::format("LOST: record {} (sequence {}) has no file and nothing says why", id.short_hex(), sequence));
  note_row_left(id, sequence);
  const std::lock_guard lock(state_mutex);
  drop_reject_marks(sequence);
  unhide(sequence);
  return {};
}

}  // namespace holdfast
