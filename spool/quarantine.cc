// The quarantine, as an operator sees it: list, show, requeue, drop.

#include <fmt/format.h>

#include "spool/note.h"
#include "spool/parts.h"
#include "spool/subject.h"

namespace holdfast {
namespace {

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

// Calls `act` for each quarantined record that the filter matches; returns how many times it said true.
Result<std::uint64_t> for_each_quarantined(Spool::Parts& parts, const RecordFilter& filter,
                                           const std::function<Result<bool>(const QuarantinedRecord&)>& act) {
  std::uint64_t acted = 0;
  for (Sequence after = 0;;) {
    std::vector<QuarantinedRecord> some;
    {
      const std::lock_guard lock(parts.index_mutex);
      auto rows = parts.index->list_quarantine(after, kPage);
      if (!rows) return rows.error();
      some = std::move(*rows);
    }
    for (const QuarantinedRecord& record : some) {
      after = record.sequence;
      bool wanted = filter.may_match(record.sequence, record.id);
      wanted = wanted && (!filter.target || *filter.target == record.target);
      if (wanted && filter.subject) {
        auto bytes = parts.files->read_quarantined(record.id, record.sequence);
        if (!bytes && bytes.error().kind != ErrorKind::not_found) return bytes.error();
        const Opened opened = bytes ? open_quarantined(*bytes, *parts.keyring) : Opened{};
        wanted = opened.record && subject_matches(*filter.subject, opened.record->body.envelope.subject);
      }
      if (!wanted) continue;
      auto done = act(record);
      if (!done) return done.error();
      acted += *done ? 1u : 0u;
    }
    if (some.size() < kPage) return acted;
  }
}

// The tombstone stays until the unlink is on the medium: a file that comes back after a cut meets it.
Result<void> drop_from_quarantine(Spool::Parts& parts, const QuarantinedRecord& record, IndexChange change) {
  change.quarantine_dropped.emplace_back(record.id, record.sequence);
  change.entombed.push_back(record.sequence);
  HOLDFAST_TRY(parts.apply(change, Durability::durable));
  return parts.leaving->remove_quarantined({{record.id, record.sequence}});
}

// Sealed again under a sequence of its own, into a file that is on the medium before the quarantine loses it.
Result<bool> requeue_one(Spool::Parts& parts, const QuarantinedRecord& record, const Spool::Reroute& reroute) {
  auto bytes = parts.files->read_quarantined(record.id, record.sequence);
  // Somebody removed the file: the next start raises the alarm.
  if (!bytes && bytes.error().kind == ErrorKind::not_found) return false;
  if (!bytes) return bytes.error();
  Opened opened = open_quarantined(*bytes, *parts.keyring);
  if (!opened.record) return false;
  const auto route_found = reroute(opened.record->body.envelope);
  if (!route_found) return false;

  // With the commit lock: records become due in the order of their sequences.
  const std::lock_guard commit_lock(parts.commit_mutex);
  {
    const std::lock_guard lock(parts.state_mutex);
    const JournalRecord* earlier = parts.custody.records().find(record.id);
    if (earlier != nullptr && parts.custody.in_custody(*earlier)) return false;
  }
  FrameHeader header =
      parts.sealer->header(parts.sealer->now(), parts.next_sequence++, record.id, *route_found, record.priority);
  header.content = opened.record->header.content;
  Bytes plain, frame;
  encode_body(opened.record->body.key, opened.record->body.envelope, plain);
  parts.sealer->seal(header, plain, frame);
  auto written = parts.lot->write_synced(record.id, header.sequence, frame);
  if (!written && written.error().kind == ErrorKind::exists) return false;
  HOLDFAST_TRY(written);
  const auto move = [&]() -> Result<void> {
    HOLDFAST_TRY(parts.sync_files());
    IndexChange change;
    change.filed.push_back(row_of(header, all_targets(route_of(parts.manifest, *route_found))));
    return drop_from_quarantine(parts, record, std::move(change));
  };
  auto moved = move();
  if (!moved && moved.error().kind != ErrorKind::io)
    HOLDFAST_TRY(undone(parts.lot->remove(record.id, header.sequence)));
  HOLDFAST_TRY(moved);
  parts.expected_names.row_came(record.id, header.sequence);
  return true;
}

}  // namespace

Result<std::vector<QuarantinedRecord>> Spool::list_quarantine(Sequence after, std::size_t limit) {
  if (const auto error = parts_->life.over()) return *error;
  const std::lock_guard lock(parts_->index_mutex);
  auto rows = parts_->index->list_quarantine(after, limit);
  if (!rows) return parts_->life.fail(rows.error());
  return rows;
}

Result<OpenedRecord> Spool::show_quarantined(const std::string& id_prefix) {
  std::optional<QuarantinedRecord> found;
  for (Sequence after = 0;;) {
    auto some = list_quarantine(after, kPage);
    if (!some) return some.error();
    for (const QuarantinedRecord& record : *some) {
      after = record.sequence;
      if (!record.id.hex().starts_with(id_prefix)) continue;
      if (found) return Error{ErrorKind::invalid, "more than one quarantined record's id begins with " + id_prefix};
      found = record;
    }
    if (some->size() < kPage) break;
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

Result<std::uint64_t> Spool::requeue(const RecordFilter& filter, const Reroute& reroute) {
  Parts& parts = *parts_;
  if (const auto error = parts.life.over()) return *error;
  auto requeued = [&] {
    const std::lock_guard upkeep(parts.upkeep_mutex);
    return for_each_quarantined(parts, filter,
                                [&](const QuarantinedRecord& record) { return requeue_one(parts, record, reroute); });
  }();
  if (!requeued) return parts.life.fail(requeued.error());
  parts.notify();
  return requeued;
}

Result<std::uint64_t> Spool::drop_quarantined(const RecordFilter& filter) {
  Parts& parts = *parts_;
  if (const auto error = parts.life.over()) return *error;
  const std::lock_guard upkeep(parts.upkeep_mutex);
  auto dropped = for_each_quarantined(parts, filter, [&](const QuarantinedRecord& record) -> Result<bool> {
    IndexChange change;
    change.add.discarded = 1;
    HOLDFAST_TRY(drop_from_quarantine(parts, record, std::move(change)));
    return true;
  });
  if (!dropped) return parts.life.fail(dropped.error());
  return dropped;
}

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
  if (opened.record) places->note(opened.record->body, identity);
  return record;
}

}  // namespace holdfast
