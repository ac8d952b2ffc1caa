// What the index promises: counts are what a recount would give; what is due comes in order and at a price that the
// backlog does not raise. index_crash_test.cc strikes it.
#include "spool/index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "spool/reserve.h"
#include "tests/spool/index_records.h"
#include "tests/support/temporary_directory.h"

namespace holdfast {
namespace {

// --- One change after another

TEST(Index, ANewOne_SaysSo_AndKeepsItsEraForLater) {
  SimulatedFileSystem fs;
  {
    const auto index = must_open(fs, "first");
    EXPECT_TRUE(index->rebuilt());
    EXPECT_EQ(index->era(), "first");
    EXPECT_EQ(index->records(), 0u);
    ASSERT_TRUE(index->tidy().ok());
    EXPECT_GE(index->disk_bytes(), kReserveBytes);
    ASSERT_TRUE(index->close().ok());
  }
  const auto index = must_open(fs, "second");
  EXPECT_FALSE(index->rebuilt());
  EXPECT_EQ(index->era(), "first");
}

TEST(Index, AFiledRecord_IsFound_Listed_DueAndCounted) {
  SimulatedFileSystem fs;
  const auto index = must_open(fs);
  IndexChange change;
  change.filed = {record_of(7, {kHub, kFile}), record_of(9, {kHub}), record_of(11, {})};
  ASSERT_TRUE(index->apply(change, Durability::lazy).ok());
  EXPECT_TRUE(same(**index->find(7), record_of(7, {kHub, kFile})));
  EXPECT_TRUE(same(**index->find(11), record_of(11, {})));
  EXPECT_FALSE(*index->find(8));
  EXPECT_FALSE(*index->find(0));
  EXPECT_EQ(index->list(7, 1)->front().sequence, 9u);
  EXPECT_EQ(index->list(0, 10)->size(), 3u);
  EXPECT_EQ(due_sequences(*index, kHub, kNormalPriority, 0, 10), (std::vector<Sequence>{7, 9}));
  EXPECT_EQ(due_sequences(*index, kFile, kNormalPriority, 0, 10), (std::vector<Sequence>{7}));
  EXPECT_EQ(index->records(), 3u);
  EXPECT_EQ(index->file_bytes(), 3 * 4096u);
  ASSERT_EQ(index->waiting().size(), 2u);
  EXPECT_EQ(index->waiting()[0].records, 2u);
  EXPECT_EQ(index->waiting()[0].bytes, 1007u + 1009u);
}

TEST(Index, ARecordFiledAgain_ReplacesWhatWasKnown) {
  SimulatedFileSystem fs;
  const auto index = must_open(fs);
  ASSERT_TRUE(index->apply({.filed = {record_of(7, {kHub, kFile})}}, Durability::lazy).ok());
  IndexedRecord again = record_of(7, {kFile}, 0);
  again.size = 9000;
  ASSERT_TRUE(index->apply({.filed = {again}}, Durability::lazy).ok());
  EXPECT_TRUE(same(**index->find(7), again));
  EXPECT_EQ(index->records(), 1u);
  EXPECT_EQ(index->file_bytes(), 3 * 4096u);
  EXPECT_TRUE(due_sequences(*index, kHub, kNormalPriority, 0, 10).empty());
  EXPECT_EQ(due_sequences(*index, kFile, 0, 0, 10), (std::vector<Sequence>{7}));
  ASSERT_EQ(index->waiting().size(), 1u);
  EXPECT_EQ(index->waiting()[0].bytes, 9000u);
}

TEST(Index, ASettledRecord_StaysUntilItLeaves_AndThenATombstoneStays) {
  SimulatedFileSystem fs;
  const auto index = must_open(fs);
  ASSERT_TRUE(index->apply({.filed = {record_of(7, {kHub, kFile})}}, Durability::lazy).ok());
  ASSERT_TRUE(index->apply({.settled = {{kHub, 7}, {kHub, 7}, {kHub, 999}}}, Durability::lazy).ok());
  EXPECT_TRUE(same(**index->find(7), record_of(7, {kFile})));
  ASSERT_TRUE(index->apply({.left = {7, 7}}, Durability::lazy).ok());
  EXPECT_FALSE(*index->find(7));
  EXPECT_TRUE(index->waiting().empty());
  EXPECT_EQ(index->file_bytes(), 0u);
  EXPECT_TRUE(*index->is_tombstone(7));
  ASSERT_EQ(index->tombstones_to_unlink(0, 10)->size(), 1u);
  EXPECT_EQ(index->tombstones_to_unlink(0, 10)->front(), (std::pair{Sequence{7}, id_of(7)}));
  // Not before its unlink is known to be on the medium.
  ASSERT_TRUE(index->apply({.forget_tombstones_below = 100}, Durability::lazy).ok());
  EXPECT_TRUE(*index->is_tombstone(7));
  ASSERT_TRUE(index->apply({.unlinked = {7, 8}}, Durability::lazy).ok());
  EXPECT_TRUE(*index->is_tombstone(7));
  EXPECT_FALSE(*index->is_tombstone(8));
  EXPECT_TRUE(index->tombstones_to_unlink(0, 10)->empty());
  ASSERT_TRUE(index->apply({.forget_tombstones_below = 7}, Durability::lazy).ok());
  EXPECT_TRUE(*index->is_tombstone(7));
  ASSERT_TRUE(index->apply({.forget_tombstones_below = 8}, Durability::lazy).ok());
  EXPECT_FALSE(*index->is_tombstone(7));
}

// Whole runs are said in one statement each: what is between and beside them stays.
TEST(Index, NeighboursThatLeaveTogether_LeaveNothingAndTakeNothingElse) {
  for (const bool with_a_hole : {false, true}) {
    SimulatedFileSystem fs;
    const auto index = must_open(fs);
    IndexChange change;
    std::vector<Sequence> leaving;
    for (Sequence sequence = 1; sequence <= 40; ++sequence) {
      const std::vector<TargetNumber> waiting = sequence % 3 == 0   ? std::vector{kHub, kFile}
                                                : sequence % 3 == 1 ? std::vector{kHub}
                                                                    : std::vector{kFile};
      const bool leaves = sequence > 10 && sequence <= 30;
      if (leaves) leaving.push_back(sequence);
      if (leaves && with_a_hole && sequence == 20) continue;
      change.filed.push_back(record_of(sequence, waiting, sequence % 2 == 0 ? Priority{0} : kNormalPriority));
    }
    ASSERT_TRUE(index->apply(change, Durability::lazy).ok());
    std::ranges::reverse(leaving);
    leaving.push_back(leaving.front());
    ASSERT_TRUE(index->apply({.left = leaving}, Durability::durable).ok());

    std::uint64_t hub_records = 0, hub_bytes = 0, records = 0;
    for (const IndexedRecord& record : change.filed) {
      const bool left = record.sequence > 10 && record.sequence <= 30;
      EXPECT_EQ(index->find(record.sequence)->has_value(), !left) << record.sequence;
      EXPECT_EQ(*index->is_tombstone(record.sequence), left) << record.sequence;
      if (left) continue;
      ++records;
      if (std::ranges::count(record.waiting, kHub) == 0) continue;
      ++hub_records;
      hub_bytes += record.size;
    }
    EXPECT_EQ(index->records(), records);
    EXPECT_EQ(index->file_bytes(), records * 4096);
    EXPECT_EQ(index->waiting()[0].records, hub_records);
    EXPECT_EQ(index->waiting()[0].bytes, hub_bytes);
    const auto urgent = due_sequences(*index, kHub, 0, 0, 100);
    EXPECT_EQ(urgent, (std::vector<Sequence>{4, 6, 10, 34, 36, 40}));

    auto to_unlink = *index->tombstones_to_unlink(0, 100);
    EXPECT_EQ(to_unlink.size(), 20u);
    for (const auto& [sequence, id] : to_unlink)
      EXPECT_EQ(id, with_a_hole && sequence == 20 ? RecordId() : id_of(sequence));
    ASSERT_TRUE(index->apply({.unlinked = {11, 12, 13, 29, 15}}, Durability::lazy).ok());
    to_unlink = *index->tombstones_to_unlink(0, 100);
    EXPECT_EQ(to_unlink.size(), 15u);
    EXPECT_EQ(to_unlink.front().first, 14u);
  }
}

TEST(Index, ATombstoneWithoutARow_HasNoId_AndGoesWhenTheRecordIsFiledAfterAll) {
  SimulatedFileSystem fs;
  const auto index = must_open(fs);
  ASSERT_TRUE(index->apply({.entombed = {5, 6}, .unlinked = {6}}, Durability::lazy).ok());
  EXPECT_EQ(index->tombstones_to_unlink(0, 10)->front(), (std::pair{Sequence{5}, RecordId{}}));
  ASSERT_TRUE(index->apply({.filed = {record_of(5, {kHub}), record_of(6, {kHub})}}, Durability::lazy).ok());
  EXPECT_FALSE(*index->is_tombstone(5));
  EXPECT_FALSE(*index->is_tombstone(6));
  EXPECT_EQ(index->records(), 2u);
}

TEST(Index, TotalsAdd_BaseAndRunningTimeNeverGoBack_AndAllOutliveALife) {
  SimulatedFileSystem fs;
  {
    const auto index = must_open(fs);
    const Totals totals{5, 4, 3, 2, 1};
    ASSERT_TRUE(
        index->apply({.add = totals, .retired_base = 100, .running_time = std::chrono::seconds(50)}, Durability::lazy)
            .ok());
    ASSERT_TRUE(
        index->apply({.add = totals, .retired_base = 90, .running_time = std::chrono::seconds(40)}, Durability::lazy)
            .ok());
    fs.restart_without_power_loss();
  }
  const auto index = must_open(fs);
  EXPECT_EQ(index->totals(), (Totals{10, 8, 6, 4, 2}));
  EXPECT_EQ(index->retired_base(), 100u);
  EXPECT_EQ(index->running_time(), std::chrono::seconds(50));
}

TEST(Index, AQuarantinedRecord_IsCountedOnce_ListedAndDropped) {
  SimulatedFileSystem fs;
  const auto index = must_open(fs);
  QuarantinedRecord twin = quarantined_of(7);
  twin.id = id_of(8);
  ASSERT_TRUE(
      index->apply({.set_aside = {quarantined_of(7), quarantined_of(7), twin, quarantined_of(9)}}, Durability::lazy)
          .ok());
  EXPECT_EQ(index->quarantined(), 3u);
  EXPECT_EQ(index->quarantine_bytes(), 3 * 4096u);
  EXPECT_EQ(index->list_quarantine(0, 1)->size(), 2u) << "those of one sequence come together";
  const auto listed = *index->list_quarantine(7, 10);
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0].id, id_of(9));
  EXPECT_EQ(listed[0].reason, Reason::rejected);
  EXPECT_EQ(listed[0].target, kHub);
  EXPECT_EQ(listed[0].route, RouteNumber{3});
  EXPECT_EQ(listed[0].accepted_wall_ns, -5);
  ASSERT_TRUE(
      index->apply({.quarantine_dropped = {{id_of(7), 7}, {id_of(7), 7}, {id_of(1), 9}}}, Durability::lazy).ok());
  EXPECT_EQ(index->quarantined(), 2u);
  EXPECT_EQ(index->quarantine_bytes(), 2 * 4096u);
}

// --- What is due

TEST(Index, Due_IsInOrder_OfOnePriority_AboveTheCursor_UpToTheLimit) {
  SimulatedFileSystem fs;
  const auto index = must_open(fs);
  IndexChange change;
  for (Sequence n = 100; n > 0; --n) change.filed.push_back(record_of(n, {n % 3 == 0 ? kHub : kFile}, n % 2 ? 0 : 5));
  ASSERT_TRUE(index->apply(change, Durability::lazy).ok());
  EXPECT_EQ(due_sequences(*index, kHub, 0, 0, 3), (std::vector<Sequence>{3, 9, 15}));
  EXPECT_EQ(due_sequences(*index, kHub, 0, 15, 2), (std::vector<Sequence>{21, 27}));
  EXPECT_EQ(due_sequences(*index, kHub, 5, 90, 10), (std::vector<Sequence>{96}));
  EXPECT_TRUE(due_sequences(*index, kHub, 9, 0, 10).empty());
  EXPECT_TRUE(due_sequences(*index, TargetNumber{7}, 5, 0, 10).empty());
  EXPECT_TRUE(due_sequences(*index, kHub, 5, 0, 0).empty());
  EXPECT_EQ(**index->oldest_waiting(kFile), 5001);
  EXPECT_EQ(**index->oldest_waiting(kHub), 5003);
  EXPECT_FALSE(*index->oldest_waiting(TargetNumber{7}));
}

TEST(Index, Due_ReadsAsManyPagesAsItHandsOut_WhateverTheBacklog) {
  SimulatedFileSystem fs;
  const auto fill = must_open(fs);
  for (Sequence n = 1; n <= 40'000;) {
    IndexChange change;
    for (int i = 0; i < 2000; ++i, ++n) change.filed.push_back(record_of(n, {kHub, kFile}, n % 7 ? 5 : 0));
    ASSERT_TRUE(fill->apply(change, Durability::lazy).ok());
    ASSERT_TRUE(fill->tidy().ok());
  }
  ASSERT_TRUE(fill->close().ok());
  fs.restart_without_power_loss();
  const auto index = must_open(fs);  // with a cold cache
  fs.count_reads(true);
  const auto reads_of = [&](Sequence after, std::size_t limit) {
    const auto before = fs.steps();
    EXPECT_EQ(due_sequences(*index, kFile, 5, after, limit).size(), limit);
    return fs.steps() - before;
  };
  EXPECT_LE(reads_of(20'000, 10), 12u);
  EXPECT_LE(reads_of(1'000, 10), 12u);
  EXPECT_LE(reads_of(30'000, 1000), 40u);
}

// --- Against a model

// Random changes, replayed ones among them; against maps that are counted anew each time.
class IndexModel {
 public:
  explicit IndexModel(std::uint64_t seed) : dice_(seed), index_(must_open(fs_)) {}

  void run(int rounds) {
    for (int round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
      const IndexChange change = make_change();
      ASSERT_TRUE(index_->apply(change, dice_.percent(20) ? Durability::durable : Durability::lazy).ok());
      if (dice_.percent(20)) {
        ASSERT_TRUE(index_->apply(change, Durability::lazy).ok());  // replayed
      }
      follow(change);
      if (dice_.percent(10)) {
        ASSERT_TRUE(index_->tidy().ok());
      }
      if (dice_.percent(5)) reopen();
      compare();
    }
  }

 private:
  Sequence some_sequence() { return 1 + dice_.below(next_); }

  IndexChange make_change() {
    IndexChange change;
    for (auto n = dice_.below(8); n > 0; --n) {
      std::vector<TargetNumber> waiting;
      for (std::uint32_t target = 1; target <= 4; ++target) {
        if (dice_.percent(40)) waiting.push_back(TargetNumber{target});
      }
      const Sequence sequence = dice_.percent(85) ? next_++ : some_sequence();
      change.filed.push_back(record_of(sequence, waiting, static_cast<Priority>(dice_.below(kPriorities))));
    }
    for (auto n = dice_.below(6); n > 0; --n)
      change.settled.emplace_back(TargetNumber(1 + dice_.below(4)), some_sequence());
    for (auto n = dice_.below(3); n > 0; --n) change.left.push_back(some_sequence());
    for (auto n = dice_.below(2); n > 0; --n) change.unlinked.push_back(some_sequence());
    if (dice_.percent(20)) change.forget_tombstones_below = some_sequence();
    for (auto n = dice_.below(2); n > 0; --n) change.set_aside.push_back(quarantined_of(some_sequence()));
    for (auto n = dice_.below(2); n > 0; --n)
      change.quarantine_dropped.emplace_back(id_of(some_sequence()), some_sequence());
    return change;
  }

  void follow(const IndexChange& change) {
    for (const IndexedRecord& record : change.filed) {
      records_[record.sequence] = record;
      tombstones_.erase(record.sequence);
    }
    for (const auto& [target, sequence] : change.settled) {
      if (records_.contains(sequence)) std::erase(records_[sequence].waiting, target);
    }
    for (const Sequence sequence : change.left) {
      records_.erase(sequence);
      tombstones_.try_emplace(sequence, false);
    }
    for (const Sequence sequence : change.unlinked) {
      if (tombstones_.contains(sequence)) tombstones_[sequence] = true;
    }
    std::erase_if(tombstones_, [&](const auto& tombstone) {
      return tombstone.second && tombstone.first < change.forget_tombstones_below.value_or(0);
    });
    for (const QuarantinedRecord& record : change.set_aside) quarantine_[record.sequence] = record;
    for (const auto& [id, sequence] : change.quarantine_dropped) {
      if (id == id_of(sequence)) quarantine_.erase(sequence);
    }
  }

  void reopen() {
    index_ = nullptr;
    dice_.percent(50) ? fs_.restart_without_power_loss() : fs_.lose_power(Loss::keep_all);
    index_ = must_open(fs_);
    EXPECT_FALSE(index_->rebuilt());
  }

  void compare() {
    std::map<TargetNumber, WaitingCount> counts;
    std::uint64_t bytes = 0;
    for (const auto& [sequence, record] : records_) {
      bytes += (record.size + 4095) / 4096 * 4096;
      for (const TargetNumber target : record.waiting) {
        ++counts[target].records;
        counts[target].bytes += record.size;
      }
    }
    EXPECT_EQ(index_->records(), records_.size());
    EXPECT_EQ(index_->file_bytes(), bytes);
    EXPECT_EQ(index_->quarantined(), quarantine_.size());
    ASSERT_EQ(index_->waiting().size(), counts.size());
    for (const WaitingCount& count : index_->waiting()) {
      EXPECT_EQ(count.records, counts[count.target].records);
      EXPECT_EQ(count.bytes, counts[count.target].bytes);
    }
    compare_rows();
  }

  void compare_rows() {
    const auto listed = *index_->list(0, records_.size() + 10);
    ASSERT_EQ(listed.size(), records_.size());
    for (const IndexedRecord& record : listed) ASSERT_TRUE(same(record, records_[record.sequence])) << record.sequence;
    for (Sequence sequence = 0; sequence <= next_; sequence += 1 + dice_.below(9)) {
      ASSERT_EQ(*index_->is_tombstone(sequence), tombstones_.contains(sequence)) << sequence;
    }
    const auto open_tombstones =
        std::count_if(tombstones_.begin(), tombstones_.end(), [](const auto& t) { return !t.second; });
    ASSERT_EQ(index_->tombstones_to_unlink(0, 100'000)->size(), static_cast<std::size_t>(open_tombstones));
    for (std::uint32_t target = 1; target <= 4; ++target) compare_due(TargetNumber{target});
  }

  void compare_due(TargetNumber target) {
    const auto priority = static_cast<Priority>(dice_.below(kPriorities));
    const Sequence after = some_sequence();
    std::vector<Sequence> expected;
    for (auto at = records_.upper_bound(after); at != records_.end(); ++at) {
      const auto& waiting = at->second.waiting;
      const bool waits = std::find(waiting.begin(), waiting.end(), target) != waiting.end();
      if (waits && at->second.priority == priority) expected.push_back(at->first);
    }
    ASSERT_EQ(due_sequences(*index_, target, priority, after, 100'000), expected);
  }

  Dice dice_;
  SimulatedFileSystem fs_;
  std::unique_ptr<Index> index_;
  Sequence next_ = 1;
  std::map<Sequence, IndexedRecord> records_;
  std::map<Sequence, bool> tombstones_;  // whether its unlink is on the medium
  std::map<Sequence, QuarantinedRecord> quarantine_;
};

TEST(Index, RandomChanges_LeaveRowsAndCountsAsARecountWould) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    IndexModel(seed).run(150);
    if (HasFailure()) return;
  }
}

// --- A real disk

TEST(Index, OnARealDisk_AQuarterMillionRecords_OpenAtOnce_InBoundedMemory) {
  const TemporaryDirectory directory;
  const auto fs = open_posix_file_system(directory.path());
  ASSERT_TRUE(fs.ok());
  {
    const auto index = must_open(**fs);
    for (Sequence n = 1ull << 34; index->records() < 250'000;) {
      IndexChange change;
      for (int i = 0; i < 5000; ++i, ++n) change.filed.push_back(record_of(n, {kHub}));
      ASSERT_TRUE(index->apply(change, Durability::lazy).ok());
      ASSERT_TRUE(index->tidy().ok());
    }
    ASSERT_TRUE(index->close().ok());
  }
  const auto index = must_open(**fs);
  EXPECT_EQ(index->records(), 250'000u);
  EXPECT_EQ(index->waiting().front().records, 250'000u);
  EXPECT_EQ(due_sequences(*index, kHub, kNormalPriority, 0, 100).size(), 100u);
}

}  // namespace
}  // namespace holdfast
