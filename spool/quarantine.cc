// The quarantine, as an operator sees it: list, show, requeue, drop.

#include <fmt/format.h>

#include "spool/note.h"
#include "spool/parts.h"
#include "spool/subject.h"

namespace holdfast {
namespace {

constexpr std::size_t kRecordsAtOnce = 1024;

struct Opened {
  std::optional<OpenedBody> record;
  Note note;
};

// A quarantine file: the record's frame as it was found, and the note behind it. Either may be unreadable.
Opened open_quarantined(ByteView bytes, const Keyring& keyring) {
  Opened opened;
  opened.note.reason = Reason::damaged;
  const auto header = read_header(bytes, keyring.namer());
  if (!header || kFrameHeaderSize + header->body_size > bytes.size()) return opened;
  const std::size_t size = kFrameHeaderSize + header->body_size;
  auto record = open_record(bytes.first(size), keyring);
  if (OpenedBody* whole = std::get_if<OpenedBody>(&record)) opened.record = std::move(*whole);
  const ByteView behind = bytes.subspan(size);
  const auto note_header = read_header(behind, keyring.namer());
  if (!note_header || note_header->kind != FrameKind::note) return opened;
  const SecretKey* key = keyring.data_key(note_header->data_key_id);
  if (key == nullptr) return opened;
  const auto note_body = open_frame(*note_header, behind, *key, keyring.namer());
  if (!note_body) return opened;
  if (auto note = decode_note(*note_body)) opened.note = std::move(*note);
  return opened;
}

}  // namespace

Result<QuarantinedRecord> Spool::Parts::describe_quarantined(const RecordId& id, Sequence sequence,
                                                             LedgerEntry& identity) {
  auto bytes = files->read_quarantined(id, sequence);
  if (!bytes) return bytes.error();
  QuarantinedRecord record;
  record.sequence = sequence;
  record.id = id;
  record.size = bytes->size();
  const Opened opened = open_quarantined(*bytes, *keyring);
  record.reason = opened.note.reason;
  record.target = opened.note.target;
  if (const auto header = read_header(*bytes, keyring->namer())) {
    record.route = static_cast<RouteNumber>(header->route);
    record.priority = header->priority;
    record.accepted_wall_ns = header->accepted_wall_ns;
    identity.content = header->content;
  }
  if (opened.record) place_in_stream(identity, opened.record->body);
  return record;
}

Result<std::vector<QuarantinedRecord>> Spool::list_quarantine(Sequence after, std::size_t limit) {
  if (const auto error = parts_->dead_error()) return *error;
  const std::lock_guard lock(parts_->index_mutex);
  auto rows = parts_->index->list_quarantine(after, limit);
  if (!rows) return parts_->fail(rows.error());
  return rows;
}

Result<OpenedRecord> Spool::show_quarantined(const std::string& id_prefix) {
  std::optional<QuarantinedRecord> found;
  for (Sequence after = 0;;) {
    auto some = list_quarantine(after, kRecordsAtOnce);
    if (!some) return some.error();
    for (const QuarantinedRecord& record : *some) {
      after = record.sequence;
      if (!record.id.hex().starts_with(id_prefix)) continue;
      if (found) return Error{ErrorKind::invalid, "more than one quarantined record's id begins with " + id_prefix};
      found = record;
    }
    if (some->size() < kRecordsAtOnce) break;
  }
  if (!found || id_prefix.empty())
    return Error{ErrorKind::not_found, "no record in quarantine has an id that begins with " + id_prefix};
  auto bytes = parts_->files->read_quarantined(found->id, found->sequence);
  if (!bytes) return bytes.error();
  Opened opened = open_quarantined(*bytes, *parts_->keyring);
  OpenedRecord shown;
  shown.summary = {found->sequence,         found->id, found->route, found->priority, found->size,
                   found->accepted_wall_ns, {},        true};
  if (opened.record) shown.body = std::move(opened.record->body);
  shown.reason = found->reason;
  shown.words = std::move(opened.note.words);
  return shown;
}

// Calls `act` for each quarantined record that the filter matches; returns how many times it said true.
Result<std::uint64_t> Spool::Parts::for_each_quarantined(
    const RecordFilter& filter, const std::function<Result<bool>(const QuarantinedRecord&)>& act) {
  std::uint64_t acted = 0;
  for (Sequence after = 0;;) {
    std::vector<QuarantinedRecord> some;
    {
      const std::lock_guard lock(index_mutex);
      auto rows = index->list_quarantine(after, kRecordsAtOnce);
      if (!rows) return rows.error();
      some = std::move(*rows);
    }
    for (const QuarantinedRecord& record : some) {
      after = record.sequence;
      bool wanted = filter.may_match(record.sequence, record.id);
      wanted = wanted && (!filter.target || *filter.target == record.target);
      if (wanted && filter.subject) {
        auto bytes = files->read_quarantined(record.id, record.sequence);
        if (!bytes && bytes.error().kind != ErrorKind::not_found) return bytes.error();
        const Opened opened = bytes ? open_quarantined(*bytes, *keyring) : Opened{};
        wanted = opened.record && subject_matches(*filter.subject, opened.record->body.envelope.subject);
      }
      if (!wanted) continue;
      auto done = act(record);
      if (!done) return done.error();
      acted += *done ? 1u : 0u;
    }
    if (some.size() < kRecordsAtOnce) return acted;
  }
}

Result<std::uint64_t> Spool::requeue(const RecordFilter& filter, const Reroute& reroute) {
  Parts& parts = *parts_;
  if (const auto error = parts.dead_error()) return *error;
  auto requeued = [&] {
    const std::lock_guard upkeep(parts.upkeep_mutex);
    return parts.for_each_quarantined(
        filter, [&](const QuarantinedRecord& record) { return parts.requeue_one(record, reroute); });
  }();
  if (!requeued) return parts.fail(requeued.error());
  parts.notify();
  return requeued;
}

// Sealed again under a sequence of its own, into a file that is on the medium before the quarantine loses it.
Result<bool> Spool::Parts::requeue_one(const QuarantinedRecord& record, const Reroute& reroute) {
  auto bytes = files->read_quarantined(record.id, record.sequence);
  // Somebody removed the file: the next start raises the alarm.
  if (!bytes && bytes.error().kind == ErrorKind::not_found) return false;
  if (!bytes) return bytes.error();
  Opened opened = open_quarantined(*bytes, *keyring);
  if (!opened.record) return false;
  const auto route_found = reroute(opened.record->body.envelope);
  if (!route_found) return false;

  // With the commit lock: records become due in the order of their sequences.
  const std::lock_guard commit_lock(commit_mutex);
  {
    const std::lock_guard lock(state_mutex);
    const JournalRecord* earlier = records.find(record.id);
    if (earlier != nullptr && earlier->place == Place::journal && !complete(*earlier)) return false;
  }
  FrameHeader header = header_for(moment(), next_sequence++, record.id, *route_found, record.priority);
  header.content = opened.record->header.content;
  Bytes plain, frame;
  encode_body(opened.record->body.key, opened.record->body.envelope, plain);
  seal(header, plain, frame);
  auto written = files->write(record.id, header.sequence, frame, true, dirty);
  if (!written && written.error().kind == ErrorKind::exists) return false;
  HOLDFAST_TRY(written);
  const auto move = [&]() -> Result<void> {
    HOLDFAST_TRY(sync_files());
    IndexChange change;
    IndexedRecord row{header.sequence,         record.id, *route_found, record.priority, frame.size(),
                      header.accepted_wall_ns, {}};
    for (const RouteTarget& target : route(*route_found)) row.waiting.push_back(target.target);
    change.filed.push_back(std::move(row));
    return drop_from_quarantine(record, std::move(change));
  };
  auto moved = move();
  if (!moved && moved.error().kind != ErrorKind::io) HOLDFAST_TRY(undone(remove_file(record.id, header.sequence)));
  HOLDFAST_TRY(moved);
  note_row(record.id, header.sequence);
  return true;
}

// The tombstone stays until the unlink is on the medium: a file that comes back after a cut meets it.
Result<void> Spool::Parts::drop_from_quarantine(const QuarantinedRecord& record, IndexChange change) {
  change.quarantine_dropped.emplace_back(record.id, record.sequence);
  change.entombed.push_back(record.sequence);
  HOLDFAST_TRY(apply(change, Durability::durable));
  return unlink_quarantined({{record.id, record.sequence}});
}

// They have left, whether or not their names can go now.
Result<void> Spool::Parts::unlink_quarantined(const std::vector<std::pair<RecordId, Sequence>>& left) {
  for (const auto& [id, sequence] : left) {
    auto removed = files->remove_quarantined(id, sequence);
    if (!removed && removed.error().kind == ErrorKind::io) return removed;
    if (removed.ok()) {
      unlinked_unsynced.push_back(sequence);
    } else {
      unlink_later.quarantined.emplace_back(id, sequence);
    }
  }
  return {};
}

Result<std::uint64_t> Spool::drop_quarantined(const RecordFilter& filter) {
  Parts& parts = *parts_;
  if (const auto error = parts.dead_error()) return *error;
  const std::lock_guard upkeep(parts.upkeep_mutex);
  auto dropped = parts.for_each_quarantined(filter, [&](const QuarantinedRecord& record) -> Result<bool> {
    IndexChange change;
    change.add.discarded = 1;
    HOLDFAST_TRY(parts.drop_from_quarantine(record, std::move(change)));
    return true;
  });
  if (!dropped) return parts.fail(dropped.error());
  return dropped;
}

}  // namespace holdfast
