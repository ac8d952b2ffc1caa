// What the index promises: a change is whole or not at all, whatever strikes; counts are what a recount would give;
// what is due comes in order and at a price that the backlog does not raise; a file that is not a sound index of this
// spool stops nothing.
#include "spool/index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "spool/reserve.h"
#include "tests/support/simulated_file_system.h"
#include "tests/support/temporary_directory.h"

namespace holdfast {
namespace {

constexpr std::array<std::uint8_t, 16> kUuid{1, 2, 3};
constexpr std::array<std::uint8_t, 16> kOtherUuid{4, 5, 6};
constexpr const char* kPath = "index.sqlite3";
constexpr const char* kWal = "index.sqlite3-wal";
constexpr const char* kBad = "index.bad";
constexpr const char* kBadWal = "index.bad-wal";
constexpr const char* kReserve = "index.reserve";

constexpr TargetNumber kHub{1};
constexpr TargetNumber kFile{2};

RecordId id_of(Sequence sequence) {
  RecordId id;
  Dice dice(sequence);
  for (std::size_t i = 0; i < id.bytes.size(); i += 8) {
    const std::uint64_t roll = dice.roll();
    std::memcpy(&id.bytes[i], &roll, 8);
  }
  return id;
}

IndexedRecord record_of(Sequence sequence, std::vector<TargetNumber> waiting, Priority priority = kNormalPriority) {
  return {sequence,          id_of(sequence), RouteNumber{3}, priority, 1000 + sequence, 5'000 + std::int64_t(sequence),
          std::move(waiting)};
}

QuarantinedRecord quarantined_of(Sequence sequence) {
  return {sequence, id_of(sequence), Reason::rejected, kHub, RouteNumber{3}, kNormalPriority, 1000 + sequence, -5};
}

std::unique_ptr<Index> must_open(FileSystem& fs, const std::string& era = "era") {
  auto index = Index::open(fs, kUuid, era);
  EXPECT_TRUE(index.ok()) << index.error().text;
  return index.ok() ? *std::move(index) : nullptr;
}

bool same(const IndexedRecord& a, const IndexedRecord& b) {
  return a.sequence == b.sequence && a.id == b.id && a.route == b.route && a.priority == b.priority &&
         a.size == b.size && a.accepted_wall_ns == b.accepted_wall_ns && a.waiting == b.waiting;
}

std::vector<Sequence> due_sequences(Index& index, TargetNumber target, Priority priority, Sequence after,
                                    std::size_t limit) {
  std::vector<Sequence> sequences;
  const auto due = index.due(target, priority, after, limit);
  EXPECT_TRUE(due.ok()) << due.error().text;
  for (const DueRow& row : *due) {
    EXPECT_EQ(row.id, id_of(row.sequence));
    EXPECT_EQ(row.route, RouteNumber{3});
    sequences.push_back(row.sequence);
  }
  return sequences;
}

// --- One change after another

TEST(Index, ANewOne_SaysSo_AndKeepsItsEraForLater) {
  SimulatedFileSystem fs;
  {
    const auto index = must_open(fs, "first");
    EXPECT_TRUE(index->rebuilt());
    EXPECT_EQ(index->era(), "first");
    EXPECT_EQ(index->records(), 0u);
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
  ASSERT_EQ(index->tombstones_to_unlink(10)->size(), 1u);
  EXPECT_EQ(index->tombstones_to_unlink(10)->front(), (std::pair{Sequence{7}, id_of(7)}));
  // Not before its unlink is known to be on the medium.
  ASSERT_TRUE(index->apply({.forget_tombstones_below = 100}, Durability::lazy).ok());
  EXPECT_TRUE(*index->is_tombstone(7));
  ASSERT_TRUE(index->apply({.unlinked = {7, 8}}, Durability::lazy).ok());
  EXPECT_TRUE(*index->is_tombstone(7));
  EXPECT_FALSE(*index->is_tombstone(8));
  EXPECT_TRUE(index->tombstones_to_unlink(10)->empty());
  ASSERT_TRUE(index->apply({.forget_tombstones_below = 7}, Durability::lazy).ok());
  EXPECT_TRUE(*index->is_tombstone(7));
  ASSERT_TRUE(index->apply({.forget_tombstones_below = 8}, Durability::lazy).ok());
  EXPECT_FALSE(*index->is_tombstone(7));
}

TEST(Index, ATombstoneWithoutARow_HasNoId_AndGoesWhenTheRecordIsFiledAfterAll) {
  SimulatedFileSystem fs;
  const auto index = must_open(fs);
  ASSERT_TRUE(index->apply({.entombed = {5, 6}, .unlinked = {6}}, Durability::lazy).ok());
  EXPECT_EQ(index->tombstones_to_unlink(10)->front(), (std::pair{Sequence{5}, RecordId{}}));
  ASSERT_TRUE(index->apply({.filed = {record_of(5, {kHub}), record_of(6, {kHub})}}, Durability::lazy).ok());
  EXPECT_FALSE(*index->is_tombstone(5));
  EXPECT_FALSE(*index->is_tombstone(6));
  EXPECT_EQ(index->records(), 2u);
}

TEST(Index, WhatWaitsAgain_MustBeThere_ElseNothingChanges) {
  SimulatedFileSystem fs;
  const auto index = must_open(fs);
  ASSERT_TRUE(index->apply({.filed = {record_of(7, {})}}, Durability::lazy).ok());
  ASSERT_TRUE(index->apply({.waiting = {{kFile, 7}, {kFile, 7}}}, Durability::lazy).ok());
  EXPECT_EQ(index->waiting()[0].records, 1u);
  IndexChange change;
  change.filed = {record_of(8, {kHub})};
  change.waiting = {{kHub, 7}, {kHub, 99}};
  change.add.taken = 5;
  change.remember = {{id_of(1), std::nullopt, {}}, {id_of(2), StreamPosition{1, 2, 3}, {}}};
  const auto applied = index->apply(change, Durability::durable);
  ASSERT_FALSE(applied.ok());
  EXPECT_EQ(applied.error().kind, ErrorKind::not_found);
  EXPECT_FALSE(*index->find(8));
  EXPECT_EQ(index->totals(), Totals{});
  EXPECT_EQ(index->waiting().size(), 1u);
  EXPECT_FALSE(*index->ledger().find(id_of(1), std::nullopt));
  EXPECT_FALSE(index->ledger().maybe_seen(id_of(2), StreamPosition{1, 2, 3}));
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
      if (change.waiting.empty() && dice_.percent(20)) {
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
    for (const auto& [sequence, record] : records_) {
      if (dice_.percent(2)) change.waiting.emplace_back(TargetNumber(1 + dice_.below(4)), sequence);
    }
    return change;
  }

  void follow(const IndexChange& change) {
    for (const IndexedRecord& record : change.filed) {
      records_[record.sequence] = record;
      tombstones_.erase(record.sequence);
    }
    for (const auto& [target, sequence] : change.waiting) {
      auto& waiting = records_[sequence].waiting;
      if (std::find(waiting.begin(), waiting.end(), target) == waiting.end()) waiting.push_back(target);
      std::sort(waiting.begin(), waiting.end());
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
    ASSERT_EQ(index_->tombstones_to_unlink(100'000)->size(), static_cast<std::size_t>(open_tombstones));
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

// --- Power and failures

// A run of changes of every kind. The n-th change leaves n in totals.taken, and rows that say n.
constexpr std::uint64_t kChanges = 8;

IndexChange nth_change(std::uint64_t n) {
  IndexChange change;
  for (Sequence i = 0; i < 20; ++i) change.filed.push_back(record_of(n * 20 + i + 1, {kHub, kFile}));
  if (n > 0) {
    for (Sequence i = 0; i < 10; ++i) change.left.push_back((n - 1) * 20 + i + 1);
    for (Sequence i = 10; i < 20; ++i) change.settled.emplace_back(kHub, (n - 1) * 20 + i + 1);
    change.set_aside.push_back(quarantined_of(n));
  }
  if (n > 1) change.unlinked = {(n - 2) * 20 + 1, (n - 2) * 20 + 2};
  change.add.taken = 1;
  change.retired_base = n;
  change.running_time = std::chrono::seconds(n);
  for (std::uint64_t i = 0; i < 50; ++i) {
    change.remember.push_back({id_of(n * 50 + i), std::nullopt, {}});
    change.remember.push_back({{}, StreamPosition{1, n * 50 + i + 1, 7}, {}});
  }
  return change;
}

Durability nth_durability(std::uint64_t n) {
  return n % 3 == 1 ? Durability::durable : Durability::lazy;
}

// All that shows which changes are there agrees.
std::uint64_t changes_in(Index& index) {
  const std::uint64_t n = index.totals().taken;
  EXPECT_EQ(index.records(), n == 0 ? 0 : n * 20 - (n - 1) * 10);
  EXPECT_EQ(index.list(0, 1000)->size(), index.records());
  EXPECT_EQ(index.quarantined(), n == 0 ? 0 : n - 1);
  EXPECT_EQ(index.list_quarantine(0, 1000)->size(), index.quarantined());
  EXPECT_EQ(due_sequences(index, kHub, kNormalPriority, 0, 1000).size(), n == 0 ? 0u : 20u);
  EXPECT_EQ(index.waiting().size(), n == 0 ? 0u : 2u);
  EXPECT_EQ(index.ledger().ids(), n * 50);
  for (std::uint64_t i = 0; i < kChanges * 50; i += 7) {
    EXPECT_EQ(index.ledger().find(id_of(i), std::nullopt)->has_value(), i < n * 50);
    EXPECT_EQ(index.ledger().find({}, StreamPosition{1, i + 1, 7})->has_value(), i < n * 50);
  }
  return n;
}

struct Progress {
  std::uint64_t applied = 0;
  std::uint64_t durable = 0;
};

Result<void> live(FileSystem& fs, Progress& progress) {
  for (const std::uint64_t end : {kChanges / 2, kChanges}) {
    auto opened = Index::open(fs, kUuid, "era");
    if (!opened.ok()) return opened.error();
    Index& index = **opened;
    progress.durable = progress.applied;
    while (progress.applied < end) {
      const std::uint64_t n = progress.applied;
      HOLDFAST_TRY(index.apply(nth_change(n), nth_durability(n)));
      ++progress.applied;
      if (nth_durability(n) == Durability::durable) progress.durable = progress.applied;
      HOLDFAST_TRY(index.tidy());
    }
    if (end == kChanges) HOLDFAST_TRY(index.close());
  }
  progress.durable = progress.applied;
  return {};
}

void expect_recovered(FileSystem& fs, const Progress& progress, const std::string& what) {
  SCOPED_TRACE(what);
  const auto index = must_open(fs);
  ASSERT_TRUE(index);
  const std::uint64_t n = changes_in(*index);
  EXPECT_GE(n, progress.durable);
  EXPECT_LE(n, progress.applied + 1);
  if (n < kChanges) {
    ASSERT_TRUE(index->apply(nth_change(n), Durability::durable).ok());
    EXPECT_EQ(changes_in(*index), n + 1);
  }
}

// Too little room for a reserve: its 32 writes would only make the loops longer.
void make_small(SimulatedFileSystem& fs) {
  fs.set_capacity(24 << 20, 1000);
}

TEST(Index, PowerCutAtEveryStep_LeavesWholeChanges_AndEveryDurableOne) {
  for (std::uint64_t step = 1;; ++step) {
    SimulatedFileSystem fs(step);
    make_small(fs);
    fs.fail_at(step, {FaultKind::power_cut});
    Progress progress;
    const auto lived = live(fs, progress);
    if (fs.counts().struck == 0) {
      EXPECT_TRUE(lived.ok());
      break;
    }
    for (std::uint64_t way = 0; way < 4; ++way) {
      const auto copy = fs.copy();
      way == 0 ? copy->lose_power(Loss::drop_all) : copy->lose_power(step * 4 + way);
      expect_recovered(*copy, progress, "step " + std::to_string(step) + " way " + std::to_string(way));
      EXPECT_FALSE(copy->there(kBad)) << "a power cut is not corruption, step " << step << " way " << way;
    }
    if (HasFailure()) return;
  }
}

TEST(Index, FailureAtEveryStep_ReadsIncluded_EndsThisLife_AndIsNoCorruption) {
  for (const FaultKind kind : {FaultKind::io, FaultKind::short_write, FaultKind::unavailable}) {
    for (std::uint64_t step = 1;; ++step) {
      SimulatedFileSystem fs(step);
      make_small(fs);
      fs.count_reads(true);
      fs.fail_at(step, {kind});
      Progress progress;
      const auto lived = live(fs, progress);
      if (fs.counts().struck == 0) break;
      EXPECT_EQ(fs.counts().syncs_after_failure, 0u);
      if (!lived.ok()) {
        EXPECT_NE(lived.error().kind, ErrorKind::corrupt) << lived.error().text;
      }
      EXPECT_FALSE(fs.there(kBad)) << "step " << step << "\n" << fs.trace();
      fs.restart_without_power_loss();
      expect_recovered(fs, progress, "kind " + std::to_string(int(kind)) + " step " + std::to_string(step));
      if (HasFailure()) return;
    }
  }
}

// --- Room

// Settles one record; takes room in the WAL, the ledger and the tombstones.
IndexChange settling_change(std::uint64_t n) {
  IndexChange change;
  change.left = {n};
  change.add.delivered = 1;
  for (std::uint64_t i = 0; i < 20; ++i) change.remember.push_back({id_of(n * 20 + i), std::nullopt, {}});
  return change;
}

void leave_free(SimulatedFileSystem& fs, std::uint64_t bytes) {
  std::uint64_t used = 0;
  for (const auto& path : fs.files()) used += fs.inspect(path)->allocated;
  fs.set_capacity(used + bytes, 1000);
}

TEST(Index, OnAFullDisk_SettlingGetsTheReserve_FilingDoesNot_AndBothGoOnWhenThereIsRoom) {
  SimulatedFileSystem fs;
  const auto index = must_open(fs);
  IndexChange filing;
  for (Sequence n = 1; n <= 2000; ++n) filing.filed.push_back(record_of(n, {kHub}));
  ASSERT_TRUE(index->apply(filing, Durability::durable).ok());
  ASSERT_TRUE(fs.there(kReserve));
  leave_free(fs, 16 * 1024);

  for (IndexedRecord& record : filing.filed) record.sequence += 2000;
  EXPECT_EQ(index->apply(filing, Durability::durable).error().kind, ErrorKind::full);
  EXPECT_EQ(index->records(), 2000u);
  EXPECT_TRUE(fs.there(kReserve)) << "it is for what makes room";
  EXPECT_FALSE(index->reserve_spent());

  std::uint64_t n = 0;
  while (fs.there(kReserve)) {
    const auto applied = index->apply(settling_change(++n), Durability::durable);
    ASSERT_TRUE(applied.ok()) << applied.error().text << "\n" << fs.trace();
  }
  EXPECT_TRUE(index->reserve_spent());
  Result<void> applied;
  for (leave_free(fs, 64 * 1024); (applied = index->apply(settling_change(n + 1), Durability::durable)).ok();) ++n;
  EXPECT_EQ(applied.error().kind, ErrorKind::full) << applied.error().text;
  EXPECT_EQ(index->totals().delivered, n) << "nothing changed";
  EXPECT_EQ(index->ledger().ids(), n * 20);
  const auto tidied = index->tidy();
  EXPECT_TRUE(tidied.ok() || tidied.error().kind == ErrorKind::full);
  EXPECT_FALSE(fs.there(kReserve));

  fs.set_capacity(1ull << 30, 1000);
  ASSERT_TRUE(index->apply(settling_change(n + 1), Durability::durable).ok());
  ASSERT_TRUE(index->tidy().ok());
  EXPECT_FALSE(index->reserve_spent());
  EXPECT_EQ(fs.bytes(kReserve).size(), kReserveBytes);
  ASSERT_TRUE(index->apply(filing, Durability::durable).ok());
}

TEST(Index, FullAtEveryStep_ChangesNothing_AndIsNoCorruption) {
  for (const bool persistent : {false, true}) {
    for (std::uint64_t step = 1;; ++step) {
      SimulatedFileSystem fs(step);
      fs.fail_at(step, {FaultKind::full, persistent, false});
      Progress progress;
      const auto lived = live(fs, progress);
      if (fs.counts().struck == 0) break;
      if (!lived.ok()) {
        EXPECT_EQ(lived.error().kind, ErrorKind::full) << lived.error().text << "\n" << fs.trace();
      }
      fs.clear_faults();
      fs.restart_without_power_loss();
      expect_recovered(fs, progress, "step " + std::to_string(step));
      EXPECT_FALSE(fs.there(kBad));
      if (HasFailure()) return;
    }
  }
}

TEST(Index, PowerCutWhileTheReserveIsMade_HarmsNothing) {
  SimulatedFileSystem before;
  make_small(before);
  ASSERT_TRUE(must_open(before)->apply(nth_change(0), Durability::durable).ok());
  before.restart_without_power_loss();
  before.set_capacity(1 << 30, 1000);
  for (std::uint64_t step = 1;; step += 3) {
    const auto fs = before.copy();
    fs->fail_at(fs->steps() + step, {FaultKind::power_cut});
    const bool opened = Index::open(*fs, kUuid, "era").ok();
    if (fs->counts().struck == 0) break;
    EXPECT_FALSE(opened);
    fs->lose_power(step);
    EXPECT_EQ(changes_in(*must_open(*fs)), 1u);
    EXPECT_EQ(fs->inspect(kReserve)->allocated, kReserveBytes);
  }
}

TEST(Index, AReserveThatIsNotWhole_IsMadeAgain) {
  SimulatedFileSystem fs;
  must_open(fs);
  fs.cut_to(kReserve, 5000);
  fs.restart_without_power_loss();
  must_open(fs);
  EXPECT_EQ(fs.bytes(kReserve).size(), kReserveBytes);
}

// --- Files that are not a sound index of this spool

std::unique_ptr<SimulatedFileSystem> disk_with_index(bool closed) {
  auto fs = std::make_unique<SimulatedFileSystem>();
  {
    const auto index = must_open(*fs);
    for (std::uint64_t n = 0; n < 3; ++n) EXPECT_TRUE(index->apply(nth_change(n), Durability::durable).ok());
    if (closed) {
      EXPECT_TRUE(index->close().ok());
    }
  }
  fs->restart_without_power_loss();
  return fs;
}

void expect_rebuilt(SimulatedFileSystem& fs, const std::string& what) {
  SCOPED_TRACE(what);
  const auto index = must_open(fs, "new");
  ASSERT_TRUE(index);
  EXPECT_TRUE(index->rebuilt());
  EXPECT_EQ(index->era(), "new");
  EXPECT_EQ(changes_in(*index), 0u);
  ASSERT_TRUE(index->apply(nth_change(0), Durability::durable).ok());
  ASSERT_TRUE(index->close().ok());
  EXPECT_TRUE(fs.there(kBad));
}

TEST(Index, AnotherSpools_OrANewerVersions_IsSetAside_ByteForByte) {
  auto foreign = std::make_unique<SimulatedFileSystem>();
  ASSERT_TRUE((*Index::open(*foreign, kOtherUuid, "theirs"))->close().ok());
  foreign->restart_without_power_loss();
  const Bytes theirs = foreign->bytes(kPath);
  expect_rebuilt(*foreign, "foreign");
  EXPECT_EQ(foreign->bytes(kBad), theirs);

  for (const char* alter : {"PRAGMA user_version=2", "PRAGMA application_id=1", "DROP TABLE owner", "DELETE FROM state",
                            "DROP TABLE waiting", "UPDATE owner SET uuid = x'00'", "DELETE FROM owner"}) {
    const auto fs = disk_with_index(true);
    ASSERT_TRUE((*Database::open(*fs, kPath))->execute(alter).ok());
    fs->restart_without_power_loss();
    expect_rebuilt(*fs, alter);
  }
}

TEST(Index, FilesOfAnySizeOrKind_AreSetAside) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{100}, std::size_t{4096}, std::size_t{100'000}}) {
    for (const std::uint8_t fill : {std::uint8_t{0}, std::uint8_t{'x'}}) {
      SimulatedFileSystem fs;
      fs.plant(kPath, Bytes(size, fill));
      expect_rebuilt(fs, std::to_string(size));
      EXPECT_EQ(fs.bytes(kBad), Bytes(size, fill));
    }
  }
  SimulatedFileSystem fs;
  fs.plant_other(kPath);
  expect_rebuilt(fs, "no file");
}

TEST(Index, CutAnywhere_IsSetAside) {
  const auto whole = disk_with_index(true);
  const std::uint64_t size = whole->bytes(kPath).size();
  Dice dice(5);
  for (int i = 0; i < 60; ++i) {
    const auto fs = whole->copy();
    const std::uint64_t cut = 1 + (i % 2 ? dice.below(size - 1) : dice.below(size / 4096) * 4096);
    fs->cut_to(kPath, cut - (i % 2 ? 0 : 1) + (cut == 1 ? 1 : 0));
    expect_rebuilt(*fs, "cut to " + std::to_string(cut));
    if (HasFailure()) return;
  }
}

TEST(Index, AnEmptyFile_AndAWalWithoutItsDatabase_AreNoIndex) {
  const auto fs = disk_with_index(false);
  ASSERT_GT(fs->bytes(kWal).size(), 0u);
  fs->erase(kPath);
  const Bytes orphan = fs->bytes(kWal);
  {
    const auto index = must_open(*fs, "new");
    EXPECT_TRUE(index->rebuilt());
    EXPECT_EQ(changes_in(*index), 0u);
  }
  EXPECT_EQ(fs->bytes(kBadWal), orphan);
}

TEST(Index, DamageFoundLater_EndsThisLife_AndTheNextBeginsAnew) {
  std::set<std::string> found_in;
  const auto whole = disk_with_index(true);
  const std::uint64_t pages = whole->bytes(kPath).size() / 4096;
  for (std::uint64_t page = 0; page < pages; ++page) {
    SCOPED_TRACE("page " + std::to_string(page));
    const auto fs = whole->copy();
    fs->flip(kPath, page * 4096 + 2000);
    {
      auto opened = Index::open(*fs, kUuid, "new");
      ASSERT_TRUE(opened.ok()) << opened.error().text;
      if ((*opened)->rebuilt()) {
        found_in.insert("open");
        EXPECT_TRUE(fs->there(kBad));
        continue;
      }
      EXPECT_FALSE(fs->there(kBad));
      const auto applied = (*opened)->apply(nth_change(3), Durability::durable);
      const auto listed = (*opened)->list(0, 1000);
      const auto found = (*opened)->ledger().find(id_of(1), std::nullopt);
      const auto seen = (*opened)->ledger().last_position(1, 1000);
      const bool all_well = applied.ok() && listed.ok() && found.ok() && seen.ok();
      if (all_well) continue;  // a page that none of these has read
      found_in.insert(applied.ok() ? "question" : "apply");
      const Error& error = !applied.ok()  ? applied.error()
                           : !listed.ok() ? listed.error()
                           : !found.ok()  ? found.error()
                                          : seen.error();
      EXPECT_EQ(error.kind, ErrorKind::corrupt) << error.text;
      EXPECT_TRUE(fs->there(kBad)) << "marked at once";
      EXPECT_FALSE(fs->there(kPath));
      EXPECT_FALSE((*opened)->apply(nth_change(4), Durability::durable).ok());
      EXPECT_FALSE((*opened)->close().ok());
    }
    fs->restart_without_power_loss();
    expect_rebuilt(*fs, "the next life");
  }
  EXPECT_GE(found_in.size(), 2u);
}

TEST(Index, PowerCutWhileItIsSetAside_EndsInANewIndexAllTheSame) {
  const auto before = disk_with_index(false);
  before->erase(kReserve);
  make_small(*before);
  before->overwrite(kPath, 0, Bytes(4096, 'x'));
  before->erase(kWal);
  for (std::uint64_t step = 1;; ++step) {
    const auto fs = before->copy();
    fs->fail_at(fs->steps() + step, {FaultKind::power_cut});
    const auto opened = Index::open(*fs, kUuid, "new");
    if (fs->counts().struck == 0) break;
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      const auto copy = fs->copy();
      seed == 0 ? copy->lose_power(Loss::drop_all) : copy->lose_power(seed);
      const auto index = must_open(*copy, "newer");
      ASSERT_TRUE(index);
      EXPECT_EQ(changes_in(*index), 0u);
    }
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
