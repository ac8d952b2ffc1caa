// The tables of the index and what is done to their rows. Each change keeps the tally true, which is written with the
// rows it counts. Inside the caller's transaction; a rolled back one leaves the caller's tally to be thrown away.
// Threads: as Index.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "spool/database.h"
#include "spool/index.h"

namespace holdfast {

// What could only be found by reading every row.
struct Tally {
  Totals totals;
  std::uint64_t retired_base = 0;
  Nanoseconds running_time{0};
  std::uint64_t records = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t quarantined = 0;
  std::uint64_t quarantine_bytes = 0;
  std::vector<WaitingCount> waiting;  // by target, none of them 0
};

class IndexRows {
 public:
  static Result<void> make_tables(Database& database);
  static Result<std::unique_ptr<IndexRows>> open(Database& database);

  Result<void> apply(const IndexChange& change, Tally& tally);
  Result<Tally> read_tally();
  Result<void> write_tally(const Tally& before, const Tally& tally);

  Result<std::vector<DueRow>> due(TargetNumber target, Priority priority, Sequence after, std::size_t limit);
  Result<std::vector<IndexedRecord>> list(Sequence after, std::size_t limit, const Tally& tally);
  Result<std::vector<QuarantinedRecord>> list_quarantine(Sequence after, std::size_t limit);
  Result<bool> is_tombstone(Sequence sequence);
  Result<std::vector<std::pair<Sequence, RecordId>>> tombstones_to_unlink(Sequence after, std::size_t limit);
  Result<Sequence> highest_sequence();
  Result<std::optional<std::int64_t>> oldest_waiting(TargetNumber target);

 private:
  explicit IndexRows(Database& database) : database_(database) {}
  Result<void> prepare_changes();
  Result<void> prepare_questions();

  Result<void> file(const IndexedRecord& record, Tally& tally);
  Result<void> settle(TargetNumber target, Sequence sequence, Tally& tally);
  Result<void> leave(Sequence sequence, Tally& tally);
  Result<void> leave_together(Sequence first, Sequence last, Tally& tally);
  Result<void> remove_waiting_run(WaitingCount& count, Priority priority, Sequence first, Sequence last);
  Result<void> set_aside(const QuarantinedRecord& record, Tally& tally);
  Result<void> drop_quarantined(const RecordId& id, Sequence sequence, Tally& tally);

  Result<std::optional<IndexedRecord>> find(Sequence sequence);  // without what it waits for
  Result<void> read_waiting(TargetNumber target, Priority priority, std::vector<IndexedRecord>& records);
  Result<void> add_waiting(TargetNumber target, const IndexedRecord& record, Tally& tally);
  Result<void> remove_waiting(TargetNumber target, const IndexedRecord& record, Tally& tally);
  Result<void> remove_record(const IndexedRecord& record, Tally& tally);
  Result<void> subtract(std::uint64_t& from, std::uint64_t count);

  Database& database_;
  Statement insert_record_, list_records_, measure_records_, delete_records_;
  Statement insert_waiting_, delete_waiting_, list_waiting_, due_, first_waiting_;
  Statement measure_waiting_, entomb_records_;
  Statement insert_tombstone_, find_tombstone_, delete_tombstone_, mark_unlinked_, forget_tombstones_, to_unlink_;
  Statement insert_quarantined_, find_quarantined_, delete_quarantined_, list_quarantined_;
  Statement write_state_, write_count_, delete_count_;
  Sequence tombstone_top_ = 0;  // no tombstone lies above it
};

}  // namespace holdfast
