// From arrivals to verdicts: identity, duplicates, sequence, seal, one sync (INVARIANTS.md, rules of the commit).

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "spool/commit.h"

namespace holdfast {
namespace {

constexpr std::size_t kMaxBatchBytes = 4u << 20;  // one append; bounds memory and the time of one sync
constexpr std::size_t kSealTogether = 16;         // records: what a helper of the crew takes at once
constexpr Nanoseconds kSlowSync = std::chrono::seconds(1);
constexpr std::size_t kMaxSlowSyncs = 32;

// The key a conflicting newcomer is known by: the same newcomer again is a duplicate of itself.
std::string conflict_key(const Arrival& arrival) {
  Bytes content(arrival.envelope.subject.begin(), arrival.envelope.subject.end());
  content.push_back(0);
  content.insert(content.end(), arrival.envelope.payload.begin(), arrival.envelope.payload.end());
  return arrival.identity.key + ":conflict:" + to_hex(sha256(content));
}

// And the key that another message with the same identity and content is kept under.
std::string duplicate_key(const Arrival& arrival) {
  const Origin& origin = arrival.envelope.origin;
  return fmt::format("{}:duplicate:{}:{}:{}", arrival.identity.key, escape_component(origin.stream), origin.sequence,
                     origin.timestamp_ns);
}

bool same_content(const Arrival& a, const Arrival& b) {
  return a.envelope.subject == b.envelope.subject && a.envelope.payload == b.envelope.payload;
}

// commit_mutex held.
Result<void> start_segment(Spool::Parts& parts) {
  const std::uint64_t base = parts.next_sequence++;
  HOLDFAST_TRY(parts.journal->start_segment(base));
  const std::lock_guard lock(parts.state_mutex);
  parts.custody.records().begin_segment(base);
  parts.journal_disk_bytes = parts.journal->disk_bytes();
  return {};
}

}  // namespace

void Commit::expect(std::size_t arrivals) {
  in_group_.reserve(arrivals);
  batched_.reserve(arrivals);
  unsealed_.reserve(arrivals);
}

Result<void> Commit::take(CommitRequest& request) {
  const std::size_t earlier = witnesses_.size();
  auto taken = decide_all(request);
  // Before the next request: what has no room is not taken, and only who sent it hears of that.
  if (taken) taken = file_direct();
  if (!taken) witnesses_.resize(earlier);  // what they repeat may not be here
  return taken;
}

Result<void> Commit::decide_all(CommitRequest& request) {
  request.verdicts.reserve(request.prepared.size());
  for (Prepared& prepared : request.prepared) {
    auto verdict = decide(prepared);
    if (!verdict) return verdict.error();
    request.verdicts.push_back(*verdict);
  }
  return {};
}

Result<Verdict> Commit::decide(Prepared& prepared) {
  const auto found = look_up(prepared);
  if (!found) return found.error();
  if (found->where != SeenIn::nowhere) return decide_known(prepared, *found);
  const auto known = was_at_place(prepared);
  if (!known) return known.error();
  if (*known) return Verdict{VerdictKind::duplicate, SeenIn::ledger, Reason::none, prepared.id, 0};
  const Reason refused = prepared.arrival->refused;
  if (refused != Reason::none) return quarantine(prepared, {VerdictKind::refused, SeenIn::nowhere, refused, {}, 0});
  if (is_too_large(prepared))
    return quarantine(prepared, {VerdictKind::refused, SeenIn::nowhere, Reason::too_large, {}, 0});
  return take_in(prepared, {VerdictKind::accepted, SeenIn::nowhere, Reason::none, {}, 0});
}

// Other content under a known identity is never dropped (R16); the same, when the source asks for it, kept once.
Result<Verdict> Commit::decide_known(Prepared& prepared, const Found& found) {
  const Arrival& arrival = *prepared.arrival;
  Verdict verdict{VerdictKind::duplicate, found.where, Reason::none, prepared.id, 0};
  std::string key;
  if (!found.same_content) {
    verdict.kind = VerdictKind::conflict;
    verdict.reason = Reason::conflict;
    key = conflict_key(arrival);
  } else {
    const auto redelivery = is_redelivery(prepared);
    if (!redelivery) return redelivery.error();
    if (*redelivery) return verdict;
    if (arrival.on_duplicate == OnDuplicate::skip || arrival.refused != Reason::none) {
      witnesses_.push_back(prepared.witness());
      return verdict;
    }
    verdict.reason = Reason::duplicate;
    key = duplicate_key(arrival);
  }
  const auto again = rename(prepared, std::move(key));
  if (!again) return again.error();
  if (*again != SeenIn::nowhere) return kept_before(prepared, {VerdictKind::duplicate, *again, verdict.reason, {}, 0});
  const bool forward = verdict.kind == VerdictKind::conflict && arrival.on_conflict == OnConflict::forward &&
                       arrival.refused == Reason::none && !is_too_large(prepared);
  return forward ? take_in(prepared, verdict) : quarantine(prepared, verdict);
}

// What equals an earlier conflict is skipped; where it is not that very message, its place is remembered all the same.
Result<Verdict> Commit::kept_before(const Prepared& prepared, Verdict verdict) {
  const auto redelivery = is_redelivery(prepared);
  if (!redelivery) return redelivery.error();
  if (!*redelivery) witnesses_.push_back(prepared.witness());
  verdict.id = prepared.id;
  return verdict;
}

Result<SeenIn> Commit::rename(Prepared& prepared, std::string key) {
  const Arrival& arrival = *prepared.arrival;
  prepared.own_key = std::move(key);
  prepared.id = parts_.keyring->namer().record_id(prepared.own_key);
  prepared.content.reset();
  prepared.positional = false;
  prepared.position = parts_.places->of(arrival.envelope.origin, false);
  prepared.frame_size = sealed_frame_size(encoded_size(prepared.own_key, arrival.envelope));
  const auto found = look_up(prepared);
  if (!found) return found.error();
  return found->where;
}

// The same message of the stream once more: by its place, which is remembered of every message that was taken.
Result<bool> Commit::is_redelivery(const Prepared& prepared) {
  if (prepared.positional) return true;
  if (const auto earlier = in_group_.find(prepared.id); earlier != in_group_.end())
    return earlier->second->envelope.origin == prepared.arrival->envelope.origin;
  {
    const std::lock_guard lock(parts_.state_mutex);
    if (const JournalRecord* record = parts_.custody.records().find(prepared.id);
        record && record->position == prepared.position)
      return true;
  }
  const std::lock_guard lock(parts_.index_mutex);
  const auto seen = parts_.index->ledger().find(prepared.id, prepared.position);
  if (!seen) return seen.error();
  return seen->has_value();
}

// The very message was taken before, or published aside, whatever named it then: its key may be forgotten, or made in
// another way now. What the journal has is found by its key.
Result<bool> Commit::was_at_place(const Prepared& prepared) {
  const std::lock_guard lock(parts_.index_mutex);
  StreamPosition place = *prepared.position;
  for (const std::uint64_t tag : {place.stream_tag, prepared.other_tag}) {
    place.stream_tag = tag;
    if (!parts_.index->ledger().maybe_seen(prepared.id, place)) continue;
    const auto seen = parts_.index->ledger().find(prepared.id, place);
    if (!seen) return seen.error();
    if (seen->has_value()) return true;
  }
  return false;
}

// On the medium before they are acknowledged: the power that takes them may set the stream back, too.
Result<void> Commit::remember_witnesses() {
  if (witnesses_.empty()) return {};
  IndexChange change;
  change.remember = std::exchange(witnesses_, {});
  return parts_.apply(change, Durability::durable);
}

bool Commit::is_too_large(const Prepared& prepared) const {
  return prepared.frame_size > parts_.options.limits.max_record_bytes + kFrameHeaderSize + kFrameTagSize;
}

Result<Verdict> Commit::take_in(Prepared& prepared, Verdict verdict) {
  const auto sequence = goes_to_file(prepared) ? add_to_files(prepared) : add_to_batch(prepared);
  if (!sequence) return sequence.error();
  in_group_.emplace(prepared.id, prepared.arrival);
  verdict.id = prepared.id;
  verdict.sequence = *sequence;
  return verdict;
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
    if (const JournalRecord* record = parts_.custody.records().find(prepared.id)) {
      content = record->content;
      left = record->place != Place::filed && !parts_.custody.in_custody(*record);
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
  return parts_.sealer->header(accepted_, sequence, prepared.id, arrival.route, arrival.priority);
}

// Set aside before anything may be acknowledged (R13): the file is on the medium, and remembered, when this returns.
Result<Verdict> Commit::quarantine(Prepared& prepared, Verdict verdict) {
  {
    const std::lock_guard lock(parts_.index_mutex);
    const std::uint64_t bytes = parts_.index->quarantine_bytes() + prepared.frame_size;
    quarantine_is_full_ = bytes > parts_.options.limits.quarantine_max_bytes;
  }
  if (quarantine_is_full_) {
    const std::lock_guard lock(parts_.state_mutex);
    parts_.gauge.note_full_quarantine(parts_.clock.monotonic());
    return Error{ErrorKind::full, "the quarantine is full (spool.quarantine_max_bytes)"};
  }
  const Sequence sequence = parts_.next_sequence++;
  FrameHeader header = header_of(prepared, sequence);
  header.content = content_of(prepared);
  Bytes body, frame, note;
  encode_body(prepared.key(), prepared.arrival->envelope, body);
  parts_.sealer->seal(header, body, frame);
  parts_.sealer->append_note(header, verdict.reason, TargetNumber{}, "", note);
  HOLDFAST_TRY(parts_.files->write_quarantined(prepared.id, sequence, frame, note));
  IndexChange change;
  change.set_aside.push_back({sequence, prepared.id, verdict.reason, TargetNumber{}, prepared.arrival->route,
                              header.priority, frame.size() + note.size(), header.accepted_wall_ns});
  change.add.taken = 1;
  change.remember.push_back(prepared.ledger_entry());
  if (auto applied = parts_.apply(change, Durability::lazy); !applied) {
    if (applied.error().kind != ErrorKind::io)
      HOLDFAST_TRY(undone(parts_.files->remove_quarantined(prepared.id, sequence)));
    return applied.error();
  }
  in_group_.emplace(prepared.id, prepared.arrival);
  verdict.id = prepared.id;
  verdict.sequence = sequence;
  return verdict;
}

// Records become due in the order of their sequences, whichever way each goes: a reader's cursor that has passed one
// never looks back (R15).
Result<Sequence> Commit::add_to_batch(Prepared& prepared) {
  HOLDFAST_TRY(file_direct());
  const std::size_t pending = parts_.batch.size() - kBatchHeaderSize;
  if (!parts_.journal->fits(pending + prepared.frame_size) || pending + prepared.frame_size > kMaxBatchBytes) {
    HOLDFAST_TRY(append());  // a batch never crosses a segment (R11)
    HOLDFAST_TRY(find_segment_for(prepared.frame_size));
  }
  if (frames_ == 0) add_done_frame();

  // Only now: a segment's base is below every sequence in it.
  const Sequence sequence = parts_.next_sequence++;
  const FrameSpot spot{0, static_cast<std::uint32_t>(parts_.batch.size() - kBatchHeaderSize),
                       static_cast<std::uint32_t>(prepared.frame_size)};
  parts_.batch.resize(parts_.batch.size() + spot.size);
  JournalRecord& record =
      batched_.emplace_back(journal_record(header_of(prepared, sequence), spot, prepared.ledger_entry()));
  record.accepted = accepted_.monotonic;
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
      encode_body(prepared.key(), prepared.arrival->envelope, body);
      const std::span place = std::span(parts_.batch).subspan(kBatchHeaderSize + record.spot.offset, record.spot.size);
      parts_.sealer->seal_at(place, header, body);
    }
  });
  unsealed_.clear();
}

// What was settled meanwhile rides on this sync; it must leave room for a frame.
void Commit::add_done_frame() {
  std::vector<TargetSettlement> settlements;
  {
    const std::lock_guard lock(parts_.state_mutex);
    const std::size_t waiting = parts_.unwritten.done(), size = kFrameHeaderSize + largest_done_list(waiting);
    if (waiting == 0 || !parts_.journal->fits(size + parts_.journal->largest_frame())) return;
    settlements = parts_.unwritten.take_done();
  }
  parts_.sealer->append_done(settlements, parts_.batch);
  ++frames_;
}

Result<void> Commit::find_segment_for(std::size_t frame_size) {
  while (!parts_.journal->fits(frame_size)) {
    if (parts_.journal->can_start()) {
      HOLDFAST_TRY(start_segment(parts_));
      continue;
    }
    // The ring is full: the oldest segment goes to files first. Nobody else commits meanwhile: this one leads.
    commit_lock_.unlock();
    auto made = [&] {
      const std::lock_guard upkeep(parts_.upkeep_mutex);
      return parts_.free_a_segment();
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
  take_custody(*first);
  frames_ = 0;
  parts_.batch.assign(kBatchHeaderSize, 0);
  if (took >= kSlowSync) {
    const std::lock_guard lock(parts_.state_mutex);
    parts_.slow_syncs.emplace_back(before + took, took);
    if (parts_.slow_syncs.size() > kMaxSlowSyncs) parts_.slow_syncs.pop_front();
  }
  return {};
}

// The batch is on the medium: from here on its records are in custody.
void Commit::take_custody(FrameSpot first) {
  const std::lock_guard lock(parts_.state_mutex);
  for (JournalRecord& record : batched_) {
    record.spot.segment = first.segment;
    record.spot.offset += first.offset;
    parts_.custody.add(std::move(record));
  }
  batched_.clear();
}

Result<Sequence> Commit::add_to_files(Prepared& prepared) {
  HOLDFAST_TRY(append());
  const Sequence sequence = parts_.next_sequence++;
  FrameHeader header = header_of(prepared, sequence);
  header.content = content_of(prepared);
  Bytes body, frame;
  encode_body(prepared.key(), prepared.arrival->envelope, body);
  parts_.sealer->seal(header, body, frame);
  // Whether or not the lot is synced at once, this file is: nothing else holds the record.
  HOLDFAST_TRY(parts_.direct->write(prepared.id, sequence, frame));
  direct_.push_back(journal_record(header, {0, 0, static_cast<std::uint32_t>(frame.size())}, prepared.ledger_entry()));
  return sequence;
}

Result<void> Commit::file_direct() {
  if (direct_.empty()) return {};
  HOLDFAST_TRY(parts_.direct->sync());
  IndexChange change;
  {
    const std::lock_guard lock(parts_.state_mutex);
    for (const JournalRecord& record : direct_) {
      change.filed.push_back(row_of(record, all_targets(parts_.custody.route(record.route))));
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
  for (const JournalRecord& record : direct_) parts_.expected_names.row_came(record.id, record.sequence);
  direct_.clear();
  return {};
}

// A duplicate's place is remembered only behind the record that it repeats (R58).
Result<void> Commit::finish() {
  HOLDFAST_TRY(append());
  HOLDFAST_TRY(file_direct());
  return remember_witnesses();
}

// What nothing has carried along goes in a batch of its own.
Result<void> Spool::Parts::write_done_frames() {
  const std::lock_guard commit_lock(commit_mutex);
  std::vector<TargetSettlement> settlements;
  {
    const std::lock_guard lock(state_mutex);
    settlements = unwritten.take_done();
  }
  if (settlements.empty()) return {};
  Bytes done(kBatchHeaderSize);
  sealer->append_done(settlements, done);
  const std::size_t size = done.size() - kBatchHeaderSize;
  if (!journal->fits(size) && journal->can_start()) {
    HOLDFAST_TRY(unless_full(start_segment(*this)));
  }
  // Without room there is no frame: a cut then costs a duplicate, and the settling goes on.
  if (!journal->fits(size)) return {};
  auto appended = journal->append(done, 1, 0);
  if (!appended) return appended.error();
  return {};
}

}  // namespace holdfast
