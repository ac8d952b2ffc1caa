// What an operator asks of the records in custody: list, show, verify, retarget, discard.

#include <fmt/format.h>

#include <algorithm>

#include "spool/parts.h"
#include "spool/subject.h"

namespace holdfast {
namespace {

RecordSummary summary_of(const IndexedRecord& row) {
  return {row.sequence, row.id, row.route, row.priority, row.size, row.accepted_wall_ns, row.waiting, true};
}

RecordSummary summary_of_journalled(Spool::Parts& parts, const JournalRecord& record) {
  return {record.sequence,
          record.id,
          record.route,
          record.priority,
          record.spot.size,
          record.accepted_wall_ns,
          parts.custody.waiting_targets(record),
          false};
}

Result<Bytes> frame_of(Spool::Parts& parts, const RecordSummary& summary) {
  std::optional<FrameSpot> spot;
  {
    const std::lock_guard lock(parts.state_mutex);
    if (const JournalRecord* record = parts.custody.records().find(summary.sequence);
        record != nullptr && !summary.in_file)
      spot = record->spot;
  }
  Bytes frame;
  HOLDFAST_TRY(parts.frames->read(summary.sequence, summary.id, spot, frame));
  return frame;
}

Result<bool> matches(Spool::Parts& parts, const RecordFilter& filter, const RecordSummary& summary) {
  if (!filter.may_match(summary.sequence, summary.id)) return false;
  if (filter.target && std::ranges::find(summary.waiting, *filter.target) == summary.waiting.end()) return false;
  if (!filter.subject) return true;
  auto frame = frame_of(parts, summary);
  if (!frame && frame.error().kind == ErrorKind::io) return frame.error();
  if (!frame) return false;
  const auto opened = open_record(*frame, *parts.keyring);
  const OpenedBody* whole = std::get_if<OpenedBody>(&opened);
  return whole != nullptr && subject_matches(*filter.subject, whole->body.envelope.subject);
}

// Counted before it goes, by one durable transaction, as any record that leaves.
Result<bool> discard_one(Spool::Parts& parts, const RecordSummary& summary) {
  bool has_row = false;
  {
    const std::lock_guard lock(parts.index_mutex);
    auto row = parts.index->find(summary.sequence);
    if (!row) return row.error();
    has_row = row->has_value();
  }
  {
    const std::lock_guard lock(parts.state_mutex);
    const JournalRecord* record = parts.custody.records().find(summary.sequence);
    const bool in_journal = record != nullptr && parts.custody.in_custody(*record);
    if (!has_row && !in_journal) return false;
  }
  IndexChange change;
  (has_row ? change.left : change.entombed).push_back(summary.sequence);
  if (!has_row) change.unlinked.push_back(summary.sequence);
  change.add.discarded = 1;
  HOLDFAST_TRY(parts.apply(change, Durability::durable, [&] { parts.give_up_place(summary.sequence); }));
  if (has_row) HOLDFAST_TRY(parts.unlink(std::vector{parts.leaving->file(summary.id, summary.sequence, 0)}));
  return true;
}

// Of those that still wait for it. The row gets a route in which the new target stands where the old one stood,
// required or not.
Result<std::uint64_t> retarget_page(Spool::Parts& parts, const std::vector<Sequence>& page, TargetNumber from,
                                    TargetNumber to) {
  const std::lock_guard upkeep(parts.upkeep_mutex);
  std::vector<JournalRecord*> to_file;
  {
    const std::lock_guard lock(parts.state_mutex);
    for (const Sequence sequence : page) {
      JournalRecord* record = parts.custody.records().find(sequence);
      if (record != nullptr && parts.custody.in_custody(*record)) to_file.push_back(record);
    }
  }
  // Only a row can say that a record goes another way than its frame says.
  HOLDFAST_TRY(parts.flush(to_file));
  HOLDFAST_TRY(parts.apply_settled());
  IndexChange change;
  for (const Sequence sequence : page) {
    std::optional<IndexedRecord> row;
    {
      const std::lock_guard lock(parts.index_mutex);
      auto found = parts.index->find(sequence);
      if (!found) return found.error();
      row = *found;
    }
    if (!row || std::ranges::find(row->waiting, from) == row->waiting.end()) continue;
    Route ends = route_of(parts.manifest, row->route);
    for (RouteTarget& end : ends) {
      if (end.target == from) end.target = to;
    }
    std::ranges::stable_sort(ends, {}, [](const RouteTarget& end) { return !end.required; });
    Route once;
    for (const RouteTarget& end : ends) {
      if (std::ranges::find(once, end.target, &RouteTarget::target) == once.end()) once.push_back(end);
    }
    auto number = parts.number_of_route(once);
    if (!number) return number.error();
    row->route = *number;
    std::erase(row->waiting, from);
    std::erase(row->waiting, to);
    row->waiting.push_back(to);
    change.filed.push_back(std::move(*row));
  }
  if (change.filed.empty()) return 0;
  HOLDFAST_TRY(parts.apply(change, Durability::durable));
  return change.filed.size();
}

}  // namespace

Result<std::vector<RecordSummary>> Spool::list(Sequence after, std::size_t limit) {
  Parts& parts = *parts_;
  if (const auto error = parts.life.over()) return *error;
  const std::lock_guard upkeep(parts.upkeep_mutex);
  std::vector<RecordSummary> found;
  {
    const std::lock_guard lock(parts.index_mutex);
    auto rows = parts.index->list(after, limit);
    if (!rows) return parts.life.fail(rows.error());
    for (const IndexedRecord& row : *rows) found.push_back(summary_of(row));
  }
  {
    const std::lock_guard lock(parts.state_mutex);
    std::size_t added = 0;
    for (const auto& segment : parts.custody.records().segments()) {
      for (const JournalRecord& record : segment.records) {
        if (added >= limit) break;
        if (record.sequence <= after || !parts.custody.in_custody(record)) continue;
        found.push_back(summary_of_journalled(parts, record));
        ++added;
      }
    }
  }
  std::ranges::sort(found, {}, &RecordSummary::sequence);
  if (found.size() > limit) found.resize(limit);
  return found;
}

Result<OpenedRecord> Spool::show(const std::string& id_prefix) {
  std::optional<RecordSummary> found;
  for (Sequence after = 0;;) {
    auto some = list(after, kPage);
    if (!some) return some.error();
    for (const RecordSummary& summary : *some) {
      after = summary.sequence;
      if (!summary.id.hex().starts_with(id_prefix)) continue;
      if (found) return Error{ErrorKind::invalid, "more than one record's id begins with " + id_prefix};
      found = summary;
    }
    if (some->size() < kPage) break;
  }
  if (!found || id_prefix.empty())
    return Error{ErrorKind::not_found, "no record in custody has an id that begins with " + id_prefix};
  auto frame = frame_of(*parts_, *found);
  if (!frame) return frame.error();
  auto opened = open_record(*frame, *parts_->keyring);
  if (const Reason* bad = std::get_if<Reason>(&opened)) {
    return Error{ErrorKind::corrupt,
                 fmt::format("record {} cannot be opened: {}", found->id.short_hex(), reason_text(*bad))};
  }
  return OpenedRecord{*found, std::move(std::get<OpenedBody>(opened).body), Reason::none, {}};
}

Result<Sequence> Spool::verify(Sequence after, std::size_t limit,
                               const std::function<void(const RecordSummary&, Reason)>& bad) {
  auto some = list(after, limit);
  if (!some) return some.error();
  for (const RecordSummary& summary : *some) {
    auto frame = frame_of(*parts_, summary);
    if (!frame && frame.error().kind == ErrorKind::io) return parts_->life.fail(frame.error());
    if (!frame && frame.error().kind == ErrorKind::unavailable) return frame.error();
    if (!frame && frame.error().kind == ErrorKind::not_found) {
      // Delivered while we looked, or lost: only the latter still has a place in the list.
      auto still = list(summary.sequence - 1, 1);
      if (!still) return still.error();
      if (still->empty() || still->front().sequence != summary.sequence) continue;
    }
    const auto opened =
        frame ? open_record(*frame, *parts_->keyring) : std::variant<OpenedBody, Reason>(Reason::damaged);
    if (const Reason* reason = std::get_if<Reason>(&opened)) bad(summary, *reason);
  }
  return some->size() < limit ? 0 : some->back().sequence;
}

bool RecordFilter::may_match(Sequence of_sequence, const RecordId& id) const {
  if (!is_narrow()) return everything;
  if (sequence && *sequence != of_sequence) return false;
  return !id_prefix || (!id_prefix->empty() && id.hex().starts_with(*id_prefix));
}

Result<std::uint64_t> Spool::discard(const RecordFilter& filter, bool dry_run) {
  std::uint64_t discarded = 0;
  for (Sequence after = 0;;) {
    auto some = list(after, kPage);
    if (!some) return some.error();
    const std::lock_guard upkeep(parts_->upkeep_mutex);
    for (const RecordSummary& summary : *some) {
      after = summary.sequence;
      auto matching = matches(*parts_, filter, summary);
      if (!matching) return parts_->life.fail(matching.error());
      if (!*matching) continue;
      auto gone = dry_run ? Result<bool>(true) : discard_one(*parts_, summary);
      if (!gone) return parts_->life.fail(gone.error());
      discarded += *gone ? 1u : 0u;
    }
    if (some->size() < kPage) return discarded;
  }
}

Result<std::uint64_t> Spool::retarget(TargetNumber from, TargetNumber to) {
  Parts& parts = *parts_;
  if (from == to) return Error{ErrorKind::invalid, "a target cannot be exchanged for itself"};
  std::uint64_t changed = 0;
  for (Sequence after = 0;;) {
    auto some = list(after, kPage);
    if (!some) return some.error();
    std::vector<Sequence> page;
    for (const RecordSummary& summary : *some) {
      after = summary.sequence;
      if (std::ranges::find(summary.waiting, from) != summary.waiting.end()) page.push_back(summary.sequence);
    }
    auto count = retarget_page(parts, page, from, to);
    if (!count) return parts.life.fail(count.error());
    changed += *count;
    if (some->size() < kPage) break;
  }
  {
    const std::lock_guard lock(parts.state_mutex);
    parts.custody.send_back(parts.custody.target(to));
  }
  parts.call_sent_back();
  return changed;
}

}  // namespace holdfast
