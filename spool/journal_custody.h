// Which records the journal alone holds in custody, who waits for them, and how far each target is. What is counted
// follows each change. Threads: the spool holds its state lock; the tables of the manifest change under it, too.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "spool/clock.h"
#include "spool/journal_records.h"
#include "spool/route.h"

namespace holdfast {

// What is known of a target besides its records in files.
struct TargetState {
  bool active = false;
  std::uint64_t journal_records = 0;  // that wait for it, in the journal only
  std::uint64_t journal_bytes = 0;
  std::uint64_t delivered = 0, duplicates = 0, duplicates_unexpected = 0, rejected = 0;
  std::uint64_t generation = 1;  // cursors of an earlier one are rewound
  Nanoseconds progress{0};       // when it last settled something, or began to have something to settle
};

class JournalCustody {
 public:
  JournalCustody(const Manifest& tables, const Clock& clock) : tables_(tables), clock_(clock) {}

  struct Counts {
    std::uint64_t live = 0;        // records in the journal only, still in custody
    std::uint64_t live_bytes = 0;  // what they will take on the disk in files
    std::uint64_t delivered = 0;   // from the journal, not yet counted in the index
    std::uint64_t taken = 0;       // committed by segments that are not retired
  };
  const Counts& counts() const { return counts_; }
  JournalRecords& records() { return records_; }

  const Route& route(RouteNumber number) const { return route_of(tables_, number); }
  // Every required target has it.
  bool complete(const JournalRecord& record) const { return has_every_required(route(record.route), record.waiting); }
  bool in_custody(const JournalRecord& record) const { return record.place == Place::journal && !complete(record); }
  std::vector<TargetNumber> waiting_targets(const JournalRecord& record) const {
    return targets_of(route(record.route), record.waiting);
  }

  // It is on the medium: from here on it is in custody, and waits for every target of its route.
  void add(JournalRecord record);
  // All that recovery has put into records().
  void count_recovered();
  // False: it does not wait for that target, or not here. With the last required one it is delivered; what optional
  // targets have not got by then leaves with it.
  bool settle(JournalRecord& record, TargetNumber target);
  // Something else holds it from now on, or nothing.
  void leave(JournalRecord& record, Place to);
  // Its records are counted in the index now, so many of them as delivered.
  void drop_oldest_segment(std::uint64_t delivered);

  // Adds when the oldest record of each target was accepted, where none is known that is older.
  void add_oldest(std::map<TargetNumber, std::int64_t>& oldest);

  TargetState& target(TargetNumber number);
  std::vector<TargetState>& targets() { return targets_; }  // by number - 1
  // Its readers begin again with the oldest: something lies behind where they are.
  void send_back(TargetState& state);
  void send_all_back();
  // Whether readers were sent back since this was asked last: they are to be called.
  bool take_sent_back();

 private:
  void count_live(const JournalRecord& record, bool add);
  void count_waiting(const JournalRecord& record, TargetBits bits, bool add);

  const Manifest& tables_;
  const Clock& clock_;
  JournalRecords records_;
  Counts counts_;
  std::vector<TargetState> targets_;
  bool sent_back_ = false;
};

}  // namespace holdfast
