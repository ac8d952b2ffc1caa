// One contract for every FileSystem: what file_system.h promises is asked of the real one and of the simulated one.
// tests/spool/posix_file_system_test.cc runs the real one again as on an old kernel.
#include "spool/file_system.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "tests/support/faulty_file_system.h"
#include "tests/support/simulated_file_system.h"
#include "tests/support/temporary_directory.h"

namespace holdfast {
namespace {

enum class Kind { posix, simulated, gated };  // gated: the simulated one behind an open gate

class FileSystemTest : public testing::TestWithParam<Kind> {
 protected:
  FileSystemTest() {
    if (GetParam() != Kind::posix) return;
    auto opened = open_posix_file_system(directory_.path());
    CHECK(opened.ok());
    posix_ = *std::move(opened);
  }

  FileSystem& fs() {
    if (posix_) return *posix_;
    return GetParam() == Kind::gated ? static_cast<FileSystem&>(gated_) : simulated_;
  }

  // A symlink, to the file "target" beneath the root.
  void plant_symlink(const std::string& path) {
    if (posix_) {
      std::filesystem::create_symlink(directory_ / "target", directory_ / path);
    } else {
      simulated_.plant_other(path);
    }
  }

  std::unique_ptr<File> opened(const std::string& path, OpenMode mode) {
    auto file = fs().open(path, mode);
    EXPECT_TRUE(file.ok()) << file.error().text;
    return file.ok() ? *std::move(file) : nullptr;
  }
  void put(const std::string& path, std::string_view text) {
    EXPECT_TRUE(opened(path, OpenMode::create)->write_at(0, as_bytes(text)).ok());
  }
  std::string text_of(const std::string& path) {
    const auto bytes = read_file(fs(), path, 1 << 20);
    return bytes.ok() ? std::string(as_text(*bytes)) : "<" + bytes.error().text + ">";
  }
  std::vector<std::string> names_in(const std::string& path) {
    std::vector<std::string> names;
    const auto listed = fs().list(path, [&](std::string_view name, NameType) {
      names.emplace_back(name);
      return true;
    });
    EXPECT_TRUE(listed.ok());
    std::sort(names.begin(), names.end());
    return names;
  }
  ErrorKind open_error(const std::string& path, OpenMode mode) { return fs().open(path, mode).error().kind; }

 private:
  TemporaryDirectory directory_;
  std::unique_ptr<FileSystem> posix_;
  SimulatedFileSystem simulated_;
  FaultyFileSystem gated_{simulated_, [](std::string_view, std::string_view) { return std::nullopt; }};
};

using Names = std::vector<std::string>;

// --- Files

TEST_P(FileSystemTest, WhatIsWritten_IsRead) {
  put("a", "hello");
  EXPECT_EQ(text_of("a"), "hello");
  EXPECT_EQ(*opened("a", OpenMode::read)->size(), 5U);
}

TEST_P(FileSystemTest, CreateNew_OfANameThatIsThere_Exists) {
  put("a", "hello");
  ASSERT_TRUE(fs().make_directory("d").ok());
  plant_symlink("link");
  for (const char* path : {"a", "d", "link"})
    EXPECT_EQ(open_error(path, OpenMode::create_new), ErrorKind::exists) << path;
  EXPECT_EQ(text_of("a"), "hello");
}

TEST_P(FileSystemTest, Create_OfAFileThatIsThere_KeepsItsBytes) {
  put("a", "hello");
  put("a", "J");
  EXPECT_EQ(text_of("a"), "Jello");
}

TEST_P(FileSystemTest, OpeningWhatIsMissing_IsNotFound) {
  for (const OpenMode mode : {OpenMode::read, OpenMode::read_direct, OpenMode::write}) {
    EXPECT_EQ(open_error("a", mode), ErrorKind::not_found);
    EXPECT_EQ(open_error("d/a", mode), ErrorKind::not_found);
  }
  EXPECT_EQ(open_error("d/a", OpenMode::create), ErrorKind::not_found);
  EXPECT_EQ(open_error("d/a", OpenMode::create_new), ErrorKind::not_found);
}

TEST_P(FileSystemTest, OpeningADirectory_IsInvalid) {
  ASSERT_TRUE(fs().make_directory("d").ok());
  for (const OpenMode mode : {OpenMode::read, OpenMode::read_direct, OpenMode::write, OpenMode::create}) {
    EXPECT_EQ(open_error("d", mode), ErrorKind::invalid);
  }
}

TEST_P(FileSystemTest, AFileIsNoDirectory) {
  put("a", "hello");
  EXPECT_EQ(open_error("a/b", OpenMode::read), ErrorKind::invalid);
  EXPECT_EQ(open_error("a/b", OpenMode::create), ErrorKind::invalid);
  EXPECT_EQ(open_error("a/b/c", OpenMode::create), ErrorKind::invalid);
  EXPECT_EQ(fs().make_directory("a/b").error().kind, ErrorKind::invalid);
  EXPECT_EQ(fs().remove("a/b").error().kind, ErrorKind::invalid);
  EXPECT_EQ(fs().inspect("a/b").error().kind, ErrorKind::invalid);
  EXPECT_EQ(fs().rename("a", "a/b", Rename::replace).error().kind, ErrorKind::invalid);
}

TEST_P(FileSystemTest, NamesThatLeadOut_AreInvalidForEveryVerb) {
  put("a", "hello");
  const std::string bad[] = {"/a", "..", "../a", "d/../a", "./a", ".", "d//a", "a/", "/", std::string("a\0b", 3)};
  const auto visit = [](std::string_view, NameType) { return true; };
  for (const std::string& path : bad) {
    for (const OpenMode mode :
         {OpenMode::read, OpenMode::read_direct, OpenMode::write, OpenMode::create_new, OpenMode::create}) {
      EXPECT_EQ(open_error(path, mode), ErrorKind::invalid) << path;
    }
    EXPECT_EQ(fs().make_directory(path).error().kind, ErrorKind::invalid) << path;
    EXPECT_EQ(fs().remove(path).error().kind, ErrorKind::invalid) << path;
    EXPECT_EQ(fs().rename(path, "b", Rename::replace).error().kind, ErrorKind::invalid) << path;
    EXPECT_EQ(fs().rename("a", path, Rename::no_replace).error().kind, ErrorKind::invalid) << path;
    EXPECT_EQ(fs().inspect(path).error().kind, ErrorKind::invalid) << path;
    EXPECT_EQ(fs().list(path, visit).error().kind, ErrorKind::invalid) << path;
    EXPECT_EQ(fs().sync_directory(path).error().kind, ErrorKind::invalid) << path;
    EXPECT_EQ(fs().lock(path).error().kind, ErrorKind::invalid) << path;
  }
  EXPECT_EQ(names_in(""), Names{"a"});
}

TEST_P(FileSystemTest, TheRootItself_IsOnlyLookedAt) {
  EXPECT_EQ(open_error("", OpenMode::read), ErrorKind::invalid);
  EXPECT_EQ(fs().remove("").error().kind, ErrorKind::invalid);
  EXPECT_EQ(fs().make_directory("").error().kind, ErrorKind::invalid);
  EXPECT_EQ(fs().inspect("")->type, NameType::directory);
  EXPECT_TRUE(fs().sync_directory("").ok());
}

TEST_P(FileSystemTest, ANameThatIsTooLong_IsInvalid) {
  const std::string longest(255, 'x');
  put(longest, "fits");
  EXPECT_EQ(text_of(longest), "fits");
  EXPECT_EQ(open_error(longest + "x", OpenMode::create), ErrorKind::invalid);
  EXPECT_EQ(open_error(longest + "x/a", OpenMode::read), ErrorKind::invalid);
}

TEST_P(FileSystemTest, ASymlink_IsNeverFollowed) {
  put("target", "hello");
  plant_symlink("link");
  for (const OpenMode mode : {OpenMode::read, OpenMode::read_direct, OpenMode::write, OpenMode::create}) {
    EXPECT_EQ(open_error("link", mode), ErrorKind::invalid);
  }
  EXPECT_EQ(fs().lock("link").error().kind, ErrorKind::invalid);
  EXPECT_EQ(fs().inspect("link")->type, NameType::other);
  ASSERT_TRUE(fs().list("",
                        [](std::string_view name, NameType type) {
                          EXPECT_EQ(type, name == "link" ? NameType::other : NameType::file);
                          return true;
                        })
                  .ok());
  EXPECT_EQ(text_of("target"), "hello");
}

// --- Bytes

TEST_P(FileSystemTest, Reading_StopsAtTheEnd) {
  put("a", "hello");
  const auto file = opened("a", OpenMode::read);
  Bytes out(10, 0xee);
  EXPECT_EQ(*file->read_at(3, out), 2U);
  EXPECT_EQ(as_text(ByteView(out).first(3)), "lo\xee");
  EXPECT_EQ(*file->read_at(5, out), 0U);
  EXPECT_EQ(*file->read_at(std::uint64_t{1} << 40U, out), 0U);
  EXPECT_EQ(*file->read_at(0, std::span<std::uint8_t>()), 0U);
}

TEST_P(FileSystemTest, WritingBehindTheEnd_LeavesZerosBetween) {
  const auto file = opened("a", OpenMode::create_new);
  ASSERT_TRUE(file->write_at(10'000, as_bytes("end")).ok());
  EXPECT_EQ(*file->size(), 10'003U);
  Bytes out(10'003, 0xee);
  ASSERT_EQ(*file->read_at(0, out), out.size());
  EXPECT_EQ(std::count(out.begin(), out.end(), 0), 10'000);
}

TEST_P(FileSystemTest, WritingInTheMiddle_KeepsTheRest) {
  const auto file = opened("a", OpenMode::create_new);
  Bytes content(3 * 4096, 'a');
  ASSERT_TRUE(file->write_at(0, content).ok());
  ASSERT_TRUE(file->write_at(4000, as_bytes(std::string(200, 'b'))).ok());
  std::fill(content.begin() + 4000, content.begin() + 4200, std::uint8_t{'b'});
  EXPECT_EQ(*read_file(fs(), "a", 1 << 20), content);
}

TEST_P(FileSystemTest, WritingNothing_ChangesNothing) {
  const auto file = opened("a", OpenMode::create_new);
  ASSERT_TRUE(file->write_at(100, {}).ok());
  EXPECT_EQ(*file->size(), 0U);
}

TEST_P(FileSystemTest, AFileOpenedForReading_CannotBeWritten) {
  put("a", "hello");
  const auto file = opened("a", OpenMode::read);
  EXPECT_FALSE(file->write_at(0, as_bytes("x")).ok());
  EXPECT_FALSE(file->truncate(0).ok());
  EXPECT_EQ(text_of("a"), "hello");
}

TEST_P(FileSystemTest, Truncate_CutsAndExtendsWithZeros) {
  const auto file = opened("a", OpenMode::create_new);
  ASSERT_TRUE(file->write_at(0, as_bytes(std::string(9000, 'a'))).ok());
  ASSERT_TRUE(file->truncate(5).ok());
  EXPECT_EQ(text_of("a"), "aaaaa");
  ASSERT_TRUE(file->truncate(9000).ok());
  EXPECT_EQ(text_of("a"), std::string(5, 'a') + std::string(8995, '\0'));
}

TEST_P(FileSystemTest, DirectReads_ReturnWhatASyncHasCovered) {
  const std::string text(10'000, 'd');
  put("a", text);
  ASSERT_TRUE(opened("a", OpenMode::write)->sync().ok());
  auto file = fs().open("a", OpenMode::read_direct);
  if (!file.ok()) {
    EXPECT_EQ(file.error().kind, ErrorKind::unavailable);
    GTEST_SKIP() << file.error().text;
  }
  constexpr std::size_t kLength = 4 * kDirectAlignment;
  const std::unique_ptr<std::uint8_t, decltype(&std::free)> memory(
      static_cast<std::uint8_t*>(std::aligned_alloc(kDirectAlignment, kLength)), &std::free);
  const std::span<std::uint8_t> out(memory.get(), kLength);
  ASSERT_EQ(*(*file)->read_at(0, out), text.size());
  EXPECT_EQ(as_text(out.first(text.size())), text);
  EXPECT_EQ(*(*file)->read_at(2 * kDirectAlignment, out), text.size() - 2 * kDirectAlignment);
  EXPECT_EQ(*(*file)->read_at(8 * kDirectAlignment, out), 0U);
  EXPECT_EQ(*(*file)->size(), text.size());
}

TEST_P(FileSystemTest, ADirectReadThatIsNotAligned_IsABug) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  put("a", "hello");
  auto file = fs().open("a", OpenMode::read_direct);
  if (!file.ok()) GTEST_SKIP() << file.error().text;
  Bytes out(100);
  EXPECT_DEATH((void)(*file)->read_at(0, out).ok(), "must be true");
}

TEST_P(FileSystemTest, Syncs_Succeed) {
  ASSERT_TRUE(fs().make_directory("d").ok());
  put("d/a", "hello");
  EXPECT_TRUE(opened("d/a", OpenMode::write)->sync().ok());
  EXPECT_TRUE(opened("d/a", OpenMode::read)->sync().ok());
  EXPECT_TRUE(fs().sync_directory("d").ok());
  EXPECT_TRUE(fs().sync_directory("").ok());
  EXPECT_TRUE(fs().sync_all().ok());
}

TEST_P(FileSystemTest, SyncDirectory_OfWhatIsNone_SaysSo) {
  put("a", "hello");
  EXPECT_EQ(fs().sync_directory("a").error().kind, ErrorKind::invalid);
  EXPECT_EQ(fs().sync_directory("d").error().kind, ErrorKind::not_found);
}

// --- Names

TEST_P(FileSystemTest, AFileAndADirectory_AreForUsAlone_WhateverTheUmask) {
  for (const mode_t mask : {mode_t{0}, mode_t{0777}}) {
    const std::string suffix = std::to_string(mask);
    const mode_t before = ::umask(mask);
    auto made = fs().open("new" + suffix, OpenMode::create_new);
    auto opened = fs().open("old" + suffix, OpenMode::create);
    auto directory = fs().make_directory("d" + suffix);
    ::umask(before);
    ASSERT_TRUE(made.ok() && opened.ok() && directory.ok());
    EXPECT_EQ(fs().inspect("new" + suffix)->mode, 0600U);
    EXPECT_EQ(fs().inspect("old" + suffix)->mode, 0600U);
    EXPECT_EQ(fs().inspect("d" + suffix)->mode & 0777U, 0700U);
  }
}

TEST_P(FileSystemTest, Inspect_TellsWhatIsThere) {
  put("a", std::string(5000, 'a'));
  ASSERT_TRUE(opened("a", OpenMode::write)->sync().ok());
  ASSERT_TRUE(fs().make_directory("d").ok());
  const auto file = fs().inspect("a");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->type, NameType::file);
  EXPECT_EQ(file->size, 5000U);
  EXPECT_GE(file->allocated, 5000U);
  EXPECT_LE(file->allocated, 65536U);
  EXPECT_TRUE(file->ours);
  EXPECT_EQ(fs().inspect("d")->type, NameType::directory);
  EXPECT_EQ(fs().inspect("b").error().kind, ErrorKind::not_found);
  EXPECT_EQ(fs().inspect("d/b").error().kind, ErrorKind::not_found);
}

TEST_P(FileSystemTest, AHole_TakesNoRoom) {
  ASSERT_TRUE(opened("a", OpenMode::create)->truncate(std::uint64_t{1} << 24U).ok());
  EXPECT_EQ(fs().inspect("a")->size, std::uint64_t{1} << 24U);
  EXPECT_LE(fs().inspect("a")->allocated, 65536U);
}

TEST_P(FileSystemTest, MakeDirectory_OnceOnly_AndInADirectory) {
  ASSERT_TRUE(fs().make_directory("d").ok());
  EXPECT_EQ(fs().make_directory("d").error().kind, ErrorKind::exists);
  EXPECT_TRUE(fs().make_directory("d/e").ok());
  EXPECT_EQ(fs().make_directory("x/y").error().kind, ErrorKind::not_found);
  put("a", "");
  EXPECT_EQ(fs().make_directory("a").error().kind, ErrorKind::exists);
}

TEST_P(FileSystemTest, Remove_TakesTheName_NotTheOpenFile) {
  put("a", "hello");
  const auto file = opened("a", OpenMode::read);
  ASSERT_TRUE(fs().remove("a").ok());
  EXPECT_EQ(fs().inspect("a").error().kind, ErrorKind::not_found);
  EXPECT_EQ(fs().remove("a").error().kind, ErrorKind::not_found);
  Bytes out(5);
  EXPECT_EQ(*file->read_at(0, out), 5U);
  put("a", "new");
  EXPECT_EQ(text_of("a"), "new");
}

TEST_P(FileSystemTest, Remove_OfADirectory_IsInvalid) {
  ASSERT_TRUE(fs().make_directory("d").ok());
  EXPECT_EQ(fs().remove("d").error().kind, ErrorKind::invalid);
  EXPECT_EQ(fs().remove("x/a").error().kind, ErrorKind::not_found);
}

TEST_P(FileSystemTest, Rename_Replaces) {
  ASSERT_TRUE(fs().make_directory("d").ok());
  put("a", "new");
  put("d/b", "old");
  ASSERT_TRUE(fs().rename("a", "d/b", Rename::replace).ok());
  EXPECT_EQ(text_of("d/b"), "new");
  EXPECT_EQ(names_in(""), Names{"d"});
}

TEST_P(FileSystemTest, Rename_NoReplace_NeverReplaces) {
  ASSERT_TRUE(fs().make_directory("d").ok());
  put("a", "new");
  put("b", "old");
  plant_symlink("link");
  for (const char* taken : {"b", "d", "link", "a"}) {
    EXPECT_EQ(fs().rename("a", taken, Rename::no_replace).error().kind, ErrorKind::exists) << taken;
  }
  EXPECT_EQ(text_of("a"), "new");
  EXPECT_EQ(text_of("b"), "old");
  ASSERT_TRUE(fs().rename("a", "d/c", Rename::no_replace).ok());
  EXPECT_EQ(text_of("d/c"), "new");
  EXPECT_EQ(names_in(""), (Names{"b", "d", "link"}));
}

TEST_P(FileSystemTest, Rename_OntoItself_ChangesNothing) {
  put("a", "hello");
  ASSERT_TRUE(fs().rename("a", "a", Rename::replace).ok());
  EXPECT_EQ(text_of("a"), "hello");
}

TEST_P(FileSystemTest, Rename_OfAFileAndADirectory_DoNotMix) {
  ASSERT_TRUE(fs().make_directory("d").ok());
  ASSERT_TRUE(fs().make_directory("full").ok());
  put("full/a", "");
  put("a", "hello");
  EXPECT_EQ(fs().rename("a", "d", Rename::replace).error().kind, ErrorKind::invalid);
  EXPECT_EQ(fs().rename("d", "a", Rename::replace).error().kind, ErrorKind::invalid);
  EXPECT_EQ(fs().rename("d", "full", Rename::replace).error().kind, ErrorKind::invalid);
  EXPECT_TRUE(fs().rename("full", "d", Rename::replace).ok());
  EXPECT_EQ(names_in("d"), Names{"a"});
}

TEST_P(FileSystemTest, Rename_OfWhatIsMissing_IsNotFound) {
  put("a", "hello");
  for (const Rename rename : {Rename::replace, Rename::no_replace}) {
    EXPECT_EQ(fs().rename("x", "b", rename).error().kind, ErrorKind::not_found);
    EXPECT_EQ(fs().rename("x", "a", rename).error().kind, ErrorKind::not_found);
    EXPECT_EQ(fs().rename("x/a", "b", rename).error().kind, ErrorKind::not_found);
    EXPECT_EQ(fs().rename("a", "x/b", rename).error().kind, ErrorKind::not_found);
  }
}

TEST_P(FileSystemTest, AnOpenFile_FollowsItsRename) {
  put("a", "hello");
  const auto file = opened("a", OpenMode::write);
  ASSERT_TRUE(fs().rename("a", "b", Rename::replace).ok());
  ASSERT_TRUE(file->write_at(0, as_bytes("J")).ok());
  EXPECT_EQ(text_of("b"), "Jello");
}

TEST_P(FileSystemTest, List_NamesEverythingOnce) {
  EXPECT_EQ(names_in(""), Names{});
  ASSERT_TRUE(fs().make_directory("d").ok());
  Names expected;
  for (int i = 100; i < 400; ++i) expected.push_back(std::to_string(i));
  for (const std::string& name : expected) put("d/" + name, "");
  EXPECT_EQ(names_in("d"), expected);
  EXPECT_EQ(names_in(""), Names{"d"});
}

TEST_P(FileSystemTest, List_StopsWhenToldTo_AndLetsTheVisitorAct) {
  for (int i = 0; i < 20; ++i) put("f" + std::to_string(i), "");
  int seen = 0;
  ASSERT_TRUE(fs().list("",
                        [&](std::string_view name, NameType type) {
                          EXPECT_EQ(type, NameType::file);
                          EXPECT_TRUE(fs().remove(std::string(name)).ok());
                          return ++seen < 5;
                        })
                  .ok());
  EXPECT_EQ(seen, 5);
  EXPECT_EQ(names_in("").size(), 15U);
}

TEST_P(FileSystemTest, List_OfWhatIsNoDirectory_SaysSo) {
  put("a", "hello");
  const auto visit = [](std::string_view, NameType) { return true; };
  EXPECT_EQ(fs().list("a", visit).error().kind, ErrorKind::invalid);
  EXPECT_EQ(fs().list("d", visit).error().kind, ErrorKind::not_found);
}

// --- The rest

TEST_P(FileSystemTest, ALock_IsHeldByOne_UntilItGoes) {
  auto lock = fs().lock("LOCK");
  ASSERT_TRUE(lock.ok());
  EXPECT_EQ(fs().lock("LOCK").error().kind, ErrorKind::unavailable);
  EXPECT_TRUE(fs().lock("OTHER").ok());
  EXPECT_TRUE((*lock)->write_at(0, as_bytes("17")).ok());
  (*lock).reset();
  EXPECT_TRUE(fs().lock("LOCK").ok());
  EXPECT_EQ(text_of("LOCK"), "17");
  ASSERT_TRUE(fs().make_directory("d").ok());
  EXPECT_EQ(fs().lock("d").error().kind, ErrorKind::invalid);
}

TEST_P(FileSystemTest, Space_IsCounted) {
  const auto space = fs().space();
  ASSERT_TRUE(space.ok());
  EXPECT_GT(space->total_bytes, 0U);
  EXPECT_LE(space->free_bytes, space->total_bytes);
  EXPECT_LE(space->free_inodes, space->total_inodes);
  EXPECT_FALSE(space->type.empty());
  EXPECT_TRUE(space->safe || !space->syncs_whole);
}

TEST_P(FileSystemTest, Errors_SayWhatWasTriedOnWhatAndWhyNot) {
  const Error error = fs().open("records/ab/x.rec", OpenMode::read).error();
  EXPECT_NE(error.text.find("cannot open records/ab/x.rec: "), std::string::npos) << error.text;
  EXPECT_NE(fs().rename("a", "b", Rename::replace).error().text.find("a to b"), std::string::npos);
}

TEST_P(FileSystemTest, ReadFile_RefusesWhatIsLargerThanAsked) {
  put("a", "hello");
  EXPECT_EQ(as_text(*read_file(fs(), "a", 5)), "hello");
  EXPECT_EQ(read_file(fs(), "a", 4).error().kind, ErrorKind::invalid);
  EXPECT_EQ(read_file(fs(), "b", 4).error().kind, ErrorKind::not_found);
  put("empty", "");
  EXPECT_TRUE(read_file(fs(), "empty", 0)->empty());
}

constexpr const char* kKindNames[] = {"Posix", "Simulated", "Gated"};
INSTANTIATE_TEST_SUITE_P(Every, FileSystemTest, testing::Values(Kind::posix, Kind::simulated, Kind::gated),
                         [](const auto& param) { return kKindNames[static_cast<int>(param.param)]; });

}  // namespace
}  // namespace holdfast
