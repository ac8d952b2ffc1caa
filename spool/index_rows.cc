#include "spool/index_rows.h"

#include <algorithm>
#include <set>

#include "spool/index_columns.h"
#include "spool/sequence_runs.h"

namespace holdfast {

namespace {

// waiting and tombstone are read in the order of their keys, whatever the backlog: due() is one range scan.
constexpr const char* kTables =
    "CREATE TABLE record(sequence INTEGER PRIMARY KEY, id BLOB NOT NULL, route INTEGER NOT NULL, priority INTEGER NOT "
    "NULL,"
    " size INTEGER NOT NULL, accepted INTEGER NOT NULL);"
    "CREATE TABLE waiting(target INTEGER NOT NULL, priority INTEGER NOT NULL, sequence INTEGER NOT NULL,"
    " PRIMARY KEY(target, priority, sequence)) WITHOUT ROWID;"
    "CREATE TABLE tombstone(unlinked INTEGER NOT NULL, sequence INTEGER NOT NULL, id BLOB NOT NULL,"
    " PRIMARY KEY(unlinked, sequence)) WITHOUT ROWID;"
    "CREATE TABLE quarantine(sequence INTEGER NOT NULL, id BLOB NOT NULL, reason INTEGER NOT NULL, target INTEGER NOT "
    "NULL,"
    " route INTEGER NOT NULL, priority INTEGER NOT NULL, size INTEGER NOT NULL, accepted INTEGER NOT NULL,"
    " PRIMARY KEY(sequence, id)) WITHOUT ROWID;"
    "CREATE TABLE waiting_count(target INTEGER PRIMARY KEY, records INTEGER NOT NULL, bytes INTEGER NOT NULL);"
    "CREATE TABLE state(one INTEGER PRIMARY KEY, taken INTEGER NOT NULL, delivered INTEGER NOT NULL,"
    " discarded INTEGER NOT NULL, expired INTEGER NOT NULL, lost INTEGER NOT NULL, retired_base INTEGER NOT NULL,"
    " running_time INTEGER NOT NULL, records INTEGER NOT NULL, file_bytes INTEGER NOT NULL,"
    " quarantined INTEGER NOT NULL, quarantine_bytes INTEGER NOT NULL);"
    "INSERT INTO state VALUES(1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)";

WaitingCount& count_of(Tally& tally, TargetNumber target) {
  const auto before = [](const WaitingCount& count, TargetNumber wanted) { return count.target < wanted; };
  const auto at = std::lower_bound(tally.waiting.begin(), tally.waiting.end(), target, before);
  if (at != tally.waiting.end() && at->target == target) return *at;
  return *tally.waiting.insert(at, WaitingCount{target, 0, 0});
}

void add(Totals& totals, const Totals& more) {
  totals.taken += more.taken;
  totals.delivered += more.delivered;
  totals.discarded += more.discarded;
  totals.expired += more.expired;
  totals.lost += more.lost;
}

}  // namespace

Result<void> IndexRows::make_tables(Database& database) {
  return database.execute(kTables);
}

Result<std::unique_ptr<IndexRows>> IndexRows::open(Database& database) {
  std::unique_ptr<IndexRows> rows(new IndexRows(database));
  HOLDFAST_TRY(rows->prepare_changes());
  HOLDFAST_TRY(rows->prepare_questions());
  Statement top;
  HOLDFAST_TRY(database.prepare(top,
                                "SELECT max((SELECT ifnull(max(sequence), 0) FROM tombstone WHERE unlinked = 0),"
                                " (SELECT ifnull(max(sequence), 0) FROM tombstone WHERE unlinked = 1))"));
  HOLDFAST_TRY(each_row(top, [&] {
    rows->tombstone_top_ = top.u64(0);
    return true;
  }));
  return rows;
}

Result<void> IndexRows::prepare_changes() {
  Database& db = database_;
  HOLDFAST_TRY(db.prepare(insert_record_, "INSERT OR IGNORE INTO record VALUES(?, ?, ?, ?, ?, ?)"));
  HOLDFAST_TRY(db.prepare(insert_waiting_, "INSERT OR IGNORE INTO waiting VALUES(?, ?, ?)"));
  HOLDFAST_TRY(db.prepare(insert_tombstone_, "INSERT INTO tombstone VALUES(0, ?, ?)"));
  HOLDFAST_TRY(db.prepare(delete_tombstone_, "DELETE FROM tombstone WHERE unlinked IN (0, 1) AND sequence = ?"));
  HOLDFAST_TRY(
      db.prepare(mark_unlinked_, "UPDATE tombstone SET unlinked = 1 WHERE unlinked = 0 AND sequence BETWEEN ? AND ?"));
  HOLDFAST_TRY(db.prepare(delete_records_, "DELETE FROM record WHERE sequence BETWEEN ? AND ?"));
  HOLDFAST_TRY(db.prepare(delete_waiting_,
                          "DELETE FROM waiting WHERE target = ? AND priority = ? AND sequence BETWEEN ? AND ?"));
  HOLDFAST_TRY(db.prepare(entomb_records_,
                          "INSERT INTO tombstone SELECT 0, sequence, id FROM record WHERE sequence BETWEEN ? AND ?"));
  HOLDFAST_TRY(db.prepare(forget_tombstones_, "DELETE FROM tombstone WHERE unlinked = 1 AND sequence < ?"));
  HOLDFAST_TRY(db.prepare(insert_quarantined_, "INSERT INTO quarantine VALUES(?, ?, ?, ?, ?, ?, ?, ?)"));
  HOLDFAST_TRY(db.prepare(delete_quarantined_, "DELETE FROM quarantine WHERE sequence = ? AND id = ?"));
  HOLDFAST_TRY(db.prepare(write_state_,
                          "UPDATE state SET taken = ?, delivered = ?, discarded = ?, expired = ?, lost = ?,"
                          " retired_base = ?, running_time = ?, records = ?, file_bytes = ?,"
                          " quarantined = ?, quarantine_bytes = ?"));
  HOLDFAST_TRY(db.prepare(write_count_, "INSERT OR REPLACE INTO waiting_count VALUES(?, ?, ?)"));
  return db.prepare(delete_count_, "DELETE FROM waiting_count WHERE target = ?");
}

Result<void> IndexRows::apply(const IndexChange& change, Tally& tally) {
  for (const auto& record : change.filed) HOLDFAST_TRY(file(record, tally));
  for (const auto& [target, sequence] : change.settled) HOLDFAST_TRY(settle(target, sequence, tally));
  for (const auto& [first, last] : runs_of(change.left)) HOLDFAST_TRY(leave_together(first, last, tally));
  for (const Sequence sequence : change.entombed) HOLDFAST_TRY(leave(sequence, tally));
  for (const auto& [first, last] : runs_of(change.unlinked))
    HOLDFAST_TRY(mark_unlinked_.bind(1, first).bind(2, last).run());
  if (const auto& below = change.forget_tombstones_below) HOLDFAST_TRY(forget_tombstones_.bind(1, *below).run());
  for (const auto& record : change.set_aside) HOLDFAST_TRY(set_aside(record, tally));
  for (const auto& [id, sequence] : change.quarantine_dropped) HOLDFAST_TRY(drop_quarantined(id, sequence, tally));
  add(tally.totals, change.add);
  if (change.retired_base) tally.retired_base = std::max(tally.retired_base, *change.retired_base);
  tally.running_time = std::max(tally.running_time, change.running_time);
  std::erase_if(tally.waiting, [](const WaitingCount& count) { return count.records == 0; });
  return {};
}

// --- Records

Result<void> IndexRows::file(const IndexedRecord& record, Tally& tally) {
  const auto insert = [&]() -> Result<std::uint64_t> {
    insert_record_.bind(1, record.sequence).bind(2, record.id.bytes).bind(3, number(record.route));
    insert_record_.bind(4, record.priority).bind(5, record.size).bind(6, from_signed(record.accepted_wall_ns));
    HOLDFAST_TRY(insert_record_.run());
    return database_.changes();
  };
  auto inserted = insert();
  if (!inserted.ok()) return inserted.error();
  if (*inserted == 0) {
    const auto known = find(record.sequence);
    if (!known.ok()) return known.error();
    if (!*known) return database_.damaged("a record that is there and is not");
    HOLDFAST_TRY(remove_record(**known, tally));
    inserted = insert();
    if (!inserted.ok()) return inserted.error();
  }
  ++tally.records;
  tally.file_bytes += allocated(record.size);
  for (const TargetNumber target : record.waiting) HOLDFAST_TRY(add_waiting(target, record, tally));
  if (record.sequence > tombstone_top_) return {};
  return delete_tombstone_.bind(1, record.sequence).run();
}

Result<void> IndexRows::settle(TargetNumber target, Sequence sequence, Tally& tally) {
  const auto record = find(sequence);
  if (!record.ok()) return record.error();
  return *record ? remove_waiting(target, **record, tally) : Result<void>{};
}

Result<void> IndexRows::leave(Sequence sequence, Tally& tally) {
  const auto record = find(sequence);
  if (!record.ok()) return record.error();
  if (*record) {
    HOLDFAST_TRY(remove_record(**record, tally));
  } else {
    const auto known = is_tombstone(sequence);
    if (!known.ok()) return known.error();
    if (*known) return {};
  }
  tombstone_top_ = std::max(tombstone_top_, sequence);
  return insert_tombstone_.bind(1, sequence).bind(2, *record ? ByteView((*record)->id.bytes) : ByteView()).run();
}

// The same for all of a run that has a row for each; one by one otherwise.
Result<void> IndexRows::leave_together(Sequence first, Sequence last, Tally& tally) {
  if (first == last) return leave(first, tally);
  std::uint64_t records = 0, bytes = 0;
  std::set<Priority> priorities;
  measure_records_.bind(1, first).bind(2, last);
  HOLDFAST_TRY(each_row(measure_records_, [&] {
    ++records;
    priorities.insert(static_cast<Priority>(measure_records_.u64(0)));
    bytes += allocated(measure_records_.u64(1));
    return true;
  }));
  if (records != last - first + 1) {
    for (Sequence sequence = first; sequence <= last; ++sequence) HOLDFAST_TRY(leave(sequence, tally));
    return {};
  }
  for (WaitingCount& count : tally.waiting) {
    for (const Priority priority : priorities) HOLDFAST_TRY(remove_waiting_run(count, priority, first, last));
  }
  tombstone_top_ = std::max(tombstone_top_, last);
  HOLDFAST_TRY(entomb_records_.bind(1, first).bind(2, last).run());
  HOLDFAST_TRY(delete_records_.bind(1, first).bind(2, last).run());
  HOLDFAST_TRY(subtract(tally.records, records));
  return subtract(tally.file_bytes, bytes);
}

Result<void> IndexRows::remove_waiting_run(WaitingCount& count, Priority priority, Sequence first, Sequence last) {
  std::uint64_t records = 0, bytes = 0;
  measure_waiting_.bind(1, number(count.target)).bind(2, priority).bind(3, first).bind(4, last);
  HOLDFAST_TRY(each_row(measure_waiting_, [&] {
    ++records;
    bytes += measure_waiting_.u64(0);
    return true;
  }));
  if (records == 0) return {};
  delete_waiting_.bind(1, number(count.target)).bind(2, priority).bind(3, first).bind(4, last);
  HOLDFAST_TRY(delete_waiting_.run());
  HOLDFAST_TRY(subtract(count.records, records));
  return subtract(count.bytes, bytes);
}

Result<std::optional<IndexedRecord>> IndexRows::find(Sequence sequence) {
  std::optional<IndexedRecord> record;
  list_records_.bind(1, std::max<Sequence>(sequence, 1) - 1).bind(2, 1);
  HOLDFAST_TRY(each_row(list_records_, [&] {
    if (list_records_.u64(0) == sequence) record = record_at(list_records_);
    return true;
  }));
  return record;
}

Result<void> IndexRows::add_waiting(TargetNumber target, const IndexedRecord& record, Tally& tally) {
  HOLDFAST_TRY(insert_waiting_.bind(1, number(target)).bind(2, record.priority).bind(3, record.sequence).run());
  if (database_.changes() == 0) return {};
  WaitingCount& count = count_of(tally, target);
  ++count.records;
  count.bytes += record.size;
  return {};
}

Result<void> IndexRows::remove_waiting(TargetNumber target, const IndexedRecord& record, Tally& tally) {
  const Sequence sequence = record.sequence;
  delete_waiting_.bind(1, number(target)).bind(2, record.priority).bind(3, sequence).bind(4, sequence);
  HOLDFAST_TRY(delete_waiting_.run());
  if (database_.changes() == 0) return {};
  WaitingCount& count = count_of(tally, target);
  HOLDFAST_TRY(subtract(count.records, 1));
  return subtract(count.bytes, record.size);
}

Result<void> IndexRows::remove_record(const IndexedRecord& record, Tally& tally) {
  std::vector<TargetNumber> targets;
  for (const WaitingCount& count : tally.waiting) targets.push_back(count.target);
  for (const TargetNumber target : targets) HOLDFAST_TRY(remove_waiting(target, record, tally));
  HOLDFAST_TRY(delete_records_.bind(1, record.sequence).bind(2, record.sequence).run());
  HOLDFAST_TRY(subtract(tally.records, 1));
  return subtract(tally.file_bytes, allocated(record.size));
}

Result<void> IndexRows::subtract(std::uint64_t& from, std::uint64_t count) {
  if (from < count) return database_.damaged("a count below its rows");
  from -= count;
  return {};
}

// --- Quarantine

Result<void> IndexRows::set_aside(const QuarantinedRecord& record, Tally& tally) {
  HOLDFAST_TRY(drop_quarantined(record.id, record.sequence, tally));
  Statement& insert = insert_quarantined_;
  insert.bind(1, record.sequence)
      .bind(2, record.id.bytes)
      .bind(3, number(record.reason))
      .bind(4, number(record.target));
  insert.bind(5, number(record.route)).bind(6, record.priority).bind(7, record.size);
  HOLDFAST_TRY(insert.bind(8, from_signed(record.accepted_wall_ns)).run());
  ++tally.quarantined;
  tally.quarantine_bytes += allocated(record.size);
  return {};
}

Result<void> IndexRows::drop_quarantined(const RecordId& id, Sequence sequence, Tally& tally) {
  std::optional<std::uint64_t> size;
  find_quarantined_.bind(1, sequence).bind(2, id.bytes);
  HOLDFAST_TRY(each_row(find_quarantined_, [&] {
    size = find_quarantined_.u64(0);
    return true;
  }));
  if (!size) return {};
  HOLDFAST_TRY(delete_quarantined_.bind(1, sequence).bind(2, id.bytes).run());
  HOLDFAST_TRY(subtract(tally.quarantined, 1));
  return subtract(tally.quarantine_bytes, allocated(*size));
}

// --- The tally

Result<Tally> IndexRows::read_tally() {
  Statement state, counts;
  HOLDFAST_TRY(database_.prepare(state,
                                 "SELECT taken, delivered, discarded, expired, lost, retired_base, running_time,"
                                 " records, file_bytes, quarantined, quarantine_bytes FROM state"));
  HOLDFAST_TRY(database_.prepare(counts, "SELECT target, records, bytes FROM waiting_count ORDER BY target"));
  std::optional<Tally> tally;
  HOLDFAST_TRY(each_row(state, [&] {
    tally = Tally{{state.u64(0), state.u64(1), state.u64(2), state.u64(3), state.u64(4)},
                  state.u64(5),
                  Nanoseconds(static_cast<std::int64_t>(state.u64(6))),
                  state.u64(7),
                  state.u64(8),
                  state.u64(9),
                  state.u64(10),
                  {}};
    return true;
  }));
  if (!tally) return database_.damaged("the state");
  HOLDFAST_TRY(each_row(counts, [&] {
    tally->waiting.push_back({target_at(counts, 0), counts.u64(1), counts.u64(2)});
    return true;
  }));
  return *std::move(tally);
}

Result<void> IndexRows::write_tally(const Tally& before, const Tally& tally) {
  const Totals& totals = tally.totals;
  Statement& state = write_state_;
  state.bind(1, totals.taken).bind(2, totals.delivered).bind(3, totals.discarded).bind(4, totals.expired);
  state.bind(5, totals.lost).bind(6, tally.retired_base).bind(7, from_signed(tally.running_time.count()));
  state.bind(8, tally.records).bind(9, tally.file_bytes).bind(10, tally.quarantined).bind(11, tally.quarantine_bytes);
  HOLDFAST_TRY(state.run());
  for (const WaitingCount& count : before.waiting) {
    const auto stays = [&](const WaitingCount& other) { return other.target == count.target; };
    if (std::any_of(tally.waiting.begin(), tally.waiting.end(), stays)) continue;
    HOLDFAST_TRY(delete_count_.bind(1, number(count.target)).run());
  }
  for (const WaitingCount& count : tally.waiting) {
    HOLDFAST_TRY(write_count_.bind(1, number(count.target)).bind(2, count.records).bind(3, count.bytes).run());
  }
  return {};
}

}  // namespace holdfast
