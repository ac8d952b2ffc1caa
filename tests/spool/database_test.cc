// What the database promises: transactions are whole, durable ones outlive a power cut at any step, nothing is believed
// or retried after a failure, and damage is found.
#include "spool/database.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/simulated_file_system.h"
#include "tests/support/temporary_directory.h"

namespace holdfast {
namespace {

constexpr const char* kPath = "d.sqlite3";
constexpr const char* kWal = "d.sqlite3-wal";
constexpr std::uint64_t kRowsEach = 7;  // of a transaction

std::unique_ptr<Database> must_open(FileSystem& fs) {
  auto database = Database::open(fs, kPath);
  EXPECT_TRUE(database.ok()) << database.error().text;
  return database.ok() ? *std::move(database) : nullptr;
}

Result<void> make_table(Database& database) {
  HOLDFAST_TRY(database.begin(Durability::durable));
  HOLDFAST_TRY(database.execute("CREATE TABLE IF NOT EXISTS t(k INTEGER PRIMARY KEY, v BLOB NOT NULL)"));
  return database.commit();
}

// The n-th transaction: its rows are told apart from all others'.
Result<void> write_rows(Database& database, std::uint64_t n) {
  Statement insert;
  HOLDFAST_TRY(database.prepare(insert, "INSERT INTO t(k, v) VALUES(?, ?)"));
  const Bytes value(700, static_cast<std::uint8_t>(n));
  for (std::uint64_t i = 0; i < kRowsEach; ++i) HOLDFAST_TRY(insert.bind(1, n * kRowsEach + i).bind(2, value).run());
  return {};
}

Result<void> transact(Database& database, std::uint64_t n, Durability durability) {
  HOLDFAST_TRY(database.begin(durability));
  if (auto written = write_rows(database, n); !written.ok()) {
    database.rollback();
    return written;
  }
  return database.commit();
}

Result<std::uint64_t> count_rows(Database& database) {
  Statement count;
  HOLDFAST_TRY(database.prepare(count, "SELECT count(*), ifnull(max(k) + 1, 0) FROM t"));
  const auto row = count.step();
  if (!row.ok()) return row.error();
  EXPECT_EQ(count.u64(0), count.u64(1)) << "a transaction is missing before a later one";
  return count.u64(0);
}

// How many whole transactions are there; they are the first ones.
std::uint64_t transactions(Database& database) {
  EXPECT_TRUE(database.check_integrity().ok());
  const auto rows = count_rows(database);
  EXPECT_TRUE(rows.ok());
  EXPECT_EQ(*rows % kRowsEach, 0u) << "a torn transaction";
  return *rows / kRowsEach;
}

TEST(Database, OnARealDisk_WhatWasCommittedIsThereAtTheNextOpen) {
  const TemporaryDirectory directory;
  const auto fs = open_posix_file_system(directory.path());
  ASSERT_TRUE(fs.ok());
  {
    const auto database = must_open(**fs);
    ASSERT_TRUE(make_table(*database).ok());
    for (std::uint64_t n = 0; n < 300; ++n)
      ASSERT_TRUE(transact(*database, n, n % 3 ? Durability::lazy : Durability::durable).ok());
    ASSERT_TRUE(database->checkpoint().ok());
    EXPECT_EQ(database->wal_bytes(), 0u);
    for (std::uint64_t n = 300; n < 310; ++n) ASSERT_TRUE(transact(*database, n, Durability::lazy).ok());
    EXPECT_GT(database->wal_bytes(), 0u);
    EXPECT_EQ(transactions(*database), 310u);
  }
  {
    const auto database = must_open(**fs);
    EXPECT_EQ(database->wal_bytes(), 0u);
    EXPECT_EQ(transactions(*database), 310u);
    ASSERT_TRUE(database->close().ok());
  }
  EXPECT_EQ((*fs)->inspect(kWal)->size, 0u);
  EXPECT_EQ((*fs)->inspect(kPath)->mode, 0600u);
}

TEST(Database, Rollback_LeavesNothing) {
  SimulatedFileSystem fs;
  const auto database = must_open(fs);
  ASSERT_TRUE(make_table(*database).ok());
  ASSERT_TRUE(database->begin(Durability::durable).ok());
  ASSERT_TRUE(write_rows(*database, 0).ok());
  database->rollback();
  EXPECT_EQ(transactions(*database), 0u);
  EXPECT_TRUE(transact(*database, 0, Durability::lazy).ok());
  EXPECT_EQ(transactions(*database), 1u);
}

TEST(Database, ARowTwice_IsExists_AndATornStatementIsUndone) {
  SimulatedFileSystem fs;
  const auto database = must_open(fs);
  ASSERT_TRUE(make_table(*database).ok());
  ASSERT_TRUE(transact(*database, 0, Durability::lazy).ok());
  const auto again = transact(*database, 0, Durability::lazy);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().kind, ErrorKind::exists);
  EXPECT_EQ(transactions(*database), 1u);
}

TEST(Database, LazyCommit_SyncsNothing_DurableCommitSyncsOnce) {
  SimulatedFileSystem fs;
  const auto database = must_open(fs);
  ASSERT_TRUE(make_table(*database).ok());
  ASSERT_TRUE(transact(*database, 0, Durability::durable).ok());
  auto before = fs.counts();
  ASSERT_TRUE(transact(*database, 1, Durability::lazy).ok());
  ASSERT_TRUE(transact(*database, 2, Durability::lazy).ok());
  EXPECT_EQ(fs.counts().file_syncs, before.file_syncs);
  ASSERT_TRUE(transact(*database, 3, Durability::durable).ok());
  EXPECT_EQ(fs.counts().file_syncs, before.file_syncs + 1);
}

TEST(Database, DurableCommit_CostsOneFrameMoreThanALazyOne) {
  SimulatedFileSystem fs;
  const auto database = must_open(fs);
  ASSERT_TRUE(make_table(*database).ok());
  ASSERT_TRUE(transact(*database, 0, Durability::durable).ok());
  const auto bytes_of = [&](std::uint64_t n, Durability durability) {
    const auto before = fs.counts().bytes_written;
    EXPECT_TRUE(transact(*database, n, durability).ok());
    return fs.counts().bytes_written - before;
  };
  bytes_of(1, Durability::lazy);
  const auto lazy = bytes_of(2, Durability::lazy);
  const auto durable = bytes_of(3, Durability::durable);
  EXPECT_LE(durable, lazy + 2 * 4120u);
}

TEST(Database, PowerCutAfterDurableCommit_KeepsItAndAllBeforeIt) {
  for (const Loss loss :
       {Loss::drop_all, Loss::random, Loss::keep_names, Loss::keep_bytes, Loss::keep_names_and_sizes}) {
    SimulatedFileSystem fs(7);
    {
      const auto database = must_open(fs);
      ASSERT_TRUE(make_table(*database).ok());
      ASSERT_TRUE(transact(*database, 0, Durability::lazy).ok());
      ASSERT_TRUE(transact(*database, 1, Durability::durable).ok());
      ASSERT_TRUE(transact(*database, 2, Durability::lazy).ok());
      fs.lose_power(loss);
    }
    const auto database = must_open(fs);
    EXPECT_GE(transactions(*database), 2u);
    if (loss == Loss::drop_all) {
      EXPECT_EQ(transactions(*database), 2u);
    }
  }
}

TEST(Database, DurableCommitOfNothing_MakesWhatWasBeforeItDurable) {
  SimulatedFileSystem fs;
  {
    const auto database = must_open(fs);
    ASSERT_TRUE(make_table(*database).ok());
    ASSERT_TRUE(transact(*database, 0, Durability::lazy).ok());
    ASSERT_TRUE(database->begin(Durability::durable).ok());
    ASSERT_TRUE(database->commit().ok());
    fs.lose_power(Loss::drop_all);
  }
  EXPECT_EQ(transactions(*must_open(fs)), 1u);
}

// Nine transactions, every third durable, two checkpoints, a second life in between. Says how far it got.
struct Progress {
  std::uint64_t committed = 0;
  std::uint64_t durable = 0;
  bool table = false;
};

Result<void> live(FileSystem& fs, Progress& progress) {
  for (std::uint64_t n = 0; n < 9;) {
    auto opened = Database::open(fs, kPath);
    if (!opened.ok()) return opened.error();
    Database& database = **opened;
    HOLDFAST_TRY(make_table(database));
    progress.table = true;
    progress.durable = progress.committed;  // open has synced what it found
    for (const std::uint64_t end = n == 0 ? 5 : 9; n < end; ++n) {
      const Durability durability = n % 3 == 2 ? Durability::durable : Durability::lazy;
      HOLDFAST_TRY(transact(database, n, durability));
      ++progress.committed;
      if (durability == Durability::durable) progress.durable = progress.committed;
      if (n == 3 || n == 6) HOLDFAST_TRY(database.checkpoint());
      if (n == 3 || n == 6) progress.durable = progress.committed;
    }
    if (n == 9) HOLDFAST_TRY(database.close());
  }
  return {};
}

void expect_recovered(SimulatedFileSystem& fs, const Progress& progress, const std::string& what) {
  SCOPED_TRACE(what);
  auto opened = Database::open(fs, kPath);
  ASSERT_TRUE(opened.ok()) << opened.error().text << "\n" << fs.trace();
  if (!progress.table) {
    ASSERT_TRUE(make_table(**opened).ok());
  }
  const std::uint64_t found = transactions(**opened);
  EXPECT_GE(found, progress.durable);
  EXPECT_LE(found, progress.committed + 1);
}

TEST(Database, PowerCutAtEveryStep_LosesNothingDurable_AndTearsNothing) {
  for (std::uint64_t step = 1;; ++step) {
    SimulatedFileSystem fs(step);
    fs.fail_at(step, {FaultKind::power_cut});
    Progress progress;
    const auto lived = live(fs, progress);
    if (fs.counts().struck == 0) {
      EXPECT_TRUE(lived.ok());
      EXPECT_GT(step, 50u);
      break;
    }
    EXPECT_EQ(fs.counts().syncs_after_failure, 0u);
    for (const Loss loss :
         {Loss::drop_all, Loss::keep_all, Loss::keep_names, Loss::keep_names_and_sizes, Loss::keep_bytes}) {
      const auto copy = fs.copy();
      copy->lose_power(loss);
      expect_recovered(*copy, progress,
                       "step " + std::to_string(step) + " loss " + std::to_string(static_cast<int>(loss)));
    }
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      const auto copy = fs.copy();
      copy->lose_power(seed);
      expect_recovered(*copy, progress, "step " + std::to_string(step) + " seed " + std::to_string(seed));
    }
    if (HasFailure()) break;
  }
}

TEST(Database, PowerCutDuringRecovery_IsRecoveredFromAsWell) {
  // A state with a full WAL and a database behind it, that lost its power.
  SimulatedFileSystem before(1);
  {
    const auto database = must_open(before);
    ASSERT_TRUE(make_table(*database).ok());
    for (std::uint64_t n = 0; n < 6; ++n) ASSERT_TRUE(transact(*database, n, Durability::durable).ok());
    before.lose_power(Loss::drop_all);
  }
  for (std::uint64_t step = 1;; ++step) {
    const auto fs = before.copy();
    fs->fail_at(fs->steps() + step, {FaultKind::power_cut});
    const auto opened = Database::open(*fs, kPath);
    if (fs->counts().struck == 0) break;
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      const auto copy = fs->copy();
      copy->lose_power(seed);
      EXPECT_EQ(transactions(*must_open(*copy)), 6u) << "step " << step << " seed " << seed;
    }
  }
}

TEST(Database, FailureAtEveryStep_EndsThisLife_WithoutAnotherSync) {
  for (const bool partly : {false, true}) {
    for (std::uint64_t step = 1;; ++step) {
      SimulatedFileSystem fs(step);
      fs.fail_at(step, Fault{FaultKind::io, false, partly});
      Progress progress;
      const auto lived = live(fs, progress);
      if (fs.counts().struck == 0) break;
      EXPECT_EQ(fs.counts().syncs_after_failure, 0u) << "step " << step << "\n" << fs.trace();
      ASSERT_FALSE(lived.ok()) << "step " << step << "\n" << fs.trace();
      EXPECT_EQ(lived.error().kind, ErrorKind::io) << lived.error().text;
      // The process leaves; its successor sees the page cache, and then the power goes.
      const auto same_boot = fs.copy();
      same_boot->restart_without_power_loss();
      expect_recovered(*same_boot, progress, "restart, step " + std::to_string(step));
      Progress seen = progress;
      {
        const auto database = must_open(*same_boot);
        if (progress.table) seen.durable = transactions(*database);  // what an open has shown is on the medium
      }
      seen.committed = std::max(seen.committed, seen.durable);
      same_boot->lose_power(step);
      expect_recovered(*same_boot, seen, "restart, then power cut, step " + std::to_string(step));
      fs.lose_power(step);
      expect_recovered(fs, progress, "power cut, step " + std::to_string(step));
      if (HasFailure()) return;
    }
  }
}

TEST(Database, AfterAFailure_NothingWorks_AndNothingIsWritten) {
  SimulatedFileSystem fs;
  const auto database = must_open(fs);
  ASSERT_TRUE(make_table(*database).ok());
  fs.fail_next({FaultKind::io});
  const auto failed = transact(*database, 0, Durability::durable);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().kind, ErrorKind::io);
  fs.clear_faults();
  const auto steps = fs.steps();
  EXPECT_EQ(transact(*database, 0, Durability::lazy).error().kind, ErrorKind::io);
  EXPECT_EQ(database->checkpoint().error().kind, ErrorKind::io);
  EXPECT_EQ(database->close().error().kind, ErrorKind::io);
  EXPECT_EQ(fs.steps(), steps);
}

TEST(Database, FullDisk_IsFull_RollsBack_AndGoesOnWhenThereIsRoom) {
  SimulatedFileSystem fs;
  fs.plant("ballast", Bytes(1 << 20, 1));
  const auto database = must_open(fs);
  ASSERT_TRUE(make_table(*database).ok());
  ASSERT_TRUE(transact(*database, 0, Durability::durable).ok());
  fs.set_capacity((1 << 20) + 160 * 1024, 100);
  std::uint64_t n = 1;
  Result<void> last;
  for (; n < 1000 && last.ok(); ++n) last = transact(*database, n, Durability::lazy);
  ASSERT_FALSE(last.ok());
  EXPECT_EQ(last.error().kind, ErrorKind::full) << last.error().text;
  --n;
  EXPECT_EQ(transactions(*database), n);
  fs.erase("ballast");
  for (const std::uint64_t end = n + 5; n < end; ++n) ASSERT_TRUE(transact(*database, n, Durability::durable).ok());
  ASSERT_TRUE(database->close().ok());
  EXPECT_EQ(transactions(*must_open(fs)), n);
}

TEST(Database, FullAtEveryStep_IsFullOrDone_NeverTorn) {
  for (std::uint64_t step = 1;; ++step) {
    SimulatedFileSystem fs(step);
    fs.fail_at(step, {FaultKind::full});
    Progress progress;
    const auto lived = live(fs, progress);
    if (fs.counts().struck == 0) break;
    if (!lived.ok()) {
      EXPECT_EQ(lived.error().kind, ErrorKind::full) << lived.error().text << "\n" << fs.trace();
    }
    fs.restart_without_power_loss();
    expect_recovered(fs, progress, "step " + std::to_string(step));
  }
}

// --- Damage

Bytes sound_database() {
  SimulatedFileSystem fs;
  const auto database = must_open(fs);
  EXPECT_TRUE(make_table(*database).ok());
  for (std::uint64_t n = 0; n < 12; ++n) EXPECT_TRUE(transact(*database, n, Durability::lazy).ok());
  EXPECT_TRUE(database->close().ok());
  return fs.bytes(kPath);
}

// Reads everything: the whole content as it was, or `corrupt`.
void expect_whole_or_corrupt(SimulatedFileSystem& fs, const std::string& what) {
  SCOPED_TRACE(what);
  auto opened = Database::open(fs, kPath);
  if (!opened.ok()) {
    EXPECT_EQ(opened.error().kind, ErrorKind::corrupt) << opened.error().text;
    return;
  }
  Statement rows;
  auto prepared = (*opened)->prepare(rows, "SELECT k, v FROM t ORDER BY k");
  std::uint64_t expected = 0;
  Result<bool> row = false;
  while (prepared.ok() && (row = rows.step()).ok() && *row) {
    ASSERT_EQ(rows.u64(0), expected);
    ASSERT_EQ(rows.blob(1)[0], expected / kRowsEach);
    ++expected;
  }
  if (prepared.ok() && row.ok()) {
    EXPECT_EQ(expected, 12 * kRowsEach);
  } else {
    EXPECT_EQ((prepared.ok() ? row.error() : prepared.error()).kind, ErrorKind::corrupt);
  }
}

TEST(Database, AnyFlippedBit_IsFound) {
  const Bytes sound = sound_database();
  Dice dice(3);
  for (std::size_t page = 0; page < sound.size() / 4096; ++page) {
    for (int i = 0; i < 40; ++i) {
      const std::uint64_t offset = i < 4 ? page * 4096 + 4095 - i : page * 4096 + dice.below(i < 20 ? 110 : 4096);
      SimulatedFileSystem fs;
      fs.plant(kPath, sound);
      fs.flip(kPath, offset, static_cast<std::uint8_t>(1U << dice.below(8)));
      expect_whole_or_corrupt(fs, "offset " + std::to_string(offset));
    }
  }
}

TEST(Database, APageInAnothersPlace_IsFound) {
  const Bytes sound = sound_database();
  const std::size_t pages = sound.size() / 4096;
  for (std::size_t from = 0; from < pages; ++from) {
    for (std::size_t to = 0; to < pages; ++to) {
      if (from == to) continue;
      SimulatedFileSystem fs;
      fs.plant(kPath, sound);
      fs.overwrite(kPath, to * 4096, ByteView(sound).subspan(from * 4096, 4096));
      auto opened = Database::open(fs, kPath);
      Result<void> checked = opened.ok() ? (*opened)->check_integrity() : opened.error();
      ASSERT_FALSE(checked.ok()) << from << " in the place of " << to;
      EXPECT_EQ(checked.error().kind, ErrorKind::corrupt);
    }
  }
}

TEST(Database, AnyLength_IsFoundUnlessItIsWholeOrNothing) {
  const Bytes sound = sound_database();
  for (std::size_t size = 1; size < sound.size(); size += size < 200 || size % 4096 > 4000 ? 1 : 509) {
    SimulatedFileSystem fs;
    fs.plant(kPath, sound);
    fs.cut_to(kPath, size);
    expect_whole_or_corrupt(fs, "size " + std::to_string(size));
  }
}

TEST(Database, ForeignBytes_AreCorrupt) {
  for (const std::size_t size : {1u, 100u, 511u, 512u, 4096u, 10000u, 65536u}) {
    for (const std::uint8_t fill : {std::uint8_t{0}, std::uint8_t{0xff}, std::uint8_t{'x'}}) {
      SimulatedFileSystem fs;
      fs.plant(kPath, Bytes(size, fill));
      auto opened = Database::open(fs, kPath);
      ASSERT_FALSE(opened.ok()) << size << " of " << int{fill};
      EXPECT_EQ(opened.error().kind, ErrorKind::corrupt) << opened.error().text;
    }
  }
}

TEST(Database, SomethingThatIsNoFile_IsInvalid) {
  for (const char* name : {kPath, kWal}) {
    SimulatedFileSystem fs;
    fs.plant(kPath, sound_database());
    fs.erase(name);
    fs.plant_other(name);
    auto opened = Database::open(fs, kPath);
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.error().kind, ErrorKind::invalid) << opened.error().text;
  }
}

TEST(Database, ADamagedWal_IsAnOlderStateThatIsWhole) {
  SimulatedFileSystem before;
  {
    const auto database = must_open(before);
    ASSERT_TRUE(make_table(*database).ok());
    for (std::uint64_t n = 0; n < 6; ++n) ASSERT_TRUE(transact(*database, n, Durability::durable).ok());
    before.lose_power(Loss::drop_all);
  }
  Dice dice(11);
  std::set<std::uint64_t> seen;
  const auto size = before.bytes(kWal).size();
  for (int i = 0; i < 300; ++i) {
    const auto fs = before.copy();
    i % 3 == 0 ? fs->cut_to(kWal, dice.below(size)) : fs->flip(kWal, dice.below(size));
    auto opened = Database::open(*fs, kPath);
    ASSERT_TRUE(opened.ok()) << opened.error().text;
    if (!make_table(**opened).ok()) continue;
    seen.insert(transactions(**opened));
  }
  EXPECT_GT(seen.size(), 3u);
  EXPECT_LE(*seen.rbegin(), 6u);
}

TEST(Database, TheFirstCorrupt_IsMarkedOnce_AndEndsThisLife) {
  SimulatedFileSystem fs;
  Bytes damaged = sound_database();
  for (std::size_t at = 4096 + 500; at < damaged.size(); at += 4096) damaged[at] ^= 1;
  fs.plant(kPath, damaged);
  const auto database = must_open(fs);
  int marks = 0;
  database->on_corrupt([&] { ++marks; });
  EXPECT_EQ(count_rows(*database).error().kind, ErrorKind::corrupt);
  EXPECT_FALSE(count_rows(*database).ok());
  EXPECT_FALSE(transact(*database, 99, Durability::durable).ok());
  EXPECT_EQ(marks, 1);
}

}  // namespace
}  // namespace holdfast
