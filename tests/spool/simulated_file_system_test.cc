// How the simulated disk fails, lives again, fills and is looked into. What it forgets: simulated_loss_test.cc.
#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

#include "tests/spool/power_cuts.h"

namespace holdfast {
namespace {

// --- Failed syncs

TEST(SimulatedSync, AFailedSync_LeavesTheCacheAndNotTheMedium_ForGood) {
  SimulatedFileSystem fs;
  settle(fs, "a", "old");
  const auto file = opened(fs, "a");
  ASSERT_TRUE(file->write_at(0, as_bytes("new")).ok());
  fs.fail_next({FaultKind::io});
  EXPECT_EQ(file->sync().error().kind, ErrorKind::io);
  EXPECT_EQ(text_of(fs, "a"), "new");
  EXPECT_EQ(as_text(fs.medium_bytes("a")), "old");
  // What PostgreSQL learned: the second try succeeds and means nothing.
  EXPECT_TRUE(file->sync().ok());
  EXPECT_TRUE(fs.sync_all().ok());
  EXPECT_EQ(fs.counts().syncs_after_failure, 2U);
  EXPECT_EQ(as_text(fs.medium_bytes("a")), "old");
  fs.restart_without_power_loss();
  EXPECT_EQ(text_of(fs, "a"), "new");
  EXPECT_TRUE(opened(fs, "a")->sync().ok());
  EXPECT_EQ(fs.counts().syncs_after_failure, 2U);
  EXPECT_EQ(outcomes(fs, [](const auto& disk) { return text_of(disk, "a"); }), Texts{"old"});
}

TEST(SimulatedSync, ADirectRead_ShowsWhatAFailedSyncHasLost) {
  SimulatedFileSystem fs;
  settle(fs, "a", std::string(4096, 'o') + std::string(4096, 'o'));
  const auto file = opened(fs, "a");
  ASSERT_TRUE(file->write_at(0, as_bytes("lost")).ok());
  fs.fail_next({FaultKind::io});
  EXPECT_FALSE(file->sync().ok());
  ASSERT_TRUE(file->write_at(4096, as_bytes("next")).ok());
  fs.restart_without_power_loss();
  const auto direct = opened(fs, "a", OpenMode::read_direct);
  alignas(kDirectAlignment) static std::array<std::uint8_t, 2 * kDirectAlignment> out;
  ASSERT_EQ(*direct->read_at(0, out), out.size());
  EXPECT_EQ(as_text(ByteView(out).subspan(0, 4)), "oooo");
  EXPECT_EQ(as_text(ByteView(out).subspan(4096, 4)), "next");
  fs.set_direct_reads(false);
  EXPECT_EQ(fs.open("a", OpenMode::read_direct).error().kind, ErrorKind::unavailable);
}

TEST(SimulatedSync, WritingALostPageAgain_BringsItToTheMedium) {
  SimulatedFileSystem fs;
  settle(fs, "a", "old");
  const auto file = opened(fs, "a");
  ASSERT_TRUE(file->write_at(0, as_bytes("new")).ok());
  fs.fail_next({FaultKind::io});
  EXPECT_FALSE(file->sync().ok());
  ASSERT_TRUE(file->write_at(0, as_bytes("new")).ok());
  EXPECT_TRUE(file->sync().ok());
  EXPECT_EQ(as_text(fs.medium_bytes("a")), "new");
}

TEST(SimulatedSync, AFailedSyncAll_LosesEveryUnsyncedPage) {
  SimulatedFileSystem fs;
  settle(fs, "a", "old");
  settle(fs, "b", "old");
  ASSERT_TRUE(opened(fs, "a")->write_at(0, as_bytes("new")).ok());
  ASSERT_TRUE(opened(fs, "b")->write_at(0, as_bytes("new")).ok());
  fs.fail_next({FaultKind::io});
  EXPECT_FALSE(fs.sync_all().ok());
  EXPECT_TRUE(fs.sync_all().ok());
  fs.lose_power(Loss::keep_all);
  EXPECT_EQ(both_names(fs), "old old");
}

TEST(SimulatedSync, AFailedSyncOfTheSecondKind_HasWrittenSomePages) {
  SimulatedFileSystem fs;
  settle(fs, "a", std::string(32 * 4096, 'o'));
  const auto file = opened(fs, "a");
  ASSERT_TRUE(file->write_at(0, as_bytes(std::string(32 * 4096, 'n'))).ok());
  fs.fail_next({.kind = FaultKind::io, .partly = true});
  EXPECT_FALSE(file->sync().ok());
  fs.lose_power(Loss::keep_all);
  Texts fates;
  for (std::size_t block = 0; block < 32; ++block) fates.insert(fate_of_block(fs, block));
  EXPECT_EQ(fates, (Texts{"new", "old"}));
}

TEST(SimulatedSync, AFailedSyncDirectory_LeavesTheNamesOpen) {
  SimulatedFileSystem fs;
  settle(fs, "a", "x");
  ASSERT_TRUE(fs.rename("a", "b", Rename::replace).ok());
  fs.fail_next({FaultKind::io});
  EXPECT_FALSE(fs.sync_directory("").ok());
  EXPECT_EQ(outcomes(fs, both_names).size(), 3U);
}

// --- Lives

TEST(SimulatedLives, AfterAPowerCut_NothingAnswers_UntilPowerReturns) {
  SimulatedFileSystem fs;
  settle(fs, "a", "kept");
  const auto file = opened(fs, "a");
  fs.fail_next({FaultKind::power_cut});
  EXPECT_EQ(file->write_at(0, as_bytes("lost")).error().kind, ErrorKind::io);
  EXPECT_TRUE(fs.power_is_off());
  const std::uint64_t steps = fs.steps();
  Bytes out(4);
  EXPECT_EQ(file->read_at(0, out).error().kind, ErrorKind::io);
  EXPECT_EQ(file->sync().error().kind, ErrorKind::io);
  EXPECT_EQ(fs.open("a", OpenMode::read).error().kind, ErrorKind::io);
  EXPECT_EQ(fs.sync_all().error().kind, ErrorKind::io);
  EXPECT_EQ(fs.inspect("a").error().kind, ErrorKind::io);
  EXPECT_EQ(fs.steps(), steps);
  fs.lose_power(Loss::drop_all);
  EXPECT_FALSE(fs.power_is_off());
  EXPECT_EQ(text_of(fs, "a"), "kept");
}

TEST(SimulatedLives, ThePowerCutItself_MayOrMayNotHaveDoneTheStep) {
  SimulatedFileSystem fs;
  settle(fs, "a", "old");
  ASSERT_TRUE(opened(fs, "a")->write_at(0, as_bytes("new")).ok());
  fs.fail_next({FaultKind::power_cut});
  EXPECT_FALSE(fs.sync_all().ok());
  const Texts seen = outcomes(fs, [](const auto& disk) { return text_of(disk, "a"); });
  EXPECT_TRUE(seen.contains("old") && seen.contains("new"));
  for (const auto& make : {&SimulatedFileSystem::make_directory, &SimulatedFileSystem::remove}) {
    const auto copy = fs.copy();
    copy->lose_power(Loss::drop_all);
    copy->fail_next({FaultKind::power_cut});
    EXPECT_FALSE((copy.get()->*make)(make == &SimulatedFileSystem::remove ? "a" : "d").ok());
    EXPECT_EQ(outcomes(*copy, [](const auto& disk) { return disk.there("a") && !disk.there("d"); }).size(), 2U);
  }
}

TEST(SimulatedLives, HandlesAndLocksOfAnEarlierLife_AreDead) {
  SimulatedFileSystem fs;
  settle(fs, "a", "kept");
  const auto file = opened(fs, "a");
  const auto lock = fs.lock("LOCK");
  ASSERT_TRUE(lock.ok());
  fs.restart_without_power_loss();
  EXPECT_EQ(file->write_at(0, as_bytes("x")).error().kind, ErrorKind::io);
  EXPECT_EQ(file->size().error().kind, ErrorKind::io);
  EXPECT_EQ((*lock)->sync().error().kind, ErrorKind::io);
  const auto again = fs.lock("LOCK");
  EXPECT_TRUE(again.ok());
  EXPECT_EQ(text_of(fs, "a"), "kept");
}

TEST(SimulatedLives, ADeadHandleThatGoes_DoesNotReleaseTheNextLock) {
  SimulatedFileSystem fs;
  auto dead = *fs.lock("LOCK");
  fs.restart_without_power_loss();
  const auto alive = fs.lock("LOCK");
  ASSERT_TRUE(alive.ok());
  dead.reset();
  EXPECT_EQ(fs.lock("LOCK").error().kind, ErrorKind::unavailable);
}

TEST(SimulatedLives, ARestart_KeepsTheCache_AndTheNextPowerCutStillForgets) {
  SimulatedFileSystem fs;
  settle(fs, "a", "old");
  ASSERT_TRUE(opened(fs, "a")->write_at(0, as_bytes("new")).ok());
  ASSERT_TRUE(opened(fs, "b")->write_at(0, as_bytes("b")).ok());
  fs.restart_without_power_loss();
  EXPECT_EQ(both_names(fs), "new b");
  fs.lose_power(Loss::drop_all);
  EXPECT_EQ(both_names(fs), "old <none>");
}

TEST(SimulatedLives, ACopy_IsAnotherDisk) {
  SimulatedFileSystem fs;
  settle(fs, "a", "old");
  ASSERT_TRUE(opened(fs, "a")->write_at(0, as_bytes("new")).ok());
  const auto copy = fs.copy();
  settle(*copy, "b", "only there");
  copy->lose_power(Loss::drop_all);
  EXPECT_EQ(both_names(*copy), "new only there");
  EXPECT_EQ(both_names(fs), "new <none>");
  fs.lose_power(Loss::drop_all);
  EXPECT_EQ(both_names(fs), "old <none>");
}

TEST(SimulatedLives, TheSameSeed_GivesTheSameDisk) {
  const auto run = [](std::uint64_t seed) {
    SimulatedFileSystem fs;
    for (int i = 0; i < 20; ++i) {
      EXPECT_TRUE(opened(fs, std::to_string(i))->write_at(0, as_bytes(std::string(5000, 'x'))).ok());
    }
    fs.lose_power(seed);
    std::string all = std::to_string(fs.trace_hash());
    for (const std::string& path : fs.files()) all += path + text_of(fs, path);
    return all;
  };
  for (std::uint64_t seed = 0; seed < 20; ++seed) EXPECT_EQ(run(seed), run(seed));
}

// --- Faults

TEST(SimulatedFaults, EveryStep_CanBeStruck_OnceOrForGood) {
  for (std::uint64_t step = 1; step <= 6; ++step) {
    for (const bool persistent : {false, true}) {
      SimulatedFileSystem fs;
      fs.fail_at(step, {FaultKind::io, persistent});
      std::vector<bool> good;
      good.push_back(fs.make_directory("d").ok());
      good.push_back(fs.make_directory("e").ok());
      good.push_back(fs.sync_directory("").ok());
      good.push_back(fs.open("a", OpenMode::create).ok());
      good.push_back(fs.rename("a", "b", Rename::replace).ok());
      good.push_back(fs.sync_all().ok());
      for (std::uint64_t i = 0; i < 3 && i + 1 < step; ++i) EXPECT_TRUE(good[i]) << step;
      EXPECT_FALSE(good[step - 1]) << step;
      EXPECT_EQ(fs.steps(), 6U);
      EXPECT_EQ(fs.counts().struck, persistent ? 7 - step : 1);
    }
  }
}

TEST(SimulatedFaults, WhatIsStruck_HasNotHappened) {
  SimulatedFileSystem fs;
  settle(fs, "a", "old");
  for (const FaultKind kind : {FaultKind::io, FaultKind::unavailable}) {
    fs.fail_next({kind});
    EXPECT_FALSE(opened(fs, "a", OpenMode::write)->write_at(0, as_bytes("new")).ok());
    fs.fail_next({kind});
    EXPECT_FALSE(fs.remove("a").ok());
    fs.fail_next({kind});
    EXPECT_FALSE(fs.rename("a", "b", Rename::replace).ok());
    fs.fail_next({kind});
    EXPECT_FALSE(fs.open("b", OpenMode::create).ok());
  }
  EXPECT_EQ(fs.files(), std::vector<std::string>{"a"});
  EXPECT_EQ(text_of(fs, "a"), "old");
}

TEST(SimulatedFaults, AShortWrite_IsIo_AndHalfThere) {
  SimulatedFileSystem fs;
  const auto file = opened(fs, "a");
  fs.fail_next({FaultKind::short_write});
  EXPECT_EQ(file->write_at(0, as_bytes("12345678")).error().kind, ErrorKind::io);
  EXPECT_EQ(text_of(fs, "a"), "1234");
}

TEST(SimulatedFaults, Full_StrikesOnlyWhatMakesOrExtends_UnavailableNoSync) {
  SimulatedFileSystem fs;
  settle(fs, "a", "old");
  const auto file = opened(fs, "a", OpenMode::write);
  fs.fail_next({FaultKind::full, true});
  EXPECT_TRUE(file->write_at(0, as_bytes("new")).ok());
  EXPECT_TRUE(file->sync().ok());
  EXPECT_TRUE(file->truncate(1).ok());
  EXPECT_EQ(file->write_at(4096, as_bytes("more")).error().kind, ErrorKind::full);
  EXPECT_EQ(file->truncate(10'000).error().kind, ErrorKind::full);
  EXPECT_EQ(fs.open("b", OpenMode::create).error().kind, ErrorKind::full);
  EXPECT_EQ(fs.make_directory("d").error().kind, ErrorKind::full);
  EXPECT_TRUE(fs.sync_all().ok());
  EXPECT_TRUE(fs.remove("a").ok());
  fs.clear_faults();
  fs.fail_next({FaultKind::unavailable});
  EXPECT_TRUE(fs.sync_all().ok());
  EXPECT_EQ(fs.make_directory("d").error().kind, ErrorKind::unavailable);
  EXPECT_TRUE(fs.make_directory("d").ok());
}

TEST(SimulatedFaults, Reads_AreStepsOnlyWhenAskedFor) {
  SimulatedFileSystem fs;
  settle(fs, "a", "kept");
  const std::uint64_t before = fs.steps();
  EXPECT_TRUE(read_file(fs, "a", 10).ok());
  EXPECT_EQ(fs.steps(), before);
  fs.count_reads(true);
  EXPECT_TRUE(read_file(fs, "a", 10).ok());
  EXPECT_EQ(fs.steps(), before + 3);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    fs.fail_at(fs.steps() + i, {FaultKind::io});
    EXPECT_EQ(read_file(fs, "a", 10).error().kind, ErrorKind::io);
  }
}

TEST(SimulatedFaults, StepsAreWatchedCountedAndTraced) {
  SimulatedFileSystem fs;
  std::vector<std::string> seen;
  fs.observe([&](std::uint64_t step, std::string_view verb, std::string_view path) {
    seen.push_back(std::to_string(step) + " " + std::string(verb) + " " + std::string(path));
    EXPECT_EQ(fs.steps(), step);  // it may call
  });
  settle(fs, "a", "kept");
  EXPECT_EQ(seen, (std::vector<std::string>{"1 create a", "2 write a", "3 sync_all "}));
  EXPECT_EQ(fs.counts().writes, 1U);
  EXPECT_EQ(fs.counts().bytes_written, 4U);
  EXPECT_EQ(fs.counts().whole_syncs, 1U);
  EXPECT_EQ(fs.trace(), "#1 create a: ok\n#2 write a 0+4: ok\n#3 sync_all : ok\n");
}

// --- The kind of disk

TEST(SimulatedSpace, AFullDisk_RefusesNewBlocks_NotOldOnes) {
  SimulatedFileSystem fs;
  fs.set_capacity(4 * 4096, 10);
  const auto file = opened(fs, "a");
  ASSERT_TRUE(file->write_at(0, Bytes(3 * 4096)).ok());
  EXPECT_EQ(fs.space()->free_bytes, 4096U);
  EXPECT_EQ(fs.space()->free_inodes, 8U);
  EXPECT_EQ(file->write_at(3 * 4096, Bytes(2 * 4096)).error().kind, ErrorKind::full);
  EXPECT_EQ(*file->size(), 3U * 4096);
  EXPECT_TRUE(file->write_at(100, Bytes(2 * 4096, 'x')).ok());
  EXPECT_TRUE(file->truncate(4096).ok());
  EXPECT_EQ(fs.space()->free_bytes, 3U * 4096);
  fs.set_capacity(4096, 2);
  EXPECT_EQ(fs.space()->free_bytes, 0U);
  EXPECT_EQ(fs.open("b", OpenMode::create).error().kind, ErrorKind::full);
  EXPECT_TRUE(fs.remove("a").ok());
  EXPECT_EQ(fs.space()->free_bytes, 0U) << "the open file keeps its block";
}

TEST(SimulatedSpace, WhatIsRemovedAndClosed_IsFree) {
  SimulatedFileSystem fs;
  fs.set_capacity(100 * 4096, 100);
  const SpaceInfo before = *fs.space();
  auto file = opened(fs, "a");
  ASSERT_TRUE(file->write_at(0, Bytes(10 * 4096, 'x')).ok());
  auto other = opened(fs, "b");
  ASSERT_TRUE(other->write_at(0, Bytes(4096, 'x')).ok());
  ASSERT_TRUE(fs.rename("a", "b", Rename::replace).ok());
  other.reset();
  EXPECT_EQ(fs.space()->free_bytes, before.free_bytes - 10 * 4096);
  EXPECT_EQ(fs.space()->free_inodes, before.free_inodes - 1);
  ASSERT_TRUE(fs.remove("b").ok());
  file.reset();
  EXPECT_EQ(fs.space()->free_bytes, before.free_bytes);
  EXPECT_EQ(fs.space()->free_inodes, before.free_inodes);
}

TEST(SimulatedSpace, APowerCut_CountsAnew) {
  SimulatedFileSystem fs;
  fs.set_capacity(100 * 4096, 100);
  settle(fs, "a", std::string(8192, 'x'));
  const SpaceInfo settled = *fs.space();
  ASSERT_TRUE(opened(fs, "b")->write_at(0, Bytes(4096, 'x')).ok());
  ASSERT_TRUE(fs.remove("a").ok());
  fs.lose_power(Loss::drop_all);
  EXPECT_EQ(fs.space()->free_bytes, settled.free_bytes);
  EXPECT_EQ(fs.space()->free_inodes, settled.free_inodes);
}

TEST(SimulatedSpace, AReadOnlyDisk_BehavesAsARealOne) {
  SimulatedFileSystem fs;
  settle(fs, "a", "kept");
  const auto file = opened(fs, "a");
  fs.set_read_only(true);
  EXPECT_EQ(file->write_at(0, as_bytes("x")).error().kind, ErrorKind::full);
  EXPECT_EQ(fs.open("b", OpenMode::create_new).error().kind, ErrorKind::full);
  EXPECT_EQ(fs.make_directory("d").error().kind, ErrorKind::full);
  EXPECT_EQ(fs.rename("a", "b", Rename::replace).error().kind, ErrorKind::full);
  EXPECT_EQ(fs.open("a", OpenMode::write).error().kind, ErrorKind::io);
  EXPECT_EQ(fs.remove("a").error().kind, ErrorKind::io);
  EXPECT_TRUE(file->sync().ok());
  EXPECT_TRUE(fs.open("a", OpenMode::read).ok());
}

TEST(SimulatedSpace, ZerosAreCheap_ButTakeRoom) {
  SimulatedFileSystem fs;
  const auto file = opened(fs, "a");
  const Bytes zeros(1 << 20);
  for (std::uint64_t i = 0; i < 16; ++i) ASSERT_TRUE(file->write_at(i << 20U, zeros).ok());
  EXPECT_EQ(fs.inspect("a")->allocated, std::uint64_t{16} << 20U);
}

// --- The test's own hands

TEST(SimulatedHands, Damage_IsInBothImages) {
  SimulatedFileSystem fs;
  settle(fs, "a", "kept");
  ASSERT_TRUE(opened(fs, "a")->write_at(4, as_bytes("more")).ok());
  fs.flip("a", 0, 0x20);
  fs.overwrite("a", 1, as_bytes("EP"));
  EXPECT_EQ(text_of(fs, "a"), "KEPtmore");
  EXPECT_EQ(as_text(fs.medium_bytes("a")), "KEPt");
  fs.cut_to("a", 2);
  EXPECT_EQ(text_of(fs, "a"), "KE");
  fs.lose_power(Loss::drop_all);
  EXPECT_EQ(text_of(fs, "a"), "KE");
}

TEST(SimulatedHands, WhatIsPlanted_IsThereForGood_WhatIsErasedIsNot) {
  SimulatedFileSystem fs;
  const SpaceInfo before = *fs.space();
  fs.plant("records/ab/x.rec", as_bytes("junk"));
  fs.plant("records/ab/x.rec", as_bytes("other junk"));
  fs.plant_directory("records/cd");
  fs.plant_other("records/link");
  fs.set_owner("records", 0755, false);
  fs.lose_power(Loss::drop_all);
  EXPECT_EQ(fs.files(), (std::vector<std::string>{"records/ab/x.rec", "records/link"}));
  EXPECT_EQ(text_of(fs, "records/ab/x.rec"), "other junk");
  EXPECT_EQ(fs.inspect("records/link")->type, NameType::other);
  EXPECT_EQ(fs.inspect("records")->mode, 0755U);
  EXPECT_FALSE(fs.inspect("records")->ours);
  fs.erase("records");
  fs.erase("records");
  EXPECT_FALSE(fs.there("records"));
  EXPECT_EQ(fs.space()->free_bytes, before.free_bytes);
  EXPECT_EQ(fs.space()->free_inodes, before.free_inodes);
}

TEST(SimulatedHands, Find_LooksEverywhere) {
  SimulatedFileSystem fs;
  const std::string secret = "marker-5f1c";
  settle(fs, "plain", "x");
  settle(fs, "across", std::string(4090, 'x') + secret);
  settle(fs, "removed", secret);
  settle(fs, "overwritten", secret);
  ASSERT_TRUE(opened(fs, "overwritten")->write_at(0, as_bytes(std::string(20, 'x'))).ok());
  ASSERT_TRUE(fs.remove("removed").ok());
  ASSERT_TRUE(opened(fs, "cached")->write_at(0, as_bytes(secret)).ok());
  ASSERT_TRUE(opened(fs, "named-" + secret)->sync().ok());
  EXPECT_EQ(fs.find(secret),
            (std::vector<std::string>{"across", "cached", "named-" + secret, "overwritten", "removed"}));
}

TEST(SimulatedFileSystem, ManyThreads_MayUseIt) {
  SimulatedFileSystem fs;
  const auto work = [&fs](int name) {
    const auto file = opened(fs, std::to_string(name));
    for (int i = 0; i < 300; ++i) {
      EXPECT_TRUE(file->write_at(static_cast<std::uint64_t>(i) * 100, as_bytes("abc")).ok());
      EXPECT_TRUE(file->sync().ok());
      EXPECT_TRUE(fs.sync_all().ok());
    }
  };
  std::thread other([&] { work(1); });
  work(2);
  other.join();
  EXPECT_EQ(fs.counts().writes, 600U);
  fs.lose_power(Loss::keep_names);
  EXPECT_EQ(text_of(fs, "1"), text_of(fs, "2"));
}

}  // namespace
}  // namespace holdfast
