// What the index promises when it is struck: a change is whole or not at all; a full disk, a failure and a power cut
// are no corruption; a file that is not a sound index of this spool stops nothing.
#include <gtest/gtest.h>

#include <set>

#include "spool/index.h"
#include "spool/reserve.h"
#include "tests/spool/index_records.h"

namespace holdfast {
namespace {

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
    change.remember.push_back({id_of(n * 50 + i), std::nullopt, false, {}});
    change.remember.push_back({{}, StreamPosition{1, n * 50 + i + 1, 7}, true, {}});
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

TEST(IndexCrash, PowerCutAtEveryStep_LeavesWholeChanges_AndEveryDurableOne) {
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

TEST(IndexCrash, FailureAtEveryStep_ReadsIncluded_EndsThisLife_AndIsNoCorruption) {
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
  for (std::uint64_t i = 0; i < 20; ++i) change.remember.push_back({id_of(n * 20 + i), std::nullopt, false, {}});
  return change;
}

void leave_free(SimulatedFileSystem& fs, std::uint64_t bytes) {
  std::uint64_t used = 0;
  for (const auto& path : fs.files()) used += fs.inspect(path)->allocated;
  fs.set_capacity(used + bytes, 1000);
}

TEST(IndexCrash, OnAFullDisk_SettlingGetsTheReserve_FilingDoesNot_AndBothGoOnWhenThereIsRoom) {
  SimulatedFileSystem fs;
  const auto index = must_open(fs);
  IndexChange filing;
  for (Sequence n = 1; n <= 2000; ++n) filing.filed.push_back(record_of(n, {kHub}));
  ASSERT_TRUE(index->apply(filing, Durability::durable).ok());
  ASSERT_FALSE(fs.there(kReserve)) << "opening is quick";
  ASSERT_TRUE(index->tidy().ok());
  ASSERT_TRUE(fs.there(kReserve));
  leave_free(fs, 16 * 1024);

  for (IndexedRecord& record : filing.filed) record.sequence += 2000;
  filing.add.taken = 5;
  filing.remember = {{id_of(1), std::nullopt, false, {}}, {id_of(2), StreamPosition{1, 2, 3}, true, {}}};
  EXPECT_EQ(index->apply(filing, Durability::durable).error().kind, ErrorKind::full);
  EXPECT_EQ(index->records(), 2000u) << "nothing changed";
  EXPECT_FALSE(*index->find(2001));
  EXPECT_EQ(index->totals(), Totals{});
  EXPECT_EQ(index->waiting()[0].records, 2000u);
  EXPECT_FALSE(*index->ledger().find(id_of(1), std::nullopt));
  EXPECT_FALSE(index->ledger().maybe_seen(id_of(2), StreamPosition{1, 2, 3}));
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

TEST(IndexCrash, FullAtEveryStep_ChangesNothing_AndIsNoCorruption) {
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

TEST(IndexCrash, PowerCutWhileTheReserveIsMade_HarmsNothing) {
  SimulatedFileSystem before;
  make_small(before);
  ASSERT_TRUE(must_open(before)->apply(nth_change(0), Durability::durable).ok());
  before.restart_without_power_loss();
  before.set_capacity(1 << 30, 1000);
  for (std::uint64_t step = 1;; step += 3) {
    const auto fs = before.copy();
    {
      const auto index = must_open(*fs);
      fs->fail_at(fs->steps() + step, {FaultKind::power_cut});
      const bool tidied = index->tidy().ok();
      if (fs->counts().struck == 0) break;
      EXPECT_FALSE(tidied);
    }
    fs->lose_power(step);
    const auto index = must_open(*fs);
    EXPECT_EQ(changes_in(*index), 1u);
    EXPECT_TRUE(index->tidy().ok());
    EXPECT_EQ(fs->inspect(kReserve)->allocated, kReserveBytes);
  }
}

TEST(IndexCrash, AReserveThatIsNotWhole_IsMadeAgain) {
  SimulatedFileSystem fs;
  EXPECT_TRUE(must_open(fs)->tidy().ok());
  fs.cut_to(kReserve, 5000);
  fs.restart_without_power_loss();
  EXPECT_TRUE(must_open(fs)->tidy().ok());
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

TEST(IndexCrash, AnotherSpools_OrANewerVersions_IsSetAside_ByteForByte) {
  auto foreign = std::make_unique<SimulatedFileSystem>();
  ASSERT_TRUE((*Index::open(*foreign, kOtherUuid, "theirs"))->close().ok());
  foreign->restart_without_power_loss();
  const Bytes theirs = foreign->bytes(kPath);
  expect_rebuilt(*foreign, "foreign");
  EXPECT_EQ(foreign->bytes(kBad), theirs);

  for (const char* alter : {"PRAGMA user_version=1", "PRAGMA application_id=1", "DROP TABLE owner", "DELETE FROM state",
                            "DROP TABLE waiting", "UPDATE owner SET uuid = x'00'", "DELETE FROM owner"}) {
    const auto fs = disk_with_index(true);
    ASSERT_TRUE((*Database::open(*fs, kPath))->execute(alter).ok());
    fs->restart_without_power_loss();
    expect_rebuilt(*fs, alter);
  }
}

TEST(IndexCrash, FilesOfAnySizeOrKind_AreSetAside) {
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

TEST(IndexCrash, CutAnywhere_IsSetAside) {
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

TEST(IndexCrash, AnEmptyFile_AndAWalWithoutItsDatabase_AreNoIndex) {
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

TEST(IndexCrash, DamageFoundLater_EndsThisLife_AndTheNextBeginsAnew) {
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
      const auto seen = (*opened)->ledger().last_positions(1, 1000);
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

TEST(IndexCrash, PowerCutWhileItIsSetAside_EndsInANewIndexAllTheSame) {
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

}  // namespace
}  // namespace holdfast
