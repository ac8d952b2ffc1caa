// From arrivals to verdicts: identity, duplicates, sequence, seal, one sync (INVARIANTS.md, rules of the commit).

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "spool/parts.h"

namespace holdfast {
namespace {

// The key a conflicting newcomer is known by: the same newcomer again is a duplicate of itself.
std::string conflict_key(const Arrival& arrival) {
  Bytes content(arrival.envelope.subject.begin(), arrival.envelope.subject.end());
  content.push_back(0);
  content.insert(content.end(), arrival.envelope.payload.begin(), arrival.envelope.payload.end());
  return arrival.identity.key + ":conflict:" + to_hex(sha256(content));
}

bool same_content(const Arrival& a, const Arrival& b) {
  return a.envelope.subject == b.envelope.subject && a.envelope.payload == b.envelope.payload;
}

}  // namespace

// One group on its way to the disk.
class Commit {
 public:
  explicit Commit(Spool::Parts& parts) : parts_(parts) { parts_.batch.assign(kBatchHeaderSize, 0); }

  // Of so many arrivals at most.
  void expect(std::size_t arrivals);
  // Verdicts are filled in; they count only when finish() has returned well.
  Result<void> take(CommitRequest& request);
  Result<void> finish();
  // That is why something was not taken; others may go on.
  bool quarantine_is_full() const { return quarantine_is_full_; }

 private:
  struct Found {
    SeenIn where = SeenIn::nowhere;
    bool same_content = true;
  };
  Result<Found> look_up(Prepared& prepared);
  Result<Found> look_up_older(Prepared& prepared);
  Result<Verdict> decide(Prepared& prepared);
  Result<Verdict> set_aside(Prepared& prepared, Reason reason, VerdictKind kind, SeenIn seen);
  Result<Sequence> add_to_batch(Prepared& prepared);
  bool goes_to_file(const Prepared& prepared) const;
  Result<Sequence> add_to_files(Prepared& prepared);
  const ContentDigest& content_of(Prepared& prepared) const;
  FrameHeader header_of(const Prepared& prepared, Sequence sequence) const;
  Result<void> make_room(std::size_t frame_size);
  void seal_batch();
  Result<void> append();
  Result<void> file_direct();
  void add_done_frame();
  void adopt(FrameSpot first);

  Spool::Parts& parts_;
  std::unique_lock<std::mutex> commit_lock_{parts_.commit_mutex};
  const Moment moment_ = parts_.moment();  // of acceptance
  boost::unordered_flat_map<RecordId, const Arrival*, IdHash> in_group_;
  std::vector<JournalRecord> batched_;  // in the batch, not appended yet; spots are relative to its first frame
  std::vector<Prepared*> unsealed_;     // one for each of these, until all is there
  std::vector<JournalRecord> direct_;   // in files, not synced yet
  std::uint32_t frames_ = 0;
  bool quarantine_is_full_ = false;
};

std::vector<Prepared> Spool::Parts::prepare(std::span<const Arrival> arrivals) const {
  std::vector<Prepared> prepared(arrivals.size());
  crew.share(arrivals.size(), kNameTogether, [&](std::size_t first, std::size_t last) {
    prepare(arrivals.subspan(first, last - first), std::span(prepared).subspan(first, last - first));
  });
  return prepared;
}

void Spool::Parts::prepare(std::span<const Arrival> arrivals, std::span<Prepared> prepared) const {
  const Namer& namer = keyring->namer();
  std::uint64_t tag = 0;
  const Prepared* tagged = nullptr;  // that it is of: a batch comes from one stream, and is identified in one way
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    const Arrival& arrival = arrivals[i];
    Prepared& one = prepared[i];
    one.arrival = &arrival;
    one.id = namer.record_id(arrival.identity.key);
    one.positional = arrival.identity.strategy == Strategy::stream_sequence && arrival.refused == Reason::none;
    const Origin& origin = arrival.envelope.origin;
    const bool same_tag = tagged != nullptr && tagged->positional == one.positional &&
                          tagged->arrival->envelope.origin.stream == origin.stream;
    if (!same_tag) tag = stream_tag(origin.stream, one.positional);
    tagged = &one;
    one.position = StreamPosition{tag, origin.sequence, origin.timestamp_ns};
    one.frame_size = sealed_frame_size(encoded_size(arrival.identity.key, arrival.envelope));
  }
}

Result<std::vector<Verdict>> Spool::put_batch(std::span<const Arrival> arrivals) {
  Parts& parts = *parts_;
  CommitRequest mine;
  mine.prepared = parts.prepare(arrivals);
  std::unique_lock lock(parts.queue_mutex);
  parts.queue.push_back(&mine);
  parts.queue_changed.wait(lock, [&] { return mine.done || !parts.leading; });
  if (!mine.done) {
    parts.leading = true;
    std::vector<CommitRequest*> group;
    group.swap(parts.queue);
    lock.unlock();
    parts.commit_group(group);
    lock.lock();
    for (CommitRequest* request : group) request->done = true;
    parts.leading = false;
    parts.queue_changed.notify_all();
  }
  lock.unlock();
  if (mine.error) return *mine.error;
  return std::move(mine.verdicts);
}

void Spool::Parts::commit_group(std::span<CommitRequest* const> group) {
  std::function<void()> wake_up;
  {
    Commit commit(*this);
    const auto refuse_all = [&](const Error& error) {
      for (CommitRequest* request : group) {
        if (!request->error) request->error = error;
      }
    };
    if (const auto error = dead_error()) return refuse_all(*error);
    {
      const std::lock_guard lock(state_mutex);
      if (pressure.paused())
        return refuse_all({ErrorKind::full, std::string("the spool is full: ") + pressure_text(pressure.kind)});
      wake_up = wake;
    }
    const auto give_up = [&](const Error& error) {
      if (error.kind == ErrorKind::full && !commit.quarantine_is_full()) note_no_room();
      return fail(error);
    };
    std::size_t arrivals = 0;
    for (const CommitRequest* request : group) arrivals += request->prepared.size();
    commit.expect(arrivals);
    for (CommitRequest* request : group) {
      if (auto taken = commit.take(*request); !taken) request->error = give_up(taken.error());
      if (const auto error = dead_error()) return refuse_all(*error);
    }
    // One sync covers them all before any verdict counts (R7); whoever shares it shares its fate (R14).
    if (auto finished = commit.finish(); !finished) return refuse_all(give_up(finished.error()));
    const std::lock_guard lock(state_mutex);
    for (const CommitRequest* request : group) {
      if (request->error) continue;
      for (const Verdict& verdict : request->verdicts) {
        verdicts.accepted += verdict.kind == VerdictKind::accepted ? 1u : 0u;
        verdicts.refused += verdict.kind == VerdictKind::refused ? 1u : 0u;
        verdicts.conflicts += verdict.kind == VerdictKind::conflict ? 1u : 0u;
        if (verdict.kind != VerdictKind::duplicate) continue;
        verdicts.duplicate_in_batch += verdict.seen_in == SeenIn::batch ? 1u : 0u;
        verdicts.duplicate_in_custody += verdict.seen_in == SeenIn::custody ? 1u : 0u;
        verdicts.duplicate_in_ledger += verdict.seen_in == SeenIn::ledger ? 1u : 0u;
      }
    }
  }
  if (wake_up) wake_up();
}

void Commit::expect(std::size_t arrivals) {
  in_group_.reserve(arrivals);
  batched_.reserve(arrivals);
  unsealed_.reserve(arrivals);
}

Result<void> Commit::take(CommitRequest& request) {
  request.verdicts.reserve(request.prepared.size());
  for (Prepared& prepared : request.prepared) {
    auto verdict = decide(prepared);
    if (!verdict) return verdict.error();
    request.verdicts.push_back(*verdict);
  }
  // Before the next request: what has no room is not taken, and only who sent it hears of that.
  return file_direct();
}

Result<Verdict> Commit::decide(Prepared& prepared) {
  const auto found = look_up(prepared);
  if (!found) return found.error();
  const bool too_large =
      prepared.frame_size > parts_.options.limits.max_record_bytes + kFrameHeaderSize + kFrameTagSize;
  if (found->where != SeenIn::nowhere && found->same_content) {
    return Verdict{VerdictKind::duplicate, found->where, Reason::none, prepared.id, 0};
  }
  // Other content under a known identity (R16).
  if (found->where != SeenIn::nowhere)
    return set_aside(prepared, Reason::conflict, VerdictKind::conflict, found->where);
  if (prepared.arrival->refused != Reason::none) {
    return set_aside(prepared, prepared.arrival->refused, VerdictKind::refused, SeenIn::nowhere);
  }
  if (too_large) return set_aside(prepared, Reason::too_large, VerdictKind::refused, SeenIn::nowhere);

  const auto sequence = goes_to_file(prepared) ? add_to_files(prepared) : add_to_batch(prepared);
  if (!sequence) return sequence.error();
  in_group_.emplace(prepared.id, prepared.arrival);
  return Verdict{VerdictKind::accepted, SeenIn::nowhere, Reason::none, prepared.id, *sequence};
}

// What the journal is too small for goes to its file at once (R12).
bool Commit::goes_to_file(const Prepared& prepared) const {
  return parts_.options.linger.count() == 0 || prepared.frame_size > parts_.journal->largest_frame();
}

Result<Commit::Found> Commit::look_up(Prepared& prepared) {
  if (const auto earlier = in_group_.find(prepared.id); earlier != in_group_.end()) {
    return Found{SeenIn::batch, same_content(*earlier->second, *prepared.arrival)};
  }
  std::optional<ContentDigest> content;
  bool left = false;
  {
    const std::lock_guard lock(parts_.state_mutex);
    if (const JournalRecord* record = parts_.records.find(prepared.id)) {
      content = record->content;
      left = record->place == Place::aside || (record->place == Place::journal && parts_.complete(*record));
    }
  }
  if (!content) return look_up_older(prepared);
  return Found{left ? SeenIn::ledger : SeenIn::custody, *content == content_of(prepared)};
}

// What the ledger knows may still be in a file: only the file's absence says that it left (R47).
Result<Commit::Found> Commit::look_up_older(Prepared& prepared) {
  std::optional<Seen> seen;
  {
    const std::lock_guard lock(parts_.index_mutex);
    if (parts_.index->ledger().maybe_seen(prepared.id, prepared.looked_up_by())) {
      auto answer = parts_.index->ledger().find(prepared.id, prepared.looked_up_by());
      if (!answer) return answer.error();
      seen = *answer;
    }
  }
  // Until files and index have been compared, a record may be in a file that nothing else knows of (R46).
  // And one that the ledger has forgotten may lie under the name that this one would have.
  const bool reconciled = parts_.reconcile.load() == Spool::Parts::Reconcile::finished;
  if (!seen && reconciled && !goes_to_file(prepared)) return Found{};
  const auto header = parts_.files->peek(prepared.id);
  if (header) return Found{SeenIn::custody, header->content == content_of(prepared)};
  if (header.error().kind != ErrorKind::not_found && header.error().kind != ErrorKind::corrupt) return header.error();
  if (!seen) return Found{};
  return Found{SeenIn::ledger,
               std::equal(seen->content.begin(), seen->content.end(), content_of(prepared).bytes.begin())};
}

const ContentDigest& Commit::content_of(Prepared& prepared) const {
  const Envelope& envelope = prepared.arrival->envelope;
  if (!prepared.content)
    prepared.content = parts_.keyring->namer().content_digest(prepared.id, envelope.subject, envelope.payload);
  return *prepared.content;
}

// Without the content digest.
FrameHeader Commit::header_of(const Prepared& prepared, Sequence sequence) const {
  const Arrival& arrival = *prepared.arrival;
  return parts_.header_for(moment_, sequence, prepared.id, arrival.route, arrival.priority);
}

// Set aside before anything may be acknowledged (R13): the file is on the medium, and remembered, when this returns.
Result<Verdict> Commit::set_aside(Prepared& prepared, Reason reason, VerdictKind kind, SeenIn seen) {
  Prepared own = prepared;
  std::string key = prepared.arrival->identity.key;
  if (kind == VerdictKind::conflict) {
    key = conflict_key(*prepared.arrival);
    own.id = parts_.keyring->namer().record_id(key);
    own.content.reset();
    own.positional = false;
    own.position->stream_tag = parts_.stream_tag(own.arrival->envelope.origin.stream, false);
    auto again = look_up(own);
    if (!again) return again.error();
    if (again->where != SeenIn::nowhere) return Verdict{VerdictKind::duplicate, again->where, reason, own.id, 0};
  }
  {
    const std::lock_guard lock(parts_.index_mutex);
    const std::uint64_t bytes = parts_.index->quarantine_bytes() + own.frame_size;
    quarantine_is_full_ = bytes > parts_.options.limits.quarantine_max_bytes;
  }
  if (quarantine_is_full_) {
    const std::lock_guard lock(parts_.state_mutex);
    parts_.quarantine_full = parts_.clock.monotonic();
    return Error{ErrorKind::full, "the quarantine is full (spool.quarantine_max_bytes)"};
  }
  const Sequence sequence = parts_.next_sequence++;
  FrameHeader header = header_of(own, sequence);
  header.content = content_of(own);
  Bytes body, frame, note;
  encode_body(key, own.arrival->envelope, body);
  parts_.seal(header, body, frame);
  parts_.append_note(header, reason, TargetNumber{}, "", note);
  HOLDFAST_TRY(parts_.files->write_quarantined(own.id, sequence, frame, note));
  IndexChange change;
  change.set_aside.push_back({sequence, own.id, reason, TargetNumber{}, own.arrival->route, header.priority,
                              frame.size() + note.size(), header.accepted_wall_ns});
  change.add.taken = 1;
  change.remember.push_back(own.ledger_entry());
  if (auto applied = parts_.apply(change, Durability::lazy); !applied) {
    if (applied.error().kind != ErrorKind::io) HOLDFAST_TRY(undone(parts_.files->remove_quarantined(own.id, sequence)));
    return applied.error();
  }
  in_group_.emplace(own.id, own.arrival);
  return Verdict{kind, seen, reason, own.id, sequence};
}

// Records become due in the order of their sequences, whichever way each goes: a reader's cursor that has passed one
// never looks back (R15).
Result<Sequence> Commit::add_to_batch(Prepared& prepared) {
  HOLDFAST_TRY(file_direct());
  const std::size_t pending = parts_.batch.size() - kBatchHeaderSize;
  if (!parts_.journal->fits(pending + prepared.frame_size) || pending + prepared.frame_size > kMaxBatchBytes) {
    HOLDFAST_TRY(append());  // a batch never crosses a segment (R11)
    HOLDFAST_TRY(make_room(prepared.frame_size));
  }
  if (frames_ == 0) add_done_frame();

  // Only now: a segment's base is below every sequence in it.
  const Sequence sequence = parts_.next_sequence++;
  const FrameSpot spot{0, static_cast<std::uint32_t>(parts_.batch.size() - kBatchHeaderSize),
                       static_cast<std::uint32_t>(prepared.frame_size)};
  parts_.batch.resize(parts_.batch.size() + spot.size);
  JournalRecord& record =
      batched_.emplace_back(journal_record(header_of(prepared, sequence), spot, prepared.ledger_entry()));
  record.accepted = moment_.monotonic;
  record.this_life = true;
  unsealed_.push_back(&prepared);
  ++frames_;
  return sequence;
}

// Content and frame of each into its place.
void Commit::seal_batch() {
  parts_.crew.share(unsealed_.size(), kSealTogether, [this](std::size_t first, std::size_t last) {
    Bytes body;
    for (std::size_t i = first; i < last; ++i) {
      Prepared& prepared = *unsealed_[i];
      JournalRecord& record = batched_[i];
      FrameHeader header = header_of(prepared, record.sequence);
      header.content = record.content = content_of(prepared);
      body.clear();
      encode_body(prepared.arrival->identity.key, prepared.arrival->envelope, body);
      const std::span place = std::span(parts_.batch).subspan(kBatchHeaderSize + record.spot.offset, record.spot.size);
      parts_.seal_at(place, header, body);
    }
  });
  unsealed_.clear();
}

// What was settled meanwhile rides on this sync; it must leave room for a frame.
void Commit::add_done_frame() {
  std::vector<FiledSettlement> settlements;
  {
    const std::lock_guard lock(parts_.state_mutex);
    const std::size_t size = kFrameHeaderSize + largest_done_list(parts_.done_unwritten.size());
    if (parts_.done_unwritten.empty() || !parts_.journal->fits(size + parts_.journal->largest_frame())) {
      return;
    }
    settlements.swap(parts_.done_unwritten);
  }
  parts_.append_done(settlements, parts_.batch);
  ++frames_;
}

Result<void> Commit::make_room(std::size_t frame_size) {
  while (!parts_.journal->fits(frame_size)) {
    if (parts_.journal->can_start()) {
      HOLDFAST_TRY(parts_.start_segment());
      continue;
    }
    // The ring is full: the oldest segment goes to files first. Nobody else commits meanwhile: this one leads.
    commit_lock_.unlock();
    auto made = [&] {
      const std::lock_guard upkeep(parts_.upkeep_mutex);
      return parts_.make_room();
    }();
    commit_lock_.lock();
    HOLDFAST_TRY(made);
  }
  return {};
}

Result<void> Commit::append() {
  if (frames_ == 0) return {};
  seal_batch();
  const auto puts = static_cast<std::uint32_t>(batched_.size());
  const Nanoseconds before = parts_.clock.monotonic();
  auto first = parts_.journal->append(parts_.batch, frames_, puts);
  if (!first) return first.error();
  const Nanoseconds took = parts_.clock.monotonic() - before;
  adopt(*first);
  frames_ = 0;
  parts_.batch.assign(kBatchHeaderSize, 0);
  if (took >= kSlowSync) {
    const std::lock_guard lock(parts_.state_mutex);
    parts_.slow_syncs.emplace_back(before + took, took);
    if (parts_.slow_syncs.size() > kMaxNotices) parts_.slow_syncs.pop_front();
  }
  return {};
}

// The batch is on the medium: from here on its records are in custody.
void Commit::adopt(FrameSpot first) {
  const std::lock_guard lock(parts_.state_mutex);
  for (JournalRecord& record : batched_) {
    record.spot.segment = first.segment;
    record.spot.offset += first.offset;
    record.place = Place::journal;
    record.waiting = parts_.all_bits(record.route);
    const JournalRecord& added = parts_.records.add(std::move(record));
    parts_.count_waiting(added, added.waiting, true);
    parts_.count_live(added, true);
    ++parts_.journal_taken;
  }
  batched_.clear();
}

Result<Sequence> Commit::add_to_files(Prepared& prepared) {
  HOLDFAST_TRY(append());
  const Sequence sequence = parts_.next_sequence++;
  FrameHeader header = header_of(prepared, sequence);
  header.content = content_of(prepared);
  Bytes body, frame;
  encode_body(prepared.arrival->identity.key, prepared.arrival->envelope, body);
  parts_.seal(header, body, frame);
  // Whether or not the lot is synced at once, this file is: nothing else holds the record.
  HOLDFAST_TRY(parts_.files->write(prepared.id, sequence, frame, !parts_.whole_sync, parts_.direct_dirty));
  direct_.push_back(journal_record(header, {0, 0, static_cast<std::uint32_t>(frame.size())}, prepared.ledger_entry()));
  return sequence;
}

Result<void> Commit::file_direct() {
  if (direct_.empty()) return {};
  HOLDFAST_TRY(parts_.files->sync_lot(parts_.whole_sync, parts_.direct_dirty));
  IndexChange change;
  {
    const std::lock_guard lock(parts_.state_mutex);
    for (const JournalRecord& record : direct_) {
      IndexedRecord row{record.sequence,         record.id, record.route, record.priority, record.spot.size,
                        record.accepted_wall_ns, {}};
      for (const RouteTarget& target : parts_.route_locked(record.route)) row.waiting.push_back(target.target);
      change.filed.push_back(std::move(row));
      change.remember.push_back(ledger_entry(record));
    }
  }
  change.add.taken = direct_.size();
  auto applied = parts_.apply(change, Durability::durable);
  if (!applied && applied.error().kind != ErrorKind::io) {
    // Not taken: nobody who sent the same in this group may be told that it is here.
    for (const JournalRecord& record : std::exchange(direct_, {})) {
      in_group_.erase(record.id);
      HOLDFAST_TRY(undone(parts_.files->remove(record.id, record.sequence)));
    }
  }
  HOLDFAST_TRY(applied);
  for (const JournalRecord& record : direct_) parts_.note_row(record.id, record.sequence);
  direct_.clear();
  return {};
}

Result<void> Commit::finish() {
  HOLDFAST_TRY(append());
  return file_direct();
}

// commit_mutex held.
Result<void> Spool::Parts::start_segment() {
  const std::uint64_t base = next_sequence++;
  HOLDFAST_TRY(journal->start_segment(base));
  const std::lock_guard lock(state_mutex);
  records.begin_segment(base);
  journal_disk_bytes = journal->disk_bytes();
  return {};
}

// What nothing has carried along goes in a batch of its own.
Result<void> Spool::Parts::write_done_frames() {
  const std::lock_guard commit_lock(commit_mutex);
  std::vector<FiledSettlement> settlements;
  {
    const std::lock_guard lock(state_mutex);
    settlements.swap(done_unwritten);
  }
  if (settlements.empty()) return {};
  Bytes done(kBatchHeaderSize);
  append_done(settlements, done);
  const std::size_t size = done.size() - kBatchHeaderSize;
  if (!journal->fits(size) && journal->can_start()) {
    auto started = start_segment();
    if (!started && started.error().kind != ErrorKind::full) return started;
  }
  // Without room there is no frame: a cut then costs a duplicate, and the settling goes on.
  if (!journal->fits(size)) return {};
  auto appended = journal->append(done, 1, 0);
  if (!appended) return appended.error();
  return {};
}

}  // namespace holdfast
