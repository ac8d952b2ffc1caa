// Directories and compression of a file target: names, what is in the files, and what a power cut leaves.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "forwarder/compression.h"
#include "spool/path.h"
#include "tests/forwarder/simulated_directory.h"
#include "tests/support/mutation.h"
#include "tests/support/temporary_directory.h"

namespace holdfast {
namespace {

// --- Directories

Envelope envelope(std::string subject, std::int64_t timestamp_ns = 0) {
  Envelope made;
  made.subject = std::move(subject);
  made.origin.timestamp_ns = timestamp_ns;
  return made;
}

std::string by_subject(const std::string& subject) {
  return record_directory(FileLayout::subject, envelope(subject));
}

TEST(FileLayout, Date_IsThatOfTheMessageInItsStream) {
  const auto by_date = [](std::int64_t at) { return record_directory(FileLayout::date, envelope("a", at)); };
  EXPECT_EQ(by_date(1'700'000'000'000'000'000), "2023-11-14");
  EXPECT_EQ(by_date(0), "1970-01-01");
  EXPECT_EQ(by_date(-1), "1969-12-31");
  EXPECT_EQ(by_date(std::numeric_limits<std::int64_t>::max()), "2262-04-11");
  EXPECT_EQ(by_date(std::numeric_limits<std::int64_t>::min()), "1677-09-21");
  EXPECT_EQ(record_directory(FileLayout::flat, envelope("a.b")), "");
}

TEST(FileLayout, Subject_IsADirectoryForEachToken) {
  EXPECT_EQ(by_subject("telemetry.engine.1"), "telemetry/engine/1");
  EXPECT_EQ(by_subject("A.b:c"), "=41/b=3ac");
  EXPECT_EQ(by_subject("a.msg:1"), "a/msg=3a1") << "a record's name is msg%3a1";
  EXPECT_EQ(by_subject("a/../b"), "a=2f/=/=2fb");
  EXPECT_EQ(by_subject("..=.a"), "=/=/=3d/a");
  EXPECT_EQ(by_subject("1.2.3.4.5.6.7.8.9.10"), "1/2/3/4/5/6/7/8.9.10");
  EXPECT_EQ(by_subject(std::string(201, 'a')).size(), 4 + 64u);
}

TEST(FileLayout, TwoSubjects_NeverShareADirectory_AndNoneLeavesTheTargets) {
  Dice dice(5);
  std::set<std::string> subjects, directories;
  for (int n = 0; n < 20'000; ++n) {
    std::string subject(1 + dice.below(n % 10 == 0 ? 24 : 5), ' ');
    constexpr std::string_view kLikely = "ab.=/A%\xc3";
    for (char& c : subject) c = kLikely[dice.below(kLikely.size())];
    subjects.insert(subject);
    const std::string directory = by_subject(subject);
    directories.insert(directory);
    EXPECT_TRUE(is_inner_path(directory)) << directory;
    EXPECT_EQ(directory.find('%'), std::string::npos);
    EXPECT_LE(std::count(directory.begin(), directory.end(), '/'), 7);
  }
  EXPECT_EQ(subjects.size(), directories.size());
  EXPECT_LT(by_subject(std::string(3900, ':')).size() + 255, 4096u);
}

// --- Compression

TEST(Compression, GivesBackWhatWasPutIn_AndTheSameBytesEachTime) {
  Dice dice(3);
  for (const Compression compression : {Compression::none, Compression::gzip, Compression::zstd}) {
    for (const std::size_t size : {0u, 1u, 100u, 65'536u, 300'000u}) {
      Bytes bytes(size);
      for (auto& byte : bytes) byte = static_cast<std::uint8_t>(dice.below(size % 2 == 0 ? 4 : 256));
      const Bytes small = compress(bytes, compression);
      EXPECT_EQ(small, compress(bytes, compression));
      EXPECT_EQ(decompress(small, compression, size), bytes);
      EXPECT_EQ(size > 0 && decompress(small, compression, size - 1).has_value(), false) << "the limit";
    }
  }
}

TEST(Compression, ABomb_IsOpenedToTheLimitAndNoFurther) {
  const Bytes zeros(50u << 20);
  for (const Compression compression : {Compression::gzip, Compression::zstd})
    EXPECT_EQ(decompress(compress(zeros, compression), compression, 1u << 20), std::nullopt);
}

TEST(Compression, WhatIsCutShort_Altered_OrLonger_IsNone) {
  Bytes bytes(5000);
  Dice dice(9);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(dice.below(32));
  for (const Compression compression : {Compression::gzip, Compression::zstd}) {
    const Bytes small = compress(bytes, compression);
    for (std::size_t size = 0; size < small.size(); size += 7)
      EXPECT_EQ(decompress(ByteView(small).first(size), compression, 10'000), std::nullopt) << size;
    Bytes longer = small;
    longer.push_back('x');
    EXPECT_EQ(decompress(longer, compression, 10'000), std::nullopt);
    for (std::size_t at = 0; at < small.size(); ++at) {
      Bytes altered = small;
      altered[at] ^= 0x10;
      (void)decompress(altered, compression, 10'000);  // whatever it says, it returns
    }
  }
}

// --- A directory on a disk that forgets

std::vector<DueRecord> of_subjects(std::uint64_t count) {
  std::vector<DueRecord> records = some_records(count);
  for (DueRecord& record : records) {
    record.envelope.subject = "telemetry." + std::to_string(record.sequence % 3) + (record.sequence % 2 ? ".x.y" : "");
    record.envelope.origin.timestamp_ns = static_cast<std::int64_t>(record.sequence % 2) * 86'400'000'000'000;
  }
  return records;
}

TEST(FileLayout, PowerCutAtEveryStep_TheDirectoriesAreThereToo) {
  cut_at_every_step(of_subjects(3), {FileFormat::raw, "w", FileLayout::subject, Compression::none});
  cut_at_every_step(of_subjects(3), {FileFormat::json, "w", FileLayout::date, Compression::gzip});
  cut_at_every_step(of_subjects(17), {FileFormat::raw, "w", FileLayout::subject, Compression::zstd});
}

// A directory that an earlier life made and did not sync is there for who looks, and gone after a power cut.
TEST(FileLayout, DirectoriesThatSomebodyElseMade_AreSyncedToo) {
  SimulatedDirectory disk;
  ASSERT_TRUE(disk.fs.make_directory("telemetry").ok());
  ASSERT_TRUE(disk.fs.make_directory("telemetry/a").ok());
  const FileTargetOptions options{FileFormat::raw, "w", FileLayout::subject, Compression::none};
  FileTarget files = disk.target(options);
  ASSERT_EQ(deliver(files, {made_record(1, "one")}).kinds(), (Kinds{OutcomeKind::delivered}));
  disk.fs.lose_power(Loss::drop_all);
  EXPECT_TRUE(disk.fs.there("telemetry/a/msg%3a1"));
}

TEST(FileLayout, EveryCallFailsOnce_ThenAllIsDeliveredForGood) {
  const std::vector<DueRecord> records = of_subjects(4);
  const FileTargetOptions options{FileFormat::raw, "w", FileLayout::subject, Compression::gzip};
  for (const FaultKind kind : {FaultKind::io, FaultKind::full, FaultKind::unavailable, FaultKind::short_write}) {
    for (std::uint64_t step = 1; step < 200; ++step) {
      SCOPED_TRACE("step " + std::to_string(step) + ", fault " + std::to_string(static_cast<int>(kind)));
      SimulatedDirectory disk(step);
      FileTarget files = disk.target(options);
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
      expect_sound(disk.fs, records, reported, options);
      if (disk.fs.counts().struck == 0) break;
    }
  }
}

TEST(FileLayout, ManyDirectories_AreOneSync_WhereTheFileSystemCanBeBelieved) {
  SimulatedDirectory disk;
  FileTarget files = disk.target({FileFormat::raw, "w", FileLayout::subject, Compression::none});
  std::vector<DueRecord> records = some_records(100);
  for (DueRecord& record : records) record.envelope.subject = "lane." + std::to_string(record.sequence);
  ASSERT_EQ(deliver(files, records).count(OutcomeKind::delivered), 100u);
  EXPECT_EQ(disk.fs.counts().whole_syncs, 2u);
  EXPECT_EQ(disk.fs.counts().directory_syncs, 0u);
}

// --- A real directory

class RealLayout : public ::testing::Test {
 protected:
  FileTarget target(FileLayout layout, Compression compression) {
    return {[this] { return open_posix_file_system(directory_ / ""); }, {FileFormat::raw, "w", layout, compression}};
  }
  TemporaryDirectory directory_;
};

TEST_F(RealLayout, SomethingElseInADirectorysPlace_HoldsThatLaneAlone) {
  auto fs = open_posix_file_system(directory_ / "");
  ASSERT_TRUE((*fs)->open("taken", OpenMode::create_new).ok());
  ASSERT_EQ(::symlink("/tmp", (directory_ / "link").c_str()), 0);
  FileTarget files = target(FileLayout::subject, Compression::none);
  const Delivered delivered =
      deliver(files, {made_record(1, "a", "taken.x"), made_record(2, "b", "link"), made_record(3, "c", "free.x")});
  ASSERT_EQ(delivered.kinds(), (Kinds{OutcomeKind::hold_lane, OutcomeKind::hold_lane, OutcomeKind::delivered}));
  EXPECT_STREQ(delivered.outcomes[0]->state, "directory_taken");
  EXPECT_TRUE((*fs)->inspect("free/x/msg%3a3").ok());
}

TEST_F(RealLayout, WhatIsCompressed_IsComparedByWhatIsInIt) {
  for (const Compression compression : {Compression::gzip, Compression::zstd}) {
    auto fs = open_posix_file_system(directory_ / "");
    FileTarget files = target(FileLayout::flat, compression);
    const std::string name = std::string("msg%3a1") + compression_suffix(compression);
    ASSERT_EQ(deliver(files, {made_record(1, "payload")}).kinds(), (Kinds{OutcomeKind::delivered}));
    EXPECT_EQ(decompress(*read_file(**fs, name, 1000), compression, 1000), Bytes({'p', 'a', 'y', 'l', 'o', 'a', 'd'}));
    EXPECT_EQ(deliver(files, {made_record(1, "payload")}).kinds(), (Kinds{OutcomeKind::duplicate}));
    EXPECT_EQ(deliver(files, {made_record(1, "another")}).kinds(), (Kinds{OutcomeKind::rejected}));
    {
      const auto file = (*fs)->open(name, OpenMode::write);
      ASSERT_TRUE((*file)->truncate(5).ok());
    }
    const Delivered cut = deliver(files, {made_record(1, "payload")});
    ASSERT_EQ(cut.kinds(), (Kinds{OutcomeKind::rejected}));
    EXPECT_EQ(cut.outcomes[0]->reason, Reason::exists_otherwise);
  }
}

}  // namespace
}  // namespace holdfast
