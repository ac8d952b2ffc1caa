// What an earlier life left: manifest, journal, quarantine, index (INVARIANTS.md, rules of recovery).

#include <fmt/format.h>

#include <algorithm>

#include "spool/done_list.h"
#include "spool/parts.h"
#include "spool/reserve.h"

namespace holdfast {
namespace {

constexpr std::size_t kRowsAtOnce = 1024;
constexpr std::uint32_t kNotForOthers = 0077;

std::array<std::uint8_t, 16> random_uuid() {
  const SecretKey random = SecretKey::random();
  std::array<std::uint8_t, 16> uuid{};
  std::copy_n(random.bytes().begin(), uuid.size(), uuid.begin());
  return uuid;
}

Result<void> check_directory(FileSystem& fs) {
  auto root = fs.inspect("");
  if (!root) return root.error();
  if (!root->ours)
    return Error{ErrorKind::invalid, "the spool directory belongs to another user than this process runs as"};
  if ((root->mode & kNotForOthers) != 0) {
    return Error{
        ErrorKind::invalid,
        fmt::format("the spool directory has mode {:04o}; others may reach it, and it must be 0700", root->mode)};
  }
  return {};
}

}  // namespace

Result<void> Spool::Parts::take_manifest() {
  life_began = clock.monotonic();
  HOLDFAST_TRY(check_directory(fs));
  auto now = fs.space();
  if (!now) return now.error();
  // Syncs that cannot be believed (R22), and those that stand for the sync of each file (R21).
  unsafe_fs = !now->safe;
  if (unsafe_fs && !options.allow_unsafe_fs) {
    return Error{
        ErrorKind::invalid,
        fmt::format("the spool directory is on {}, whose syncs cannot be believed (allow_unsafe_fs)", now->type)};
  }
  whole_sync = options.sync == SyncMode::automatic && now->syncs_whole;
  auto locked = fs.lock("LOCK");
  if (!locked && locked.error().kind == ErrorKind::unavailable) {
    return Error{ErrorKind::unavailable, "another process holds this spool (LOCK)"};
  }
  if (!locked) return locked.error();
  lock_file = std::move(*locked);

  auto loaded = load_manifest(fs);
  if (!loaded && loaded.error().kind != ErrorKind::not_found) return loaded.error();
  Manifest next;
  if (loaded) {
    next = loaded->manifest;
    manifest_generation = loaded->generation;
    auto opened = Keyring::open(next, recipient);
    if (!opened) return opened.error();
    keyring = std::move(*opened);
    if (!manifest_is_signed(next, keyring->namer())) {
      return Error{ErrorKind::invalid, "the manifest was altered by someone without the key"};
    }
    if (loaded->one_was_bad)
      notice("one copy of the manifest was missing or damaged; it has been written again from the other");
  } else {
    auto first = first_manifest();
    if (!first) return first.error();
    next = std::move(*first);
  }
  // A life that was cut may have sealed this much without writing it down.
  next.data_key_bytes += options.data_key_bytes / kDataKeySteps;
  if (next.data_key_bytes >= options.data_key_bytes) keyring->add_data_key(next, recipient);
  ++next.boot;
  // Durable before the first sequence is given (R5).
  first_sequence = next.sequence_floor;
  next.sequence_floor += kFloorStep;
  auto saved = save(next);
  if (!saved && saved.error().kind == ErrorKind::full) {
    // A full disk must not keep the box from draining: this is what the reserve is for.
    const auto given_back = fs.remove(kReservePath);
    if (!given_back) return saved;
    saved = save(next);
  }
  HOLDFAST_TRY(saved);
  keyring->use_current(manifest);
  boot = manifest.boot;
  site = manifest.site;
  site_changed = manifest.site != options.site;
  next_sequence = first_sequence;
  return {};
}

// A spool without a manifest is new only when nothing else is in it: keys are never made again while records exist
// (R3).
Result<Manifest> Spool::Parts::first_manifest() {
  for (const char* used : {"journal", "records", "quarantine", "index.sqlite3"}) {
    auto there = fs.inspect(used);
    if (there)
      return Error{
          ErrorKind::invalid,
          fmt::format("both copies of the manifest are gone, and {} is there: nothing can be opened without them",
                      used)};
    if (there.error().kind != ErrorKind::not_found) return there.error();
  }
  Manifest first;
  first.uuid = random_uuid();
  first.site = options.site;
  first.sequence_floor = 1;
  keyring = Keyring::make(first, recipient);
  return first;
}

Result<void> Spool::Parts::recover() {
  files = std::make_unique<RecordFiles>(fs, keyring->namer());
  HOLDFAST_TRY(files->prepare());
  if (boot == 1) reconcile = Reconcile::finished;  // there was nothing (R3), so there is nothing to compare
  auto opened_index = Index::open(fs, manifest.uuid, fmt::format("since boot {}", boot));
  if (!opened_index) return opened_index.error();
  index = std::move(*opened_index);
  running_before = index->running_time();
  if (index->rebuilt() && boot > 1)
    notice("the index was missing or damaged; it is being built again from the record files");

  auto opened_journal =
      Journal::open(fs, keyring->namer(), {options.journal_bytes / kSegments / kBlock * kBlock, kSegments});
  if (!opened_journal) return opened_journal.error();
  journal = std::move(*opened_journal);
  std::vector<FiledSettlement> done;
  auto from_medium = recover_journal(done);
  if (!from_medium) return from_medium.error();
  HOLDFAST_TRY(match_journal_with_index());
  for (const FiledSettlement& settlement : done) {
    JournalRecord* record = records.find(settlement.sequence);
    if (record == nullptr || record->place == Place::aside) continue;
    const TargetBits bit = bit_of(record->route, settlement.target);
    if (record->place == Place::journal) record->waiting &= ~bit;
  }
  HOLDFAST_TRY(match_quarantine());
  count_recovered();

  // What was damaged is counted once, by giving its segment back; what cannot be read past the cache is written again
  // before it is believed (R37). A full disk puts both off, and stops nothing.
  const bool doubtful = !*from_medium || !(recovered_damage == Totals{});
  while (doubtful && !journal->in_use().empty()) {
    auto retired = retire_oldest();
    if (!retired && retired.error().kind == ErrorKind::full) break;
    HOLDFAST_TRY(retired);
  }
  journal_disk_bytes = journal->disk_bytes();
  return {};
}

Result<bool> Spool::Parts::recover_journal(std::vector<FiledSettlement>& done) {
  Sequence highest = 0;
  JournalVisitor visitor;
  visitor.segment_begins = [&](std::uint64_t base) -> Result<void> {
    records.begin_segment(base);
    highest = std::max(highest, base);
    return {};
  };
  visitor.frame = [&](const FrameHeader& header, ByteView bytes, FrameSpot spot) -> Result<void> {
    highest = std::max(highest, header.sequence);
    return recover_frame(header, bytes, spot, done);
  };
  visitor.damage = [&](const JournalDamage& damage) { return recover_damage(damage); };
  auto from_medium = journal->recover(index->retired_base(), visitor);
  if (!from_medium) return from_medium.error();
  // The floor is above all that was ever given; a manifest that came from a backup is the exception (R48).
  auto in_index = index->highest_sequence();
  if (!in_index) return in_index.error();
  first_sequence = std::max({first_sequence, highest + 1, *in_index + 1, index->retired_base() + 1});
  next_sequence = first_sequence;
  return *from_medium;
}

Result<void> Spool::Parts::recover_frame(const FrameHeader& header, ByteView bytes, FrameSpot spot,
                                         std::vector<FiledSettlement>& done) {
  if (header.kind == FrameKind::done) {
    const auto list = read_body(header, bytes, keyring->namer());
    if (!list || !read_done_list(*list, done)) ++bad_done_frames;  // (R27)
    return {};
  }
  if (header.kind != FrameKind::put) return {};
  // Sequences only go up; a frame out of line was not put there by us.
  if (header.sequence <= highest_recovered) return recover_damage({Bytes(bytes.begin(), bytes.end()), true, 1});
  highest_recovered = header.sequence;
  LedgerEntry identity{header.id, {}, false, header.content};
  place_in_stream(identity, bytes);
  JournalRecord record = journal_record(header, spot, identity);
  record.waiting = all_bits(record.route);
  records.add(std::move(record));
  return {};
}

// Kept, counted, and said (R40).
Result<void> Spool::Parts::recover_damage(const JournalDamage& damage) {
  auto name = files->write_damaged(damage.bytes);
  if (!name && name.error().kind != ErrorKind::full) return name.error();
  const std::string where = name ? *name : "nowhere, for want of room";
  if (damage.acknowledged) {
    recovered_damage.taken += damage.puts_missing;
    recovered_damage.lost += damage.puts_missing;
    notice(fmt::format("LOST: {} acknowledged records were in {} damaged bytes of the journal, kept in {}",
                       damage.puts_missing, damage.bytes.size(), where));
  } else {
    notice(fmt::format(
        "the last commit before the stop is damaged: {} bytes, kept in {}; it may never have been acknowledged",
        damage.bytes.size(), where));
  }
  return {};
}

// A put in the journal outranks a file of the same sequence: the file is written again before the segment is reused
// (R42). Who waits for it, the row knows better.
Result<void> Spool::Parts::match_journal_with_index() {
  if (records.segments().empty()) return {};
  Sequence after = records.segments().front().base - 1;
  for (;;) {
    auto rows = index->list(after, kRowsAtOnce);
    if (!rows) return rows.error();
    for (const IndexedRecord& row : *rows) {
      after = row.sequence;
      JournalRecord* record = records.find(row.sequence);
      if (record == nullptr) continue;
      record->place = Place::filed;
      record->unproven = true;
    }
    if (rows->size() < kRowsAtOnce) break;
  }
  for (auto& segment : records.segments()) {
    for (JournalRecord& record : segment.records) {
      if (record.place != Place::journal) continue;
      auto left = index->is_tombstone(record.sequence);
      if (!left) return left.error();
      if (*left) record.place = Place::aside;
    }
  }
  return {};
}

// Rows without a file in quarantine, and files without a row: both are put right, and counted.
Result<void> Spool::Parts::match_quarantine() {
  std::map<Sequence, RecordId> names;
  HOLDFAST_TRY(files->list_quarantine([&](const QuarantineName& name) { names.emplace(name.sequence, name.id); },
                                      ignored_names));
  IndexChange change;
  for (Sequence after = 0;;) {
    auto rows = index->list_quarantine(after, kRowsAtOnce);
    if (!rows) return rows.error();
    for (const QuarantinedRecord& row : *rows) {
      after = row.sequence;
      if (names.erase(row.sequence) != 0) continue;
      change.quarantine_dropped.emplace_back(row.id, row.sequence);
      ++change.add.lost;
      notice(fmt::format("LOST: record {} is no longer in quarantine, and nothing says why", row.id.short_hex()));
    }
    if (rows->size() < kRowsAtOnce) break;
  }
  for (const auto& [sequence, id] : names) {
    auto held = index->find(sequence);
    if (!held) return held.error();
    auto dropped = index->is_tombstone(sequence);
    if (!dropped) return dropped.error();
    const JournalRecord* record = records.find(sequence);
    if (*held || *dropped || (record != nullptr && record->place == Place::journal)) {
      // Dropped or requeued, and only the unlink was missing; or a setting aside that did not come to its end: then the
      // record is where it was, and what is here may not even be on the medium.
      HOLDFAST_TRY(files->remove_quarantined(id, sequence));
      continue;
    }
    LedgerEntry identity{id, {}, false, {}};
    auto found = describe_quarantined(id, sequence, identity);
    if (!found) return found.error();
    change.set_aside.push_back(*found);
    change.remember.push_back(identity);
    ++change.add.taken;
  }
  if (change.set_aside.empty() && change.quarantine_dropped.empty()) return {};
  return unless_full(apply(change, Durability::durable));
}

void Spool::Parts::count_recovered() {
  for (auto& segment : records.segments()) {
    for (JournalRecord& record : segment.records) {
      ++journal_taken;
      if (record.place != Place::journal) continue;
      if (complete(record)) {
        record.waiting = 0;
        ++journal_delivered;
      } else {
        count_live(record, true);
        count_waiting(record, record.waiting, true);
      }
    }
  }
}

}  // namespace holdfast
