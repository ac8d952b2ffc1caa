// A directory as a target: names, contents, and what is in it after anything has gone wrong.
#include "forwarder/file_target.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <set>

#include "forwarder/file_name.h"
#include "tests/forwarder/simulated_directory.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/temporary_directory.h"

namespace holdfast {
namespace {

// --- Names

TEST(FileName, IsTheKeyWithWhatAFileSystemMayNotKnowEscaped) {
  EXPECT_EQ(record_file_name("seq:truck-07:S_1:12:1700", ""), "seq%3atruck-07%3a%53_1%3a12%3a1700");
  EXPECT_EQ(record_file_name("msg:a/b", ".json"), "msg%3aa%2fb.json");
  EXPECT_EQ(record_file_name("msg:a%2fb", ""), "msg%3aa%252fb");
  EXPECT_EQ(record_file_name("..", ""), "%2e%2e");
  EXPECT_EQ(record_file_name(".a.b.", ""), "%2ea.b%2e");
}

TEST(FileName, LongOnesAreDigests) {
  const std::string name = record_file_name("msg:" + std::string(190, 'A'), ".json");
  EXPECT_EQ(name.size(), 4 + 64 + 5U);
  EXPECT_TRUE(name.starts_with("h%3a"));
  EXPECT_NE(name, record_file_name("msg:" + std::string(189, 'A'), ".json"));
  EXPECT_EQ(record_file_name("h:" + std::string(64, 'a'), ""), "h%3a" + std::string(64, 'a'));
}

// On any file system: no two keys have one name, no name is hidden, leaves the directory or is too long.
TEST(FileName, AnyKey_GivesAnHonestNameOfItsOwn) {
  Dice dice(7);
  std::set<std::string> keys;
  std::set<std::string> folded;
  for (int n = 0; n < 20'000; ++n) {
    std::string key(1 + dice.below(n % 50 == 0 ? 200 : 4), ' ');
    for (char& c : key) c = static_cast<char>(0x21 + dice.below(0x7f - 0x21));
    keys.insert(key);
    const std::string name = record_file_name(key, "");
    EXPECT_LT(name.size(), 256U);
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_.%"), std::string::npos) << name;
    EXPECT_NE(name.front(), '.');
    EXPECT_NE(name.back(), '.');
    folded.insert(name);
  }
  EXPECT_EQ(keys.size(), folded.size());
}

TEST(FileName, TemporaryNamesAreTheirWritersAlone) {
  const std::string name = temporary_file_name("truck-07 hub", 12);
  EXPECT_EQ(name.front(), '.');
  EXPECT_TRUE(is_temporary_file_of("truck-07 hub", name));
  EXPECT_FALSE(is_temporary_file_of("truck-07", name));
  EXPECT_FALSE(is_temporary_file_of("truck", ".tmp-truck-07-1"));
  EXPECT_FALSE(is_temporary_file_of("truck", ".tmp-truck-"));
  EXPECT_FALSE(is_temporary_file_of("truck", ".tmp-truck-1x"));
}

// --- Contents

TEST(FileContent, RawIsThePayload) {
  const DueRecord record = made_record(1, "some bytes");
  const FileContent content(record, "k", FileFormat::raw);
  EXPECT_EQ(as_text(content.bytes()), "some bytes");
  EXPECT_TRUE(content.is_same_record(as_bytes("some bytes")));
  EXPECT_FALSE(content.is_same_record(as_bytes("some byte")));
  EXPECT_FALSE(content.is_same_record(as_bytes("some bytes ")));
}

TEST(FileContent, JsonIsOneLine_WithKeysInOrder) {
  DueRecord record = made_record(1, "ab?");
  record.envelope.headers = {{"A", "1"}, {"A", "say \"hi\"\n\\"}};
  record.envelope.origin = {"S", 18446744073709551615U, -5};
  const FileContent content(record, "msg:1", FileFormat::json);
  EXPECT_EQ(
      as_text(content.bytes()),
      "{\"key\":\"msg:1\",\"subject\":\"telemetry.a\",\"payload\":\"YWI/\",\"headers\":[{\"name\":\"A\",\"value\":"
      "\"1\"},{\"name\":\"A\",\"value\":\"say \\\"hi\\\"\\u000a\\\\\"}],\"stream\":\"S\",\"sequence\":"
      "18446744073709551615,\"timestamp_ns\":-5}\n");
}

TEST(FileContent, JsonSaysWhenThePayloadWasLeftOut) {
  DueRecord record = made_record(1, "");
  record.envelope.payload_omitted = true;
  record.envelope.original_size = 77;
  const FileContent content(record, "msg:1", FileFormat::json);
  const auto parsed = boost::json::parse(as_text(content.bytes())).as_object();
  EXPECT_TRUE(parsed.at("payload_omitted").as_bool());
  EXPECT_EQ(parsed.at("original_size").to_number<int>(), 77);
}

// Any bytes in any text: a parser of others reads it, and nothing is lost.
TEST(FileContent, JsonOfAnything_IsJson) {
  Dice dice(3);
  for (int n = 0; n < 3000; ++n) {
    std::string text(dice.below(12), ' ');
    for (char& c : text) c = static_cast<char>(dice.percent(60) ? dice.below(256) : 0xe0 + dice.below(0x20));
    DueRecord record = made_record(1, text);
    record.envelope.subject = text;
    record.envelope.headers = {{"name", text}};
    const FileContent content(record, "msg:1", FileFormat::json);
    boost::system::error_code error;
    const auto parsed = boost::json::parse(as_text(content.bytes()), error);
    ASSERT_FALSE(error) << "seed 3, turn " << n;
    const auto& object = parsed.as_object();
    ASSERT_NE(object.contains("subject"), object.contains("subject_base64"));
    if (object.contains("subject")) {
      EXPECT_EQ(object.at("subject").as_string(), text);
    }
    EXPECT_EQ(content.bytes().back(), '\n');
    EXPECT_EQ(std::count(content.bytes().begin(), content.bytes().end(), '\n'), 1);
  }
}

TEST(FileContent, JsonOfTheSameRecord_WithOtherHeaders_IsTheSameRecord) {
  DueRecord record = made_record(1, "payload");
  const FileContent first(record, "msg:1", FileFormat::json);
  record.envelope.headers = {{"Trace", "2"}};
  record.envelope.origin.sequence = 99;
  const FileContent second(record, "msg:1", FileFormat::json);
  EXPECT_NE(first.bytes(), second.bytes());
  EXPECT_TRUE(second.is_same_record(first.bytes()));
  record.envelope.subject += "x";
  EXPECT_FALSE(FileContent(record, "msg:1", FileFormat::json).is_same_record(first.bytes()));
}

// --- A real directory

class RealDirectory : public ::testing::Test {
 protected:
  FileTarget target(FileFormat format = FileFormat::raw) {
    return {[this] { return open_posix_file_system(directory_ / "out"); }, {format, "truck-07-files"}};
  }
  void SetUp() override { ASSERT_EQ(::mkdir(path("").c_str(), 0700), 0); }
  std::string path(const std::string& name) const { return directory_ / ("out/" + name); }
  std::string content(const std::string& name) {
    auto fs = open_posix_file_system(directory_ / "out");
    auto bytes = read_file(**fs, name, 1 << 20);
    return bytes.ok() ? std::string(as_text(*bytes)) : "(none)";
  }
  std::vector<std::string> names() {
    auto fs = open_posix_file_system(directory_ / "out");
    std::vector<std::string> found;
    EXPECT_TRUE((*fs)
                    ->list("",
                           [&](std::string_view name, NameType) {
                             found.emplace_back(name);
                             return true;
                           })
                    .ok());
    std::sort(found.begin(), found.end());
    return found;
  }

  TemporaryDirectory directory_;
};

TEST_F(RealDirectory, OneFilePerRecord_UnderItsName) {
  FileTarget files = target();
  const Delivered first = deliver(files, {made_record(1, "one"), made_record(2, "two")});
  ASSERT_TRUE(first.result.ok()) << first.result.error().text;
  EXPECT_EQ(first.kinds(), (Kinds{OutcomeKind::delivered, OutcomeKind::delivered}));
  EXPECT_EQ(names(), (std::vector<std::string>{"msg%3a1", "msg%3a2"}));
  EXPECT_EQ(content("msg%3a1"), "one");
  EXPECT_EQ(deliver(files, {made_record(2, "two"), made_record(1, "other")}).kinds(),
            (Kinds{OutcomeKind::duplicate, OutcomeKind::rejected}));
  EXPECT_EQ(content("msg%3a1"), "one");
  EXPECT_EQ(names().size(), 2U);
}

TEST_F(RealDirectory, AWholeWindow) {
  FileTarget files = target(FileFormat::json);
  std::vector<DueRecord> records;
  for (std::uint64_t n = 1; n <= 500; ++n) records.push_back(made_record(n, "payload " + std::to_string(n)));
  const Delivered first = deliver(files, records);
  ASSERT_TRUE(first.result.ok()) << first.result.error().text;
  EXPECT_EQ(first.count(OutcomeKind::delivered), 500U);
  EXPECT_EQ(names().size(), 500U);
  EXPECT_EQ(deliver(files, records).count(OutcomeKind::duplicate), 500U);
  EXPECT_EQ(names().size(), 500U);
}

TEST_F(RealDirectory, MissingDirectory_HoldsTheTarget_UntilItIsThere) {
  ASSERT_EQ(::rmdir(path("").c_str()), 0);
  FileTarget files = target();
  const Delivered missing = deliver(files, {made_record(1, "one")});
  ASSERT_TRUE(missing.result.ok());
  EXPECT_EQ(missing.kinds(), (Kinds{OutcomeKind::hold_target}));
  EXPECT_STREQ(missing.outcomes[0]->state, "directory_missing");
  ASSERT_EQ(::mkdir(path("").c_str(), 0700), 0);
  EXPECT_EQ(deliver(files, {made_record(1, "one")}).kinds(), (Kinds{OutcomeKind::delivered}));
}

TEST_F(RealDirectory, ASymlinkInItsPlace_IsRefused) {
  ASSERT_EQ(::rmdir(path("").c_str()), 0);
  ASSERT_EQ(::symlink("/tmp", (directory_ / "out").c_str()), 0);
  FileTarget files = target();
  const Delivered refused = deliver(files, {made_record(1, "one")});
  EXPECT_EQ(refused.kinds(), (Kinds{OutcomeKind::hold_target}));
  EXPECT_STREQ(refused.outcomes[0]->state, "directory_refused");
}

TEST_F(RealDirectory, ASymlinkUnderTheRecordsName_IsSomethingElse_AndStays) {
  ASSERT_EQ(::symlink("/etc/hostname", path("msg%3a1").c_str()), 0);
  FileTarget files = target();
  const Delivered refused = deliver(files, {made_record(1, "one"), made_record(2, "two")});
  EXPECT_EQ(refused.kinds(), (Kinds{OutcomeKind::rejected, OutcomeKind::delivered}));
  EXPECT_EQ(refused.outcomes[0]->reason, Reason::exists_otherwise);
}

TEST_F(RealDirectory, OwnLeftoversGo_OthersStay) {
  FileTarget first = target();
  ASSERT_TRUE(deliver(first, {made_record(1, "one")}).result.ok());
  auto fs = open_posix_file_system(directory_ / "out");
  for (const char* name : {".tmp-truck-07-files-0", ".tmp-truck-07-files-77", ".tmp-truck-08-files-0", ".hidden"}) {
    ASSERT_TRUE((*fs)->open(name, OpenMode::create_new).ok());
  }
  FileTarget next_life = target();
  ASSERT_TRUE(deliver(next_life, {made_record(2, "two")}).result.ok());
  EXPECT_EQ(names(), (std::vector<std::string>{".hidden", ".tmp-truck-08-files-0", "msg%3a1", "msg%3a2"}));
}

TEST_F(RealDirectory, NoErrorNamesAKey) {
  for (const char* verb : {"open", "rename", "inspect", "sync_directory", "sync_all", "write", "sync"}) {
    auto fs = open_posix_file_system(directory_ / "out");
    FileTarget files(
        [&]() -> Result<std::unique_ptr<FileSystem>> {
          return std::unique_ptr<FileSystem>(std::make_unique<FaultyFileSystem>(**fs, [&](std::string_view called,
                                                                                          std::string_view path) {
            return called == verb ? std::optional(Error{ErrorKind::io, "cannot do " + std::string(path) + ": broken"})
                                  : std::nullopt;
          }));
        },
        {});
    std::vector<DueRecord> records;
    for (std::uint64_t n = 1; n <= 20; ++n) records.push_back(made_record(n, "payload"));
    records.resize(verb == std::string_view("sync") ? 3 : 20);
    const Delivered failed = deliver(files, records);
    ASSERT_FALSE(failed.result.ok()) << verb;
    EXPECT_EQ(failed.result.error().kind, ErrorKind::unavailable);
    EXPECT_EQ(failed.result.error().text.find("msg"), std::string::npos) << failed.result.error().text;
    EXPECT_NE(failed.result.error().text.find("broken"), std::string::npos) << failed.result.error().text;
  }
}

// --- A directory on a disk that forgets

TEST(FileTarget, PowerCutAtEveryStep_NeverAPartialFile_AndWhatWasReportedIsThere) {
  cut_at_every_step(some_records(4), {FileFormat::raw});
  cut_at_every_step(some_records(4), {FileFormat::json});
  cut_at_every_step(some_records(20), {FileFormat::raw});  // enough for one sync of everything
}

// Any call fails, once, in every way; the process lives on and delivers again: nothing that a failed sync has left in
// memory is believed.
TEST(FileTarget, EveryCallFailsOnce_ThenAllIsDeliveredForGood) {
  for (const std::uint64_t count : {4U, 20U}) {
    const std::vector<DueRecord> records = some_records(count);
    for (const FaultKind kind : {FaultKind::io, FaultKind::full, FaultKind::unavailable, FaultKind::short_write}) {
      for (std::uint64_t step = 1; step < 200; ++step) {
        SCOPED_TRACE("step " + std::to_string(step) + ", fault " + std::to_string(static_cast<int>(kind)));
        SimulatedDirectory disk(step);
        FileTarget files = disk.target();
        disk.fs.fail_at(step, {.kind = kind, .partly = step % 2 == 0});
        std::set<std::uint64_t> reported;
        for (int round = 0; round < 3; ++round) {
          const Delivered delivered = deliver(files, records);
          for (std::size_t place = 0; place < records.size(); ++place) {
            const auto& outcome = delivered.outcomes[place];
            if (is_accepted(outcome)) reported.insert(records[place].sequence);
            if (outcome && outcome->kind == OutcomeKind::rejected) ADD_FAILURE() << "a record of ours was rejected";
          }
        }
        EXPECT_EQ(reported.size(), records.size());
        disk.fs.lose_power(Loss::drop_all);
        expect_sound(disk.fs, records, reported, {FileFormat::raw});
        if (disk.fs.counts().struck == 0) break;
      }
    }
  }
}

// A directory whose names a failed sync has lost: the files look well, and are gone after a power cut.
TEST(FileTarget, AfterAFailedSyncOfTheDirectory_ADuplicateIsWrittenAnew) {
  SimulatedDirectory disk;
  FileTarget files = disk.target();
  const std::vector<DueRecord> records = some_records(3);
  disk.fs.observe([&](std::uint64_t step, std::string_view verb, std::string_view) {
    if (verb == "sync_directory") disk.fs.fail_at(step, {.kind = FaultKind::io});
  });
  ASSERT_FALSE(deliver(files, records).result.ok());
  disk.fs.observe(nullptr);
  FileTarget next_life = disk.target();  // the process, not the power
  const Delivered again = deliver(next_life, records);
  EXPECT_EQ(again.count(OutcomeKind::duplicate), 3U);
  disk.fs.lose_power(Loss::drop_all);
  expect_sound(disk.fs, records, {1, 2, 3}, {FileFormat::raw});
}

TEST(FileTarget, DiskFull_IsRetry_WhatFittedIsThere_AndTheRestGoesWhenThereIsRoom) {
  SimulatedDirectory disk;
  FileTarget files = disk.target();
  const std::vector<DueRecord> records = some_records(12);
  disk.fs.set_capacity(8 * 4096, 100);
  const Delivered some = deliver(files, records);
  ASSERT_TRUE(some.result.ok()) << some.result.error().text;
  EXPECT_GT(some.count(OutcomeKind::delivered), 0U);
  EXPECT_GT(some.count(OutcomeKind::retry), 0U);
  EXPECT_EQ(some.count(OutcomeKind::delivered) + some.count(OutcomeKind::retry), 12U);
  EXPECT_STREQ(some.outcomes[11]->state, "disk_full");
  for (const std::string& name : disk.fs.files()) EXPECT_NE(name.front(), '.') << name;
  disk.fs.set_capacity(1000 * 4096, 100);
  EXPECT_EQ(deliver(files, records).count(OutcomeKind::delivered), some.count(OutcomeKind::retry));
}

TEST(FileTarget, Interrupted_EndsBetweenTwoRecords_AndLeavesNothing) {
  SimulatedDirectory disk;
  FileTarget files = disk.target();
  std::uint64_t writes = 0;
  disk.fs.observe([&](std::uint64_t, std::string_view verb, std::string_view) {
    if (verb.find("write") != std::string_view::npos && ++writes == 5) files.interrupt();
  });
  const Delivered interrupted = deliver(files, some_records(50));
  ASSERT_FALSE(interrupted.result.ok());
  EXPECT_LT(writes, 10U);
  EXPECT_TRUE(disk.fs.files().empty());
  EXPECT_EQ(deliver(files, some_records(50)).count(OutcomeKind::delivered), 50U);
}

TEST(FileTarget, SyncsOncePerWindow_WhereTheFileSystemCanBeBelieved) {
  SimulatedDirectory disk;
  FileTarget files = disk.target();
  ASSERT_TRUE(deliver(files, some_records(200)).result.ok());
  EXPECT_EQ(disk.fs.counts().whole_syncs, 1U);
  EXPECT_EQ(disk.fs.counts().file_syncs, 0U);
  EXPECT_EQ(disk.fs.counts().directory_syncs, 1U);
  disk.fs.set_type("vfat", false, false);
  SimulatedDirectory other;
  other.fs.set_type("vfat", false, false);
  FileTarget vfat = other.target();
  ASSERT_TRUE(deliver(vfat, some_records(200)).result.ok());
  EXPECT_EQ(other.fs.counts().whole_syncs, 0U);
  EXPECT_EQ(other.fs.counts().file_syncs, 200U);
  EXPECT_EQ(other.fs.counts().directory_syncs, 1U);
}

}  // namespace
}  // namespace holdfast
