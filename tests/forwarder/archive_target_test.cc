// An archive: its lines, its keys, and what is in it after anything has gone wrong.
#include "forwarder/archive_target.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <map>
#include <set>

#include "forwarder/archive_segment.h"
#include "tests/forwarder/simulated_directory.h"
#include "tests/support/mutation.h"
#include "tests/support/simulated_clock.h"

namespace holdfast {
namespace {

constexpr std::string_view kFirst = "w-00000000000000000001.ndjson";
constexpr std::string_view kFirstKeys = "w-00000000000000000001.keys";
constexpr std::string_view kSecond = "w-00000000000000000002.ndjson";

// --- Lines

TEST(ArchiveLine, IsTheObjectOfTheRecord_AndReadsBack) {
  Dice dice(4);
  for (int n = 0; n < 2000; ++n) {
    std::string text(dice.below(30), ' ');
    constexpr std::string_view kNasty = "\",:{}[]\\subjecthrwindo_\n\xff";
    for (char& c : text) c = kNasty[dice.below(kNasty.size())];
    DueRecord record = made_record(n, text);
    record.envelope.subject = n % 2 ? "\",\"subject" : text;
    record.envelope.headers = {{text, "\",\"headers\":["}, {",\"window_at\":", text}};
    record.envelope.origin.stream = text;
    const std::string key = n % 3 ? "msg:" + text : "\",\"headers\":[";
    const ArchiveLine line = make_archive_line(record, key, 77);
    EXPECT_EQ(line.bytes.back(), '\n');
    EXPECT_EQ(std::count(line.bytes.begin(), line.bytes.end(), '\n'), 1);
    const std::string_view whole = as_text(ByteView(line.bytes).first(line.bytes.size() - 1));
    const auto read = read_archive_line(whole);
    ASSERT_TRUE(read) << whole;
    EXPECT_EQ(read->mark, line.mark);
    EXPECT_EQ(read->window_at, 77u);
    EXPECT_EQ(read->mark.spool_sequence, static_cast<std::uint64_t>(n));
    boost::system::error_code error;
    const auto parsed = boost::json::parse(whole, error);
    ASSERT_FALSE(error);
    EXPECT_EQ(parsed.as_object().at("window_at").to_number<int>(), 77);
  }
}

TEST(ArchiveLine, DigestsAreOfKey_AndOfKeySubjectAndPayload_AndOfNothingElse) {
  DueRecord record = made_record(1, "payload");
  const ArchiveMark first = make_archive_line(record, "msg:1", 0).mark;
  record.envelope.headers = {{"Trace", "2"}};
  record.envelope.origin.sequence = 99;
  EXPECT_EQ(make_archive_line(record, "msg:1", 500).mark, first);
  record.envelope.payload.push_back('x');
  EXPECT_EQ(make_archive_line(record, "msg:1", 0).mark.key, first.key);
  EXPECT_NE(make_archive_line(record, "msg:1", 0).mark.content, first.content);
  EXPECT_NE(make_archive_line(record, "msg:2", 0).mark.key, first.key);
}

TEST(ArchiveLine, WithAnyByteAltered_IsNoLine) {
  const ArchiveLine line = make_archive_line(made_record(1, "some payload"), "msg:1", 0);
  for (std::size_t at = 0; at + 1 < line.bytes.size(); ++at) {
    Bytes altered(line.bytes.begin(), line.bytes.end() - 1);
    altered[at] ^= 1;
    EXPECT_FALSE(read_archive_line(as_text(altered))) << at;
    EXPECT_FALSE(read_archive_line(as_text(ByteView(line.bytes).first(at))));
  }
}

// --- Keys

TEST(ArchiveKeys, FindThoseThatAreThere_AndNoOthers) {
  SimulatedFileSystem fs;
  Dice dice(8);
  for (const std::size_t count : {0u, 1u, 2u, 511u, 513u, 20'000u}) {
    std::vector<ArchiveMark> marks(count);
    for (std::size_t n = 0; n < count; ++n) {
      for (auto& byte : marks[n].key) byte = static_cast<std::uint8_t>(dice.below(256));
      if (count == 513) marks[n].key[0] = marks[n].key[1] = 7;  // not evenly spread at all
      marks[n].content[0] = static_cast<std::uint8_t>(n);
      marks[n].spool_sequence = 100 + n;
    }
    ASSERT_TRUE(write_archive_keys(fs, "keys", marks).ok());
    const auto keys = read_archive_keys(fs, "keys");
    ASSERT_TRUE(keys.ok());
    EXPECT_EQ(keys->records, count);
    if (count > 0) {
      EXPECT_EQ(keys->first_sequence, 100u);
      EXPECT_EQ(keys->last_sequence, 99u + count);
    }
    for (std::size_t n = 0; n < count; n += 1 + count / 500) {
      const auto found = find_archive_key(fs, "keys", *keys, marks[n].key);
      ASSERT_TRUE(found.ok() && *found);
      EXPECT_EQ(**found, marks[n].content);
      ArchiveDigest other = marks[n].key;
      other[15] ^= 1;
      EXPECT_EQ(*find_archive_key(fs, "keys", *keys, other), std::nullopt);
    }
  }
}

TEST(ArchiveKeys, ATornOrAlteredFile_IsNone) {
  SimulatedFileSystem fs;
  ASSERT_TRUE(write_archive_keys(fs, "keys", {ArchiveMark{}, ArchiveMark{}}).ok());
  const Bytes whole = fs.bytes("keys");
  for (std::uint64_t size = 0; size < whole.size(); ++size) {
    fs.plant("keys", ByteView(whole).first(size));
    EXPECT_EQ(read_archive_keys(fs, "keys").error().kind, ErrorKind::corrupt) << size;
  }
  for (std::size_t at = 0; at < 36; ++at) {
    fs.plant("keys", whole);
    fs.flip("keys", at);
    EXPECT_EQ(read_archive_keys(fs, "keys").error().kind, ErrorKind::corrupt) << at;
  }
}

// --- The archive

class ArchiveDisk {
 public:
  explicit ArchiveDisk(std::uint64_t seed = 1) : disk(seed) {}
  ArchiveTarget target(std::uint64_t rotate_bytes = 20'000) {
    ArchiveOptions options;
    options.writer = "w";
    options.rotate_bytes = rotate_bytes;
    options.clock = &clock;
    return {disk.opener(), options};
  }
  std::vector<std::string> segments() const {
    std::vector<std::string> found;
    for (const std::string& name : disk.fs.files("w-")) {
      if (name.ends_with(kSegmentSuffix)) found.push_back(name);
    }
    return found;
  }
  // Spool sequences of all lines, each as often as it is there. Whatever is no line is a failure.
  std::multiset<std::uint64_t> lines() const {
    std::multiset<std::uint64_t> found;
    for (const std::string& name : segments()) {
      const Bytes bytes = disk.fs.bytes(name);
      std::string_view rest = as_text(bytes);
      for (std::size_t end = rest.find('\n'); !rest.empty(); end = rest.find('\n')) {
        const auto line = read_archive_line(rest.substr(0, end));
        EXPECT_TRUE(line) << name << ": " << rest.substr(0, 100);
        if (!line || end == std::string_view::npos) return found;
        found.insert(line->mark.spool_sequence);
        rest.remove_prefix(end + 1);
      }
    }
    return found;
  }
  SimulatedFileSystem& fs() { return disk.fs; }

  SimulatedDirectory disk;
  SimulatedClock clock;
};

std::multiset<std::uint64_t> one_to(std::uint64_t last) {
  std::multiset<std::uint64_t> all;
  for (std::uint64_t n = 1; n <= last; ++n) all.insert(n);
  return all;
}

std::vector<DueRecord> part_of(const std::vector<DueRecord>& records, std::size_t from, std::size_t count) {
  return {records.begin() + static_cast<std::ptrdiff_t>(from),
          records.begin() + static_cast<std::ptrdiff_t>(from + count)};
}

std::size_t settled(const Delivered& delivered) {
  return delivered.count(OutcomeKind::delivered) + delivered.count(OutcomeKind::duplicate);
}

TEST(ArchiveTarget, OneSyncAWindow_AndSegmentsAreRotated) {
  ArchiveDisk disk;
  ArchiveTarget archive = disk.target();
  const auto records = some_records(30);
  ASSERT_EQ(deliver(archive, part_of(records, 0, 3)).count(OutcomeKind::delivered), 3u);
  const std::uint64_t syncs = disk.fs().counts().file_syncs;
  ASSERT_EQ(deliver(archive, part_of(records, 3, 1)).count(OutcomeKind::delivered), 1u);
  EXPECT_EQ(disk.fs().counts().file_syncs, syncs + 1);
  for (std::size_t n = 4; n < 30; n += 2) {
    ASSERT_EQ(deliver(archive, part_of(records, n, 2)).count(OutcomeKind::delivered), 2u);
  }
  EXPECT_GT(disk.segments().size(), 3u);
  EXPECT_EQ(disk.lines(), one_to(30));
}

TEST(ArchiveTarget, RotatesByAge_ButNotAnEmptyOne) {
  ArchiveDisk disk;
  ArchiveTarget archive = disk.target(1u << 30);
  const auto records = some_records(3);
  ASSERT_TRUE(deliver(archive, part_of(records, 0, 1)).result.ok());
  disk.clock.advance(std::chrono::minutes(59));
  ASSERT_TRUE(deliver(archive, part_of(records, 1, 1)).result.ok());
  EXPECT_EQ(disk.segments().size(), 1u);
  disk.clock.advance(std::chrono::minutes(2));
  ASSERT_TRUE(deliver(archive, part_of(records, 2, 1)).result.ok());
  EXPECT_EQ(disk.segments(), (std::vector<std::string>{std::string(kFirst), std::string(kSecond)}));
  EXPECT_TRUE(disk.fs().there(std::string(kFirstKeys)));
}

TEST(ArchiveTarget, OldRecordsInAnyOrder_ByAnyLaterProcess_AreDuplicates) {
  ArchiveDisk disk;
  auto records = some_records(40);
  for (std::size_t n = 0; n < 40; n += 4) {
    ArchiveTarget archive = disk.target();
    ASSERT_EQ(deliver(archive, part_of(records, n, 4)).count(OutcomeKind::delivered), 4u);
  }
  ASSERT_GT(disk.segments().size(), 4u);
  std::reverse(records.begin(), records.end());
  ArchiveTarget later = disk.target();
  EXPECT_EQ(deliver(later, records).count(OutcomeKind::duplicate), 40u);
  EXPECT_EQ(disk.lines(), one_to(40));
  DueRecord other = made_record(2, "something else");
  const Delivered refused = deliver(later, {other});
  ASSERT_EQ(refused.kinds(), (Kinds{OutcomeKind::rejected}));
  EXPECT_EQ(refused.outcomes[0]->reason, Reason::exists_otherwise);
}

TEST(ArchiveTarget, TheSameRecordTwiceInAWindow_IsOneLine) {
  ArchiveDisk disk;
  ArchiveTarget archive = disk.target();
  EXPECT_EQ(deliver(archive, {made_record(1, "a"), made_record(1, "a"), made_record(1, "b")}).kinds(),
            (Kinds{OutcomeKind::delivered, OutcomeKind::duplicate, OutcomeKind::rejected}));
  EXPECT_EQ(disk.lines(), one_to(1));
}

TEST(ArchiveTarget, ClosedSegmentsThatWereMovedAway_AreStillKnownByTheirKeys) {
  ArchiveDisk disk;
  ArchiveTarget archive = disk.target();
  const auto records = some_records(20);
  for (std::size_t n = 0; n < 20; n += 4) ASSERT_TRUE(deliver(archive, part_of(records, n, 4)).result.ok());
  disk.fs().erase(std::string(kFirst));
  ArchiveTarget later = disk.target();
  EXPECT_EQ(deliver(later, records).count(OutcomeKind::duplicate), 20u);
  disk.fs().erase(std::string(kFirstKeys));
  EXPECT_GT(deliver(later, records).count(OutcomeKind::delivered), 0u);
}

TEST(ArchiveTarget, KeysThatAreTornOrMissing_AreMadeAgainFromTheirSegment) {
  for (const bool missing : {true, false}) {
    ArchiveDisk disk;
    const auto records = some_records(20);
    {
      ArchiveTarget archive = disk.target();
      for (std::size_t n = 0; n < 20; n += 4) ASSERT_TRUE(deliver(archive, part_of(records, n, 4)).result.ok());
    }
    const Bytes before = disk.fs().bytes(std::string(kFirstKeys));
    if (missing) {
      disk.fs().erase(std::string(kFirstKeys));
    } else {
      disk.fs().cut_to(std::string(kFirstKeys), 50);
    }
    ArchiveTarget later = disk.target();
    EXPECT_EQ(deliver(later, records).count(OutcomeKind::duplicate), 20u);
    EXPECT_EQ(disk.fs().bytes(std::string(kFirstKeys)), before);
    EXPECT_EQ(disk.lines(), one_to(20));
  }
}

// The open segment is taken away, or the medium is another one.
TEST(ArchiveTarget, WhatIsNotAsItWasLeft_IsRecovered) {
  ArchiveDisk disk;
  ArchiveTarget archive = disk.target();
  ASSERT_TRUE(deliver(archive, {made_record(1, "a"), made_record(2, "b")}).result.ok());
  disk.fs().erase(std::string(kFirst));
  EXPECT_EQ(deliver(archive, {made_record(3, "c")}).kinds(), (Kinds{OutcomeKind::delivered}));
  EXPECT_EQ(disk.lines(), (std::multiset<std::uint64_t>{3}));
}

// Lines in front of each window never change, and what was reported is there, once, whatever the cut left.
void cut_at_every_step(bool direct_reads) {
  const auto records = some_records(12);
  for (std::uint64_t step = 1;; ++step) {
    for (const Loss loss : {Loss::random, Loss::drop_all, Loss::keep_all, Loss::keep_names, Loss::keep_names_and_sizes,
                            Loss::keep_bytes}) {
      SCOPED_TRACE("step " + std::to_string(step) + ", loss " + std::to_string(static_cast<int>(loss)));
      ArchiveDisk disk(step);
      disk.fs().set_direct_reads(direct_reads);
      ArchiveTarget before = disk.target();
      disk.fs().fail_at(step, {.kind = FaultKind::power_cut});
      std::set<std::uint64_t> reported;
      for (std::size_t n = 0; n < 12; n += 3) {
        const auto part = part_of(records, n, 3);
        const Delivered delivered = deliver(before, part);
        for (std::size_t place = 0; place < part.size(); ++place) {
          if (is_accepted(delivered.outcomes[place])) reported.insert(part[place].sequence);
        }
      }
      if (!disk.fs().power_is_off()) {  // the deliveries have fewer steps
        EXPECT_EQ(reported.size(), 12u);
        return;
      }
      disk.fs().lose_power(loss);
      ArchiveTarget after = disk.target();
      const Delivered again = deliver(after, records);
      ASSERT_TRUE(again.result.ok()) << again.result.error().text;
      EXPECT_EQ(settled(again), 12u);
      for (std::size_t place = 0; place < records.size(); ++place) {
        if (!reported.contains(records[place].sequence)) continue;
        EXPECT_EQ(again.outcomes[place]->kind, OutcomeKind::duplicate) << "what was delivered is gone";
      }
      disk.fs().lose_power(Loss::drop_all);
      EXPECT_EQ(disk.lines(), one_to(12));
    }
  }
}

TEST(ArchiveTarget, PowerCutAtEveryStep_EveryRecordOnce) {
  cut_at_every_step(true);
}

TEST(ArchiveTarget, PowerCutAtEveryStep_WithoutDirectReads_EveryRecordOnce) {
  cut_at_every_step(false);
}

TEST(ArchiveTarget, EveryCallFailsOnce_ThenEveryRecordIsThereOnce_ForGood) {
  const auto records = some_records(12);
  for (const bool direct : {true, false}) {
    for (const FaultKind kind : {FaultKind::io, FaultKind::full, FaultKind::unavailable, FaultKind::short_write}) {
      for (std::uint64_t step = 1; step < 300; ++step) {
        SCOPED_TRACE("step " + std::to_string(step) + ", fault " + std::to_string(static_cast<int>(kind)));
        ArchiveDisk disk(step);
        disk.fs().set_direct_reads(direct);
        ArchiveTarget archive = disk.target();
        disk.fs().fail_at(step, {.kind = kind, .partly = step % 2 == 0});
        for (int round = 0; round < 3; ++round) {
          for (std::size_t n = 0; n < 12; n += 3) {
            const Delivered delivered = deliver(archive, part_of(records, n, 3));
            EXPECT_EQ(delivered.count(OutcomeKind::rejected), 0u);
            EXPECT_TRUE(round < 2 || settled(delivered) == 3);
          }
        }
        disk.fs().lose_power(Loss::drop_all);
        EXPECT_EQ(disk.lines(), one_to(12));
        if (disk.fs().counts().struck == 0) break;
      }
    }
  }
}

// The process dies after a sync that failed: the cache shows lines that the medium never got.
TEST(ArchiveTarget, AfterAFailedSync_ALaterLifeDoesNotBelieveTheCache) {
  for (const bool direct : {true, false}) {
    ArchiveDisk disk;
    disk.fs().set_direct_reads(direct);
    const auto records = some_records(6);
    {
      ArchiveTarget archive = disk.target();
      ASSERT_TRUE(deliver(archive, part_of(records, 0, 3)).result.ok());
      disk.fs().observe([&](std::uint64_t step, std::string_view verb, std::string_view) {
        if (verb == "sync") disk.fs().fail_at(step, {.kind = FaultKind::io});
      });
      ASSERT_FALSE(deliver(archive, part_of(records, 3, 3)).result.ok());
      disk.fs().observe(nullptr);
    }
    ArchiveTarget later = disk.target();
    EXPECT_EQ(settled(deliver(later, records)), 6u);
    disk.fs().lose_power(Loss::drop_all);
    EXPECT_EQ(disk.lines(), one_to(6));
  }
}

// Rot in the middle of what was synced: it stays, and no line behind it is touched.
TEST(ArchiveTarget, RotBeforeALaterWindow_StaysAsItIs_AndTheLinesAroundItAreKnown) {
  ArchiveDisk disk;
  const auto records = some_records(3);
  {
    ArchiveTarget archive = disk.target(1u << 30);
    for (std::size_t n = 0; n < 3; ++n) ASSERT_TRUE(deliver(archive, part_of(records, n, 1)).result.ok());
  }
  const std::string first(kFirst);
  disk.fs().flip(first, make_archive_line(records[0], "msg:1", 0).bytes.size() + 20);
  const Bytes rotten = disk.fs().bytes(first);
  ArchiveTarget later = disk.target(1u << 30);
  EXPECT_EQ(deliver(later, records).kinds(),
            (Kinds{OutcomeKind::duplicate, OutcomeKind::delivered, OutcomeKind::duplicate}));
  const Bytes after = disk.fs().bytes(first);
  ASSERT_GT(after.size(), rotten.size());
  EXPECT_TRUE(std::equal(rotten.begin(), rotten.end(), after.begin()));
}

// It cannot be told from a torn window: it is cut off, and kept beside.
TEST(ArchiveTarget, DamageInTheLastWindow_IsCutOff_AndWhatIsWholeBehindItIsKeptBeside) {
  ArchiveDisk disk;
  const auto records = some_records(3);
  {
    ArchiveTarget archive = disk.target(1u << 30);
    ASSERT_TRUE(deliver(archive, records).result.ok());
  }
  const std::string first(kFirst);
  const Bytes before = disk.fs().bytes(first);
  const std::uint64_t second_line = make_archive_line(records[0], "msg:1", 0).bytes.size();
  disk.fs().flip(first, second_line + 20);
  ArchiveTarget later = disk.target(1u << 30);
  EXPECT_EQ(deliver(later, records).kinds(),
            (Kinds{OutcomeKind::duplicate, OutcomeKind::delivered, OutcomeKind::delivered}));
  EXPECT_EQ(disk.lines(), one_to(3));
  const Bytes aside = disk.fs().bytes(first + ".torn-" + std::to_string(second_line));
  EXPECT_EQ(aside.size(), before.size() - second_line);
}

TEST(ArchiveTarget, DiskFull_WhatFittedIsDelivered_AndTheRestWhenThereIsRoom) {
  ArchiveDisk disk;
  std::vector<DueRecord> records;
  for (std::uint64_t n = 1; n <= 8; ++n) records.push_back(made_record(n, std::string(500'000, 'x')));
  disk.fs().set_capacity(600 * 4096, 100);
  ArchiveTarget archive = disk.target(1u << 30);
  const Delivered some = deliver(archive, records);
  ASSERT_TRUE(some.result.ok()) << some.result.error().text;
  EXPECT_GT(some.count(OutcomeKind::delivered), 0u);
  EXPECT_GT(some.count(OutcomeKind::retry), 0u);
  EXPECT_EQ(some.kinds().size(), 8u);
  EXPECT_STREQ(some.outcomes[7]->state, "disk_full");
  disk.fs().set_capacity(6000 * 4096, 100);
  EXPECT_EQ(settled(deliver(archive, records)), 8u);
  EXPECT_EQ(disk.lines(), one_to(8));
}

TEST(ArchiveTarget, Interrupted_EndsBetweenTwoRecords) {
  ArchiveDisk disk;
  ArchiveTarget archive = disk.target();
  archive.interrupt();
  EXPECT_FALSE(deliver(archive, some_records(5)).result.ok());
  EXPECT_EQ(settled(deliver(archive, some_records(5))), 5u);
  EXPECT_EQ(disk.lines(), one_to(5));
}

}  // namespace
}  // namespace holdfast
