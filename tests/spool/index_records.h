// Records by their sequence, and an index to put them in: what the tests of the index share.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "spool/index.h"
#include "tests/support/simulated_file_system.h"

namespace holdfast {

inline constexpr std::array<std::uint8_t, 16> kUuid{1, 2, 3};
inline constexpr std::array<std::uint8_t, 16> kOtherUuid{4, 5, 6};
inline constexpr const char* kPath = "index.sqlite3";
inline constexpr const char* kWal = "index.sqlite3-wal";
inline constexpr const char* kBad = "index.bad";
inline constexpr const char* kBadWal = "index.bad-wal";
inline constexpr const char* kReserve = "index.reserve";

inline constexpr TargetNumber kHub{1};
inline constexpr TargetNumber kFile{2};

inline RecordId id_of(Sequence sequence) {
  RecordId id;
  Dice dice(sequence);
  for (std::size_t i = 0; i < id.bytes.size(); i += 8) {
    const std::uint64_t roll = dice.roll();
    std::memcpy(&id.bytes[i], &roll, 8);
  }
  return id;
}

inline IndexedRecord record_of(Sequence sequence, std::vector<TargetNumber> waiting,
                               Priority priority = kNormalPriority) {
  return {sequence,          id_of(sequence), RouteNumber{3}, priority, 1000 + sequence, 5'000 + std::int64_t(sequence),
          std::move(waiting)};
}

inline QuarantinedRecord quarantined_of(Sequence sequence) {
  return {sequence, id_of(sequence), Reason::rejected, kHub, RouteNumber{3}, kNormalPriority, 1000 + sequence, -5};
}

inline std::unique_ptr<Index> must_open(FileSystem& fs, const std::string& era = "era") {
  auto index = Index::open(fs, kUuid, era);
  EXPECT_TRUE(index.ok()) << index.error().text;
  return index.ok() ? *std::move(index) : nullptr;
}

inline bool same(const IndexedRecord& a, const IndexedRecord& b) {
  return a.sequence == b.sequence && a.id == b.id && a.route == b.route && a.priority == b.priority &&
         a.size == b.size && a.accepted_wall_ns == b.accepted_wall_ns && a.waiting == b.waiting;
}

inline std::vector<Sequence> due_sequences(Index& index, TargetNumber target, Priority priority, Sequence after,
                                           std::size_t limit) {
  std::vector<Sequence> sequences;
  const auto due = index.due(target, priority, after, limit);
  EXPECT_TRUE(due.ok()) << due.error().text;
  for (const DueRow& row : *due) {
    EXPECT_EQ(row.id, id_of(row.sequence));
    sequences.push_back(row.sequence);
  }
  return sequences;
}

}  // namespace holdfast
