// The simulated file system is believed because it answers as the real one does: the same random calls on both, the
// same answers, the same trees. And what it says is durable is so: the same calls, a power cut, and nothing synced is
// missing.
#include <gtest/gtest.h>

#include <map>

#include "tests/support/simulated_file_system.h"
#include "tests/support/temporary_directory.h"

namespace holdfast {
namespace {

constexpr std::uint64_t kLives = 100;
constexpr std::uint64_t kRealLives = 15;  // with real syncs
constexpr int kCalls = 300;

// A few names, so that they meet often.
std::string some_path(Dice& dice) {
  constexpr const char* kNames[] = {"a", "b", "c", "d", "d/a", "d/b", "d/e", "d/e/a", "x/a", "a/b"};
  return kNames[dice.below(std::size(kNames))];
}

template <typename T>
std::string answer(const Result<T>& result) {
  return result.ok() ? "ok" : error_kind_text(result.error().kind);
}

// Does something to one file, and says all that came of it.
std::string use_file(FileSystem& fs, Dice& dice) {
  constexpr OpenMode kModes[] = {OpenMode::read, OpenMode::write, OpenMode::create, OpenMode::create_new};
  const std::string path = some_path(dice);
  auto file = fs.open(path, kModes[dice.below(std::size(kModes))]);
  const std::uint64_t offset = dice.below(20'000);
  const Bytes bytes(dice.below(10'000), static_cast<std::uint8_t>(dice.roll()));
  const std::uint64_t choice = dice.below(4);
  std::string story = "open " + path + ": " + answer(file);
  if (!file.ok()) return story;
  if (choice == 0) story += " truncate: " + std::string((*file)->truncate(offset).ok() ? "ok" : "no");
  if (choice == 1) story += " sync: " + answer((*file)->sync());
  if (choice >= 2) story += " write: " + std::string((*file)->write_at(offset, bytes).ok() ? "ok" : "no");
  Bytes out(30'000);
  const auto count = (*file)->read_at(dice.below(10'000), out);
  out.resize(count.ok() ? *count : 0);
  return story + " read: " + answer(count) + " " + std::string(as_text(out));
}

// One call, decided by the dice alone: what it was and what came of it.
std::string one_call(FileSystem& fs, Dice& dice) {
  const std::string path = some_path(dice);
  const std::string other = some_path(dice);
  switch (dice.below(10)) {
    case 0:
      return "make_directory " + path + ": " + answer(fs.make_directory(path));
    case 1:
      return "remove " + path + ": " + answer(fs.remove(path));
    case 2:
      if (other.starts_with(path + "/")) return "";  // into itself: each refuses in its own words
      return "replace " + path + " " + other + ": " + answer(fs.rename(path, other, Rename::replace));
    case 3:
      if (other.starts_with(path + "/") || path.starts_with(other + "/")) return "";
      return "rename " + path + " " + other + ": " + answer(fs.rename(path, other, Rename::no_replace));
    case 4:
      return "sync_directory " + path + ": " + answer(fs.sync_directory(path));
    case 5: {
      const auto info = fs.inspect(path);
      std::string story = "inspect " + path + ": " + answer(info);
      if (info.ok()) story += " " + std::to_string(static_cast<int>(info->type)) + " " + std::to_string(info->mode);
      if (info.ok() && info->type == NameType::file) story += " " + std::to_string(info->size);
      return story;
    }
    default:
      return use_file(fs, dice);
  }
}

// Every path with its content.
std::map<std::string, std::string> tree(FileSystem& fs, const std::string& directory = "") {
  std::map<std::string, std::string> all;
  EXPECT_TRUE(fs.list(directory, [&](std::string_view name, NameType type) {
                  const std::string path = directory.empty() ? std::string(name) : directory + "/" + std::string(name);
                  if (type == NameType::directory) {
                    all[path] = "directory";
                    all.merge(tree(fs, path));
                  } else {
                    all[path] = as_text(*read_file(fs, path, 1 << 20));
                  }
                  return true;
                }).ok());
  return all;
}

TEST(FileSystemTwins, TheSameCalls_HaveTheSameAnswers) {
  for (std::uint64_t seed = 1; seed <= kRealLives; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const TemporaryDirectory directory;
    const auto real = open_posix_file_system(directory.path());
    ASSERT_TRUE(real.ok());
    SimulatedFileSystem simulated(seed);
    Dice for_real(seed);
    Dice for_simulated(seed);
    for (int i = 0; i < kCalls; ++i) {
      const std::string expected = one_call(**real, for_real);
      ASSERT_EQ(one_call(simulated, for_simulated), expected) << "call " << i;
    }
    ASSERT_EQ(tree(simulated), tree(**real));
  }
}

TEST(FileSystemTwins, WhatOneSyncAllCovered_EveryPowerCutLeaves) {
  for (std::uint64_t seed = 1; seed <= kLives; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SimulatedFileSystem fs(seed);
    Dice dice(seed);
    for (int i = 0; i < kCalls; ++i) one_call(fs, dice);
    ASSERT_TRUE(fs.sync_all().ok());
    const auto before = tree(fs);
    const auto copy = fs.copy();
    copy->lose_power(seed);
    ASSERT_EQ(tree(*copy), before);
    fs.lose_power(Loss::drop_all);
    ASSERT_EQ(tree(fs), before);
  }
}

TEST(FileSystemTwins, WhateverAPowerCutLeaves_CanBeUsed_AndIsCountedRight) {
  for (std::uint64_t seed = 1; seed <= kLives; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SimulatedFileSystem fs(seed);
    fs.set_capacity(1000 * kDirectAlignment, 100);
    Dice dice(seed);
    for (int life = 0; life < 5; ++life) {
      for (int i = 0; i < kCalls; ++i) one_call(fs, dice);
      const auto before = tree(fs);
      const SpaceInfo counted = *fs.space();
      const auto keeps_all = fs.copy();
      keeps_all->lose_power(Loss::keep_all);
      ASSERT_EQ(tree(*keeps_all), before);
      ASSERT_EQ(keeps_all->space()->free_bytes, counted.free_bytes);
      ASSERT_EQ(keeps_all->space()->free_inodes, counted.free_inodes);
      fs.lose_power(dice.roll());
    }
  }
}

}  // namespace
}  // namespace holdfast
