#include "spool/journal_records.h"

#include <algorithm>
#include <utility>

#include "spool/check.h"

namespace holdfast {

JournalRecord journal_record(const FrameHeader& header, FrameSpot spot, const LedgerEntry& identity) {
  JournalRecord record;
  record.sequence = header.sequence;
  record.id = header.id;
  record.content = header.content;
  record.spot = spot;
  record.route = static_cast<RouteNumber>(header.route);
  record.priority = header.priority;
  record.accepted_wall_ns = header.accepted_wall_ns;
  record.position = identity.position;
  record.positional = identity.positional;
  return record;
}

IndexedRecord row_of(const JournalRecord& record, std::vector<TargetNumber> waiting) {
  return {record.sequence,         record.id,         record.route, record.priority, record.spot.size,
          record.accepted_wall_ns, std::move(waiting)};
}

IndexedRecord row_of(const FrameHeader& header, std::vector<TargetNumber> waiting) {
  return {header.sequence,
          header.id,
          static_cast<RouteNumber>(header.route),
          header.priority,
          kFrameHeaderSize + header.body_size,
          header.accepted_wall_ns,
          std::move(waiting)};
}

JournalRecord& JournalRecords::add(JournalRecord record) {
  CHECK(!segments_.empty() && record.priority < kPriorities);
  auto& records = segments_.back().records;
  CHECK(records.empty() || records.back().sequence < record.sequence);
  records.push_back(std::move(record));
  JournalRecord& added = records.back();
  by_id_.insert_or_assign(added.id, &added);
  by_priority_[added.priority].push_back(&added);
  return added;
}

void JournalRecords::drop_oldest_segment() {
  CHECK(!segments_.empty());
  Segment& oldest = segments_.front();
  for (JournalRecord& record : oldest.records) {
    const auto known = by_id_.find(record.id);
    if (known != by_id_.end() && known->second == &record) by_id_.erase(known);
    auto& order = by_priority_[record.priority];
    CHECK(!order.empty() && order.front() == &record);
    order.pop_front();
  }
  segments_.pop_front();
}

JournalRecord* JournalRecords::find(const RecordId& id) {
  const auto known = by_id_.find(id);
  return known == by_id_.end() ? nullptr : known->second;
}

JournalRecord* JournalRecords::find(Sequence sequence) {
  // The last segment whose first record is not above it.
  for (auto segment = segments_.rbegin(); segment != segments_.rend(); ++segment) {
    auto& records = segment->records;
    if (records.empty() || records.front().sequence > sequence) continue;
    const auto at =
        std::lower_bound(records.begin(), records.end(), sequence,
                         [](const JournalRecord& record, Sequence wanted) { return record.sequence < wanted; });
    return at != records.end() && at->sequence == sequence ? &*at : nullptr;
  }
  return nullptr;
}

}  // namespace holdfast
