// What is asked of the tables of the index.
#include <set>

#include "spool/index_columns.h"
#include "spool/index_rows.h"

namespace holdfast {

Result<void> IndexRows::prepare_questions() {
  Database& db = database_;
  HOLDFAST_TRY(db.prepare(measure_records_, "SELECT priority, size FROM record WHERE sequence BETWEEN ? AND ?"));
  HOLDFAST_TRY(db.prepare(measure_waiting_,
                          "SELECT size FROM waiting CROSS JOIN record USING(sequence)"
                          " WHERE target = ? AND waiting.priority = ? AND waiting.sequence BETWEEN ? AND ?"));
  HOLDFAST_TRY(db.prepare(list_records_,
                          "SELECT sequence, id, route, priority, size, accepted FROM record"
                          " WHERE sequence > ? ORDER BY sequence LIMIT ?"));
  HOLDFAST_TRY(db.prepare(list_waiting_,
                          "SELECT sequence FROM waiting WHERE target = ? AND priority = ? AND sequence BETWEEN ? AND ?"
                          " ORDER BY sequence"));
  HOLDFAST_TRY(db.prepare(due_,
                          "SELECT waiting.sequence, id, size FROM waiting CROSS JOIN record USING(sequence)"
                          " WHERE target = ? AND waiting.priority = ? AND waiting.sequence > ?"
                          " ORDER BY waiting.sequence LIMIT ?"));
  HOLDFAST_TRY(db.prepare(first_waiting_,
                          "SELECT waiting.sequence, accepted FROM waiting CROSS JOIN record USING(sequence)"
                          " WHERE target = ? AND waiting.priority = ? ORDER BY waiting.sequence LIMIT 1"));
  HOLDFAST_TRY(db.prepare(find_tombstone_, "SELECT 1 FROM tombstone WHERE unlinked IN (0, 1) AND sequence = ?"));
  HOLDFAST_TRY(db.prepare(to_unlink_,
                          "SELECT sequence, id FROM tombstone WHERE unlinked = 0 AND sequence > ?"
                          " ORDER BY sequence LIMIT ?"));
  HOLDFAST_TRY(db.prepare(find_quarantined_, "SELECT size FROM quarantine WHERE sequence = ? AND id = ?"));
  return db.prepare(list_quarantined_,
                    "SELECT sequence, id, reason, target, route, priority, size, accepted"
                    " FROM quarantine WHERE sequence > ? ORDER BY sequence, id");
}

Result<std::vector<DueRow>> IndexRows::due(TargetNumber target, Priority priority, Sequence after, std::size_t limit) {
  std::vector<DueRow> rows;
  due_.bind(1, number(target)).bind(2, priority).bind(3, after).bind(4, bounded(limit));
  HOLDFAST_TRY(each_row(due_, [&] {
    rows.push_back({due_.u64(0), id_at(due_, 1), due_.u64(2)});
    return true;
  }));
  return rows;
}

Result<std::vector<IndexedRecord>> IndexRows::list(Sequence after, std::size_t limit, const Tally& tally) {
  std::vector<IndexedRecord> records;
  list_records_.bind(1, after).bind(2, bounded(limit));
  HOLDFAST_TRY(each_row(list_records_, [&] {
    records.push_back(record_at(list_records_));
    return true;
  }));
  if (records.empty()) return records;
  std::set<Priority> priorities;
  for (const IndexedRecord& record : records) priorities.insert(record.priority);
  for (const WaitingCount& count : tally.waiting) {
    for (const Priority priority : priorities) HOLDFAST_TRY(read_waiting(count.target, priority, records));
  }
  return records;
}

// Both are in the order of their sequences, and the records are all that there are between the first and the last.
Result<void> IndexRows::read_waiting(TargetNumber target, Priority priority, std::vector<IndexedRecord>& records) {
  list_waiting_.bind(1, number(target)).bind(2, priority);
  list_waiting_.bind(3, records.front().sequence).bind(4, records.back().sequence);
  auto record = records.begin();
  return each_row(list_waiting_, [&] {
    while (record != records.end() && record->sequence < list_waiting_.u64(0)) ++record;
    if (record != records.end() && record->sequence == list_waiting_.u64(0)) record->waiting.push_back(target);
    return true;
  });
}

Result<std::vector<QuarantinedRecord>> IndexRows::list_quarantine(Sequence after, std::size_t limit) {
  std::vector<QuarantinedRecord> records;
  Statement& row = list_quarantined_;
  row.bind(1, after);
  HOLDFAST_TRY(each_row(row, [&] {
    // Those of one sequence come together, or the next page would miss some.
    if (records.size() >= limit && (records.empty() || records.back().sequence != row.u64(0))) return false;
    records.push_back({row.u64(0), id_at(row, 1), static_cast<Reason>(row.u64(2)), target_at(row, 3), route_at(row, 4),
                       static_cast<Priority>(row.u64(5)), row.u64(6), static_cast<std::int64_t>(row.u64(7))});
    return true;
  }));
  return records;
}

Result<bool> IndexRows::is_tombstone(Sequence sequence) {
  bool found = false;
  if (sequence > tombstone_top_) return found;
  find_tombstone_.bind(1, sequence);
  HOLDFAST_TRY(each_row(find_tombstone_, [&] { return found = true; }));
  return found;
}

Result<std::vector<std::pair<Sequence, RecordId>>> IndexRows::tombstones_to_unlink(Sequence after, std::size_t limit) {
  std::vector<std::pair<Sequence, RecordId>> tombstones;
  to_unlink_.bind(1, after).bind(2, bounded(limit));
  HOLDFAST_TRY(each_row(to_unlink_, [&] {
    tombstones.emplace_back(to_unlink_.u64(0), id_at(to_unlink_, 1));
    return true;
  }));
  return tombstones;
}

// The record and quarantine tables are in the order of their sequences: each max is one step.
Result<Sequence> IndexRows::highest_sequence() {
  Statement top;
  HOLDFAST_TRY(database_.prepare(top,
                                 "SELECT max((SELECT ifnull(max(sequence), 0) FROM record),"
                                 " (SELECT ifnull(max(sequence), 0) FROM quarantine))"));
  Sequence highest = tombstone_top_;
  HOLDFAST_TRY(each_row(top, [&] {
    highest = std::max(highest, top.u64(0));
    return true;
  }));
  return highest;
}

Result<std::optional<std::int64_t>> IndexRows::oldest_waiting(TargetNumber target) {
  Sequence oldest = std::numeric_limits<Sequence>::max();
  std::optional<std::int64_t> accepted;
  for (Priority priority = 0; priority < kPriorities; ++priority) {
    first_waiting_.bind(1, number(target)).bind(2, priority);
    HOLDFAST_TRY(each_row(first_waiting_, [&] {
      if (first_waiting_.u64(0) >= oldest) return true;
      oldest = first_waiting_.u64(0);
      accepted = static_cast<std::int64_t>(first_waiting_.u64(1));
      return true;
    }));
  }
  return accepted;
}

}  // namespace holdfast
