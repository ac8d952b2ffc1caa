// What an earlier life left: manifest, journal, quarantine, index (INVARIANTS.md, rules of recovery).

#include <fmt/format.h>

#include <algorithm>

#include "spool/done_list.h"
#include "spool/parts.h"
#include "spool/reserve.h"

namespace holdfast {
namespace {

constexpr std::uint32_t kSegments = 4;
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

// A spool without a manifest is new only when nothing else is in it: keys are never made again while records exist
// (R3).
Result<Manifest> first_manifest(Spool::Parts& parts) {
  for (const char* used : {"journal", "records", "quarantine", "index.sqlite3"}) {
    auto there = parts.fs.inspect(used);
    if (there)
      return Error{
          ErrorKind::invalid,
          fmt::format("both copies of the manifest are gone, and {} is there: nothing can be opened without them",
                      used)};
    if (there.error().kind != ErrorKind::not_found) return there.error();
  }
  Manifest first;
  first.uuid = random_uuid();
  first.site = parts.options.site;
  first.sequence_floor = 1;
  parts.keyring = Keyring::make(first, parts.recipient);
  return first;
}

// Its syncs: those that cannot be believed (R22), and those that stand for the sync of each file (R21).
Result<void> trust_file_system(Spool::Parts& parts) {
  auto now = parts.fs.space();
  if (!now) return now.error();
  parts.unsafe_fs = !now->safe;
  if (parts.unsafe_fs && !parts.options.allow_unsafe_fs) {
    return Error{
        ErrorKind::invalid,
        fmt::format("the spool directory is on {}, whose syncs cannot be believed (allow_unsafe_fs)", now->type)};
  }
  parts.whole_sync = parts.options.sync == SyncMode::automatic && now->syncs_whole;
  return {};
}

Result<void> take_lock(Spool::Parts& parts) {
  auto locked = parts.fs.lock("LOCK");
  if (!locked && locked.error().kind == ErrorKind::unavailable) {
    return Error{ErrorKind::unavailable, "another process holds this spool (LOCK)"};
  }
  if (!locked) return locked.error();
  parts.lock_file = std::move(*locked);
  return {};
}

// The one that is there, or the first; with it the keys.
Result<Manifest> known_manifest(Spool::Parts& parts) {
  auto loaded = load_manifest(parts.fs);
  if (!loaded && loaded.error().kind == ErrorKind::not_found) return first_manifest(parts);
  if (!loaded) return loaded.error();
  parts.manifest_generation = loaded->generation;
  auto opened = Keyring::open(loaded->manifest, parts.recipient);
  if (!opened) return opened.error();
  parts.keyring = std::move(*opened);
  if (!manifest_is_signed(loaded->manifest, parts.keyring->namer())) {
    return Error{ErrorKind::invalid, "the manifest was altered by someone without the key"};
  }
  if (loaded->one_was_bad)
    parts.life.notice("one copy of the manifest was missing or damaged; it has been written again from the other");
  return std::move(loaded->manifest);
}

// What the frames of the journal tell, while they are read.
struct Found {
  std::vector<TargetSettlement> done;
  Sequence last_put = 0;
};

// Kept, counted, and said (R40).
Result<void> recover_damage(Spool::Parts& parts, const JournalDamage& damage) {
  auto name = parts.files->write_damaged(damage.bytes);
  if (!name && name.error().kind != ErrorKind::full) return name.error();
  const std::string where = name ? *name : "nowhere, for want of room";
  if (damage.acknowledged) {
    parts.recovered_damage.taken += damage.puts_missing;
    parts.recovered_damage.lost += damage.puts_missing;
    parts.life.notice(fmt::format("LOST: {} acknowledged records were in {} damaged bytes of the journal, kept in {}",
                                  damage.puts_missing, damage.bytes.size(), where));
  } else {
    parts.life.notice(fmt::format(
        "the last commit before the stop is damaged: {} bytes, kept in {}; it may never have been acknowledged",
        damage.bytes.size(), where));
  }
  return {};
}

Result<void> recover_frame(Spool::Parts& parts, const FrameHeader& header, ByteView bytes, FrameSpot spot,
                           Found& found) {
  if (header.kind == FrameKind::done) {
    const auto list = read_body(header, bytes, parts.keyring->namer());
    if (!list || !read_done_list(*list, found.done)) ++parts.bad_done_frames;  // (R27)
    return {};
  }
  if (header.kind != FrameKind::put) return {};
  // Sequences only go up; a frame out of line was not put there by us.
  if (header.sequence <= found.last_put) return recover_damage(parts, {Bytes(bytes.begin(), bytes.end()), true, 1});
  found.last_put = header.sequence;
  LedgerEntry identity{header.id, {}, false, header.content};
  parts.places->note(bytes, identity);
  JournalRecord record = journal_record(header, spot, identity);
  record.waiting = all_bits(parts.custody.route(record.route));
  parts.custody.records().add(std::move(record));
  return {};
}

// False: the medium could not be read past the cache.
Result<bool> recover_journal(Spool::Parts& parts, std::vector<TargetSettlement>& done) {
  Found found;
  Sequence highest = 0;
  JournalVisitor visitor;
  visitor.segment_begins = [&](std::uint64_t base) -> Result<void> {
    parts.custody.records().begin_segment(base);
    highest = std::max(highest, base);
    return {};
  };
  visitor.frame = [&](const FrameHeader& header, ByteView bytes, FrameSpot spot) -> Result<void> {
    highest = std::max(highest, header.sequence);
    return recover_frame(parts, header, bytes, spot, found);
  };
  visitor.damage = [&](const JournalDamage& damage) { return recover_damage(parts, damage); };
  auto from_medium = parts.journal->recover(parts.index->retired_base(), visitor);
  if (!from_medium) return from_medium.error();
  // The floor is above all that was ever given; a manifest that came from a backup is the exception (R48).
  auto in_index = parts.index->highest_sequence();
  if (!in_index) return in_index.error();
  parts.first_sequence = std::max({parts.first_sequence, highest + 1, *in_index + 1, parts.index->retired_base() + 1});
  parts.next_sequence = parts.first_sequence;
  parts.expected_names.begin(parts.first_sequence);
  done = std::move(found.done);
  return *from_medium;
}

// A put in the journal outranks a file of the same sequence: the file is written again before the segment is reused
// (R42). Who waits for it, the row knows better.
Result<void> match_journal_with_index(Spool::Parts& parts) {
  if (parts.custody.records().segments().empty()) return {};
  Sequence after = parts.custody.records().segments().front().base - 1;
  for (;;) {
    auto rows = parts.index->list(after, kPage);
    if (!rows) return rows.error();
    for (const IndexedRecord& row : *rows) {
      after = row.sequence;
      JournalRecord* record = parts.custody.records().find(row.sequence);
      if (record == nullptr) continue;
      record->place = Place::filed;
      record->unproven = true;
    }
    if (rows->size() < kPage) break;
  }
  for (auto& segment : parts.custody.records().segments()) {
    for (JournalRecord& record : segment.records) {
      if (record.place != Place::journal) continue;
      auto left = parts.index->is_tombstone(record.sequence);
      if (!left) return left.error();
      if (*left) record.place = Place::left;
    }
  }
  return {};
}

// Of a record in a file the index may not have heard: it was settled in the journal while its row was being written
// (R60). Nor of one whose put is no longer there.
void settle_recovered(Spool::Parts& parts, const std::vector<TargetSettlement>& done) {
  for (const TargetSettlement& settlement : done) {
    JournalRecord* record = parts.custody.records().find(settlement.sequence);
    if (record == nullptr || record->place == Place::filed) {
      parts.unwritten.add_filed(settlement);
    } else if (record->place == Place::journal) {
      record->waiting &= ~bit_of(parts.custody.route(record->route), settlement.target);
    }
  }
}

// Rows without a file in quarantine, and files without a row: both are put right, and counted.
Result<void> match_quarantine(Spool::Parts& parts) {
  std::map<Sequence, RecordId> names;
  HOLDFAST_TRY(parts.files->list_quarantine([&](const QuarantineName& name) { names.emplace(name.sequence, name.id); },
                                            parts.ignored_names));
  IndexChange change;
  for (Sequence after = 0;;) {
    auto rows = parts.index->list_quarantine(after, kPage);
    if (!rows) return rows.error();
    for (const QuarantinedRecord& row : *rows) {
      after = row.sequence;
      if (names.erase(row.sequence) != 0) continue;
      change.quarantine_dropped.emplace_back(row.id, row.sequence);
      ++change.add.lost;
      parts.life.notice(
          fmt::format("LOST: record {} is no longer in quarantine, and nothing says why", row.id.short_hex()));
    }
    if (rows->size() < kPage) break;
  }
  for (const auto& [sequence, id] : names) {
    auto held = parts.index->find(sequence);
    if (!held) return held.error();
    auto dropped = parts.index->is_tombstone(sequence);
    if (!dropped) return dropped.error();
    const JournalRecord* record = parts.custody.records().find(sequence);
    if (*held || *dropped || (record != nullptr && record->place == Place::journal)) {
      // Dropped or requeued, and only the unlink was missing; or a setting aside that did not come to its end: then the
      // record is where it was, and what is here may not even be on the medium.
      HOLDFAST_TRY(parts.files->remove_quarantined(id, sequence));
      continue;
    }
    LedgerEntry identity{id, {}, false, {}};
    auto found = parts.describe_quarantined(id, sequence, identity);
    if (!found) return found.error();
    change.set_aside.push_back(*found);
    change.remember.push_back(identity);
    ++change.add.taken;
  }
  if (change.set_aside.empty() && change.quarantine_dropped.empty()) return {};
  return unless_full(parts.apply(change, Durability::durable));
}

}  // namespace

Result<void> Spool::Parts::take_manifest() {
  life_began = clock.monotonic();
  HOLDFAST_TRY(check_directory(fs));
  HOLDFAST_TRY(trust_file_system(*this));
  HOLDFAST_TRY(take_lock(*this));
  auto known = known_manifest(*this);
  if (!known) return known.error();
  Manifest next = std::move(*known);
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
  sealer.emplace(*keyring, clock, boot);
  places.emplace(*keyring, site);
  site_changed = manifest.site != options.site;
  next_sequence = first_sequence;
  return {};
}

Result<void> Spool::Parts::recover() {
  files = std::make_unique<RecordFiles>(fs, keyring->namer());
  direct.emplace(*files, whole_sync);
  lot.emplace(*files, whole_sync);
  leaving.emplace(*files, *lot, removers, expected_names);
  HOLDFAST_TRY(files->prepare());
  if (boot == 1) reconcile = Reconcile::finished;  // there was nothing (R3), so there is nothing to compare
  auto opened_index = Index::open(fs, manifest.uuid, fmt::format("since boot {}", boot));
  if (!opened_index) return opened_index.error();
  index = std::move(*opened_index);
  running_before = index->running_time();
  if (index->rebuilt() && boot > 1)
    life.notice("the index was missing or damaged; it is being built again from the record files");

  auto opened_journal =
      Journal::open(fs, keyring->namer(), {options.journal_bytes / kSegments / kBlock * kBlock, kSegments});
  if (!opened_journal) return opened_journal.error();
  journal = std::move(*opened_journal);
  frames.emplace(keyring->namer(), *journal, *files);
  std::vector<TargetSettlement> done;
  auto from_medium = recover_journal(*this, done);
  if (!from_medium) return from_medium.error();
  HOLDFAST_TRY(match_journal_with_index(*this));
  settle_recovered(*this, done);
  HOLDFAST_TRY(match_quarantine(*this));
  custody.count_recovered();

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

}  // namespace holdfast
