#include "spool/journal_custody.h"

#include <utility>

#include "spool/batch.h"

namespace holdfast {

void JournalCustody::add(JournalRecord record) {
  record.place = Place::journal;
  record.waiting = all_bits(route(record.route));
  const JournalRecord& added = records_.add(std::move(record));
  count_waiting(added, added.waiting, true);
  count_live(added, true);
  ++counts_.taken;
}

void JournalCustody::count_recovered() {
  for (auto& segment : records_.segments()) {
    for (JournalRecord& record : segment.records) {
      ++counts_.taken;
      if (record.place != Place::journal) continue;
      if (complete(record)) {
        record.waiting = 0;
        ++counts_.delivered;
      } else {
        count_live(record, true);
        count_waiting(record, record.waiting, true);
      }
    }
  }
}

bool JournalCustody::settle(JournalRecord& record, TargetNumber target) {
  const TargetBits bit = record.place == Place::journal ? bit_of(route(record.route), target) & record.waiting : 0;
  if (bit == 0) return false;
  record.waiting &= ~bit;
  count_waiting(record, bit, false);
  if (!complete(record)) return true;
  count_waiting(record, record.waiting, false);
  record.waiting = 0;
  count_live(record, false);
  ++counts_.delivered;
  return true;
}

void JournalCustody::leave(JournalRecord& record, Place to) {
  if (record.place == Place::journal) {
    if (complete(record)) {
      --counts_.delivered;
    } else {
      count_live(record, false);
    }
    count_waiting(record, record.waiting, false);
  }
  record.place = to;
}

void JournalCustody::drop_oldest_segment(std::uint64_t delivered) {
  counts_.taken -= records_.segments().front().records.size();
  counts_.delivered -= delivered;
  records_.drop_oldest_segment();
}

void JournalCustody::add_oldest(std::map<TargetNumber, std::int64_t>& oldest) {
  std::size_t missing = 0;
  for (std::size_t i = 0; i < targets_.size(); ++i)
    missing += targets_[i].journal_records > 0 && !oldest.contains(TargetNumber(i + 1)) ? 1u : 0u;
  for (const auto& segment : records_.segments()) {
    for (auto record = segment.records.begin(); record != segment.records.end() && missing > 0; ++record) {
      if (record->place != Place::journal || record->waiting == 0) continue;
      for_each_target(route(record->route), record->waiting, [&](TargetNumber target) {
        missing -= oldest.emplace(target, record->accepted_wall_ns).second ? 1u : 0u;
      });
    }
  }
}

TargetState& JournalCustody::target(TargetNumber number) {
  const auto place = static_cast<std::size_t>(number);
  CHECK(place >= 1);
  if (targets_.size() < place) targets_.resize(place);
  return targets_[place - 1];
}

void JournalCustody::send_back(TargetState& state) {
  ++state.generation;
  sent_back_ = true;
}

void JournalCustody::send_all_back() {
  for (TargetState& state : targets_) send_back(state);
}

bool JournalCustody::take_sent_back() {
  return std::exchange(sent_back_, false);
}

void JournalCustody::count_live(const JournalRecord& record, bool add) {
  const std::uint64_t bytes = round_up_to_block(record.spot.size);
  counts_.live += add ? 1 : std::uint64_t(-1);
  counts_.live_bytes += add ? bytes : std::uint64_t(0) - bytes;
}

void JournalCustody::count_waiting(const JournalRecord& record, TargetBits bits, bool add) {
  for_each_target(route(record.route), bits, [&](TargetNumber number) {
    TargetState& state = target(number);
    if (add && state.journal_records == 0) state.progress = clock_.monotonic();
    state.journal_records += add ? 1 : std::uint64_t(-1);
    state.journal_bytes += add ? record.spot.size : std::uint64_t(0) - record.spot.size;
  });
}

}  // namespace holdfast
