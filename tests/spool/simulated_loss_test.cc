// The rules by which the simulated disk forgets. A crash test is worth as much as these.
#include <gtest/gtest.h>

#include "tests/spool/power_cuts.h"

namespace holdfast {
namespace {

// --- What a sync covers

TEST(SimulatedLoss, SyncedBytesUnderASyncedName_Survive) {
  SimulatedFileSystem fs;
  ASSERT_TRUE(fs.make_directory("d").ok());
  const auto file = opened(fs, "d/a");
  ASSERT_TRUE(file->write_at(0, as_bytes("kept")).ok());
  ASSERT_TRUE(file->sync().ok());
  ASSERT_TRUE(fs.sync_directory("d").ok());
  ASSERT_TRUE(fs.sync_directory("").ok());
  EXPECT_EQ(outcomes(fs, [](const auto& disk) { return text_of(disk, "d/a"); }), Texts{"kept"});
  fs.lose_power(Loss::drop_all);
  EXPECT_EQ(text_of(fs, "d/a"), "kept");
}

TEST(SimulatedLoss, SyncedBytesWithoutASyncedName_MayBeGone) {
  SimulatedFileSystem fs;
  const auto file = opened(fs, "a");
  ASSERT_TRUE(file->write_at(0, as_bytes("kept")).ok());
  ASSERT_TRUE(file->sync().ok());
  EXPECT_EQ(outcomes(fs, [](const auto& disk) { return text_of(disk, "a"); }), (Texts{"<none>", "kept"}));
  fs.lose_power(Loss::drop_all);
  EXPECT_FALSE(fs.there("a"));
}

TEST(SimulatedLoss, ASyncedNameInAnUnsyncedDirectory_MayBeGone) {
  SimulatedFileSystem fs;
  ASSERT_TRUE(fs.make_directory("d").ok());
  ASSERT_TRUE(opened(fs, "d/a")->sync().ok());
  ASSERT_TRUE(fs.sync_directory("d").ok());
  fs.lose_power(Loss::drop_all);
  EXPECT_FALSE(fs.there("d"));
}

TEST(SimulatedLoss, SyncAll_CoversEverything) {
  SimulatedFileSystem fs;
  ASSERT_TRUE(fs.make_directory("d").ok());
  settle(fs, "d/a", "kept");
  fs.lose_power(Loss::drop_all);
  EXPECT_EQ(text_of(fs, "d/a"), "kept");
}

TEST(SimulatedLoss, EachPolicy_IsWhatItSays) {
  SimulatedFileSystem fs;
  settle(fs, "old", "aaaa");
  ASSERT_TRUE(opened(fs, "old")->write_at(0, as_bytes("bbbbbb")).ok());
  ASSERT_TRUE(opened(fs, "new")->write_at(0, as_bytes("cc")).ok());
  const auto after = [&](Loss loss) {
    const auto copy = fs.copy();
    copy->lose_power(loss);
    return text_of(*copy, "old") + " " + text_of(*copy, "new");
  };
  EXPECT_EQ(after(Loss::drop_all), "aaaa <none>");
  EXPECT_EQ(after(Loss::keep_all), "bbbbbb cc");
  EXPECT_EQ(after(Loss::keep_names), "aaaa ");
  EXPECT_EQ(after(Loss::keep_bytes), "bbbbbb <none>");
  const std::string zeros(2, '\0');
  EXPECT_EQ(after(Loss::keep_names_and_sizes), "aaaa" + zeros + " " + zeros);
}

TEST(SimulatedLoss, ARemovalThatIsNotSynced_MayComeBack_WithItsBytes) {
  SimulatedFileSystem fs;
  settle(fs, "a", "kept");
  ASSERT_TRUE(fs.remove("a").ok());
  EXPECT_EQ(outcomes(fs, [](const auto& disk) { return text_of(disk, "a"); }), (Texts{"<none>", "kept"}));
  ASSERT_TRUE(fs.sync_directory("").ok());
  EXPECT_EQ(outcomes(fs, [](const auto& disk) { return text_of(disk, "a"); }), Texts{"<none>"});
}

TEST(SimulatedLoss, AnUnsyncedSize_MayBeAnyThatItWas) {
  SimulatedFileSystem fs;
  settle(fs, "a", "12");
  const auto file = opened(fs, "a");
  ASSERT_TRUE(file->truncate(6000).ok());
  ASSERT_TRUE(file->truncate(1).ok());
  ASSERT_TRUE(file->truncate(3).ok());
  const auto sizes = outcomes(fs, [](const auto& disk) { return disk.bytes("a").size(); });
  EXPECT_EQ(sizes, (std::set<std::size_t>{1, 2, 3, 6000}));
}

TEST(SimulatedLoss, AFileThatIsCutAndGrows_ReadsZerosThere) {
  SimulatedFileSystem fs;
  settle(fs, "a", std::string(8192, 'a'));
  const auto file = opened(fs, "a");
  ASSERT_TRUE(file->truncate(10).ok());
  ASSERT_TRUE(file->sync().ok());
  fs.lose_power(Loss::drop_all);
  ASSERT_TRUE(opened(fs, "a")->truncate(8192).ok());
  EXPECT_EQ(text_of(fs, "a"), std::string(10, 'a') + std::string(8182, '\0'));
}

// --- What happens to a page that was being written

TEST(SimulatedLoss, AnUnsyncedBlock_IsKeptDroppedTornOrGarbage_ItsNeighboursAreNot) {
  SimulatedFileSystem fs;
  settle(fs, "a", std::string(3 * 4096, 'o'));
  ASSERT_TRUE(opened(fs, "a")->write_at(4096, as_bytes(std::string(4096, 'n'))).ok());
  EXPECT_EQ(outcomes(fs, [](const auto& disk) { return fate_of_block(disk, 1); }),
            (Texts{"new", "old", "new+old", "garbage", "garbage+new", "garbage+old"}));
  EXPECT_EQ(outcomes(fs, [](const auto& disk) { return fate_of_block(disk, 0); }), Texts{"old"});
  EXPECT_EQ(outcomes(fs, [](const auto& disk) { return fate_of_block(disk, 2); }), Texts{"old"});
}

TEST(SimulatedLoss, OneUnsyncedByte_PutsTheWholeBlockAtRisk_UnlessToldOtherwise) {
  SimulatedFileSystem fs;
  settle(fs, "a", std::string(4096, 'o'));
  ASSERT_TRUE(opened(fs, "a")->write_at(4095, as_bytes("o")).ok());
  EXPECT_TRUE(outcomes(fs, [](const auto& disk) { return fate_of_block(disk, 0); }).contains("garbage"));
  fs.set_tears_blocks(false);
  EXPECT_EQ(outcomes(fs, [](const auto& disk) { return fate_of_block(disk, 0); }), (Texts{"old", "garbage+old"}));
}

TEST(SimulatedLoss, BlocksOfOneWrite_HaveTheirOwnFates) {
  SimulatedFileSystem fs;
  settle(fs, "a", std::string(2 * 4096, 'o'));
  ASSERT_TRUE(opened(fs, "a")->write_at(0, as_bytes(std::string(2 * 4096, 'n'))).ok());
  const auto both =
      outcomes(fs, [](const auto& disk) { return fate_of_block(disk, 0) + " " + fate_of_block(disk, 1); });
  for (const char* fate : {"new new", "old old", "new old", "old new"}) EXPECT_TRUE(both.contains(fate)) << fate;
}

TEST(SimulatedLoss, TwoWritesToOneBlock_AreNotDroppedInTheWrongOrder) {
  SimulatedFileSystem fs;
  fs.set_tears_blocks(false);
  settle(fs, "a", "....");
  const auto file = opened(fs, "a");
  ASSERT_TRUE(file->write_at(0, as_bytes("1")).ok());
  ASSERT_TRUE(file->write_at(1, as_bytes("2")).ok());
  Texts seen = outcomes(fs, [](const auto& disk) { return text_of(disk, "a"); });
  for (const char* state : {"....", "1...", "12.."}) EXPECT_TRUE(seen.contains(state)) << state;
  EXPECT_FALSE(seen.contains(".2.."));
}

TEST(SimulatedLoss, WhatASyncHasCovered_IsNotAtRiskFromLaterWritesElsewhere) {
  SimulatedFileSystem fs;
  const auto file = opened(fs, "a");
  for (std::uint64_t block = 0; block < 8; ++block) {
    ASSERT_TRUE(file->write_at(block * 4096, as_bytes(std::string(4096, 'o'))).ok());
    ASSERT_TRUE(file->sync().ok());
    ASSERT_TRUE(fs.sync_directory("").ok());
    ASSERT_TRUE(file->write_at((block + 1) * 4096, as_bytes(std::string(4096, 'n'))).ok());
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      const auto copy = fs.copy();
      copy->lose_power(seed);
      for (std::uint64_t i = 0; i <= block; ++i) ASSERT_EQ(fate_of_block(*copy, i), "old") << "seed " << seed;
    }
  }
}

// --- Renames

TEST(SimulatedLoss, ARename_ShowsOldOrNewOrBoth_NeverNeither) {
  SimulatedFileSystem fs;
  settle(fs, "a", "x");
  ASSERT_TRUE(fs.rename("a", "b", Rename::no_replace).ok());
  EXPECT_EQ(outcomes(fs, both_names), (Texts{"x <none>", "<none> x", "x x"}));
  ASSERT_TRUE(fs.sync_directory("").ok());
  EXPECT_EQ(outcomes(fs, both_names), Texts{"<none> x"});
}

TEST(SimulatedLoss, ARenameThatReplaces_ShowsTheOldFileOrTheNew) {
  SimulatedFileSystem fs;
  settle(fs, "a", "new");
  settle(fs, "b", "old");
  ASSERT_TRUE(fs.rename("a", "b", Rename::replace).ok());
  EXPECT_EQ(outcomes(fs, both_names), (Texts{"new old", "new new", "<none> new"}));
}

TEST(SimulatedLoss, ARenameOfUnsyncedBytes_ShowsWhyTheyMustBeSyncedFirst) {
  SimulatedFileSystem fs;
  settle(fs, "b", "old");
  ASSERT_TRUE(opened(fs, "a")->write_at(0, as_bytes("new")).ok());
  ASSERT_TRUE(fs.rename("a", "b", Rename::replace).ok());
  fs.lose_power(Loss::keep_names);
  EXPECT_EQ(text_of(fs, "b"), "");
}

TEST(SimulatedLoss, ARenameBetweenDirectories_IsNeverLostBySyncingOneOfThem) {
  SimulatedFileSystem fs;
  ASSERT_TRUE(fs.make_directory("d").ok());
  settle(fs, "d/a", "x");
  ASSERT_TRUE(fs.rename("d/a", "b", Rename::replace).ok());
  const auto look = [](const SimulatedFileSystem& disk) { return text_of(disk, "d/a") + " " + text_of(disk, "b"); };
  EXPECT_EQ(outcomes(fs, look), (Texts{"x <none>", "<none> x", "x x"}));
  const auto copy = fs.copy();
  ASSERT_TRUE(copy->sync_directory("d").ok());
  EXPECT_EQ(outcomes(*copy, look), Texts{"<none> x"});
  ASSERT_TRUE(fs.sync_directory("").ok());
  EXPECT_EQ(outcomes(fs, look), (Texts{"<none> x", "x x"}));
}

TEST(SimulatedLoss, ARenameChain_NeverLosesTheFile) {
  SimulatedFileSystem fs;
  settle(fs, "a", "x");
  ASSERT_TRUE(fs.rename("a", "b", Rename::replace).ok());
  ASSERT_TRUE(fs.rename("b", "c", Rename::replace).ok());
  ASSERT_TRUE(opened(fs, "a")->write_at(0, as_bytes("y")).ok());
  const auto x_is_somewhere = [](const SimulatedFileSystem& disk) {
    for (const char* name : {"a", "b", "c"}) {
      if (text_of(disk, name) == "x") return true;
    }
    return false;
  };
  EXPECT_EQ(outcomes(fs, x_is_somewhere), std::set<bool>{true});
}

TEST(SimulatedLoss, NamesMadeAgain_ShowAnyOfTheirStates) {
  SimulatedFileSystem fs;
  settle(fs, "a", "first");
  ASSERT_TRUE(fs.remove("a").ok());
  const auto file = opened(fs, "a", OpenMode::create_new);
  ASSERT_TRUE(file->write_at(0, as_bytes("second")).ok());
  ASSERT_TRUE(file->sync().ok());
  EXPECT_EQ(outcomes(fs, [](const auto& disk) { return text_of(disk, "a"); }), (Texts{"first", "<none>", "second"}));
}

}  // namespace
}  // namespace holdfast
