// Where two rules of INVARIANTS.md meet: what one of them alone would not show, neither in its own test nor in the cuts
// at every step.

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "tests/support/faulty_file_system.h"
#include "tests/support/patience.h"
#include "tests/support/spool_world.h"

namespace holdfast {
namespace {

std::vector<std::string> record_paths(const SimulatedFileSystem& fs) {
  std::vector<std::string> paths;
  for (const auto& path : fs.files()) {
    if (path.starts_with("records/")) paths.push_back(path);
  }
  return paths;
}

std::size_t due_count(SpoolWorld& world, TargetNumber target) {
  DueCursor cursor;
  auto due = world.spool->due(target, Drain::fifo, cursor, 10'000, 64u << 20);
  EXPECT_TRUE(due.ok());
  return due.ok() ? due->size() : 0;
}

// The process went between the write and the sync, the machine did not: what is read is in the page cache, and not yet
// on the medium. A source that sends the same again hears "duplicate", and never sends it a third time.
TEST(SpoolEdges, WrittenAndNotSyncedByAnEarlierLife_IsSyncedBeforeItIsBelieved) {
  for (const Loss loss : {Loss::drop_all, Loss::keep_all}) {
    SpoolWorld world;
    ASSERT_TRUE(world.open());
    ASSERT_TRUE(world.put(1, 2));
    world.fs.fail_next({FaultKind::short_write, false, false});
    EXPECT_FALSE(world.put(3, 20));
    world.forget();
    world.fs.clear_faults();
    world.fs.restart_without_power_loss();
    ASSERT_TRUE(world.open()) << world.last_error;
    // Only what was half written before: nothing else is synced in the journal.
    auto again = world.spool->put_batch(std::vector<Arrival>{world.message(3)});
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->front().kind, VerdictKind::duplicate);
    world.acknowledged.insert(3);
    world.forget();
    world.fs.lose_power(loss);
    ASSERT_TRUE(world.open()) << world.last_error;
    EXPECT_EQ(world.spool->audit()->taken, due_count(world, world.hub));
    world.expect_promises("an earlier life's pages");
  }
}

// Small and large messages in one batch go to journal and files in turn. A reader that looks in between must never see
// the later first: its cursor would have passed the earlier one for good.
TEST(SpoolEdges, JournalAndFilesInOneBatch_BecomeDueInTheirOrder) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 1));
  DueCursor cursor;
  std::vector<std::uint64_t> seen;
  const auto look = [&] {
    auto due = world.spool->due(world.hub, Drain::fifo, cursor, 100, 64u << 20);
    ASSERT_TRUE(due.ok());
    for (const DueRecord& record : *due) seen.push_back(message_number(record.envelope));
  };
  for (const bool small_first : {true, false}) {
    std::vector<Arrival> arrivals;
    const std::uint64_t first = small_first ? 2 : 7;
    for (std::uint64_t number = first; number < first + 5; ++number) {
      arrivals.push_back(world.message(number));
      if ((number - first) % 2 == (small_first ? 1 : 0)) arrivals.back().envelope.payload.resize(30'000, 'y');
    }
    // The index is not in use where these two begin.
    world.fs.observe([&](std::uint64_t, std::string_view verb, std::string_view path) {
      if (verb == "sync_all" || (verb == "sync" && path.starts_with("journal/"))) look();
    });
    ASSERT_TRUE(world.spool->put_batch(arrivals).ok());
    world.fs.observe({});
  }
  look();
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
}

// A tombstone outlives the put in the journal, not only the file: recovery reads the put again.
TEST(SpoolEdges, DeliveredFromItsFile_WhileTheJournalHasThePut_IsNotDeliveredAgain) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 4));
  world.clock.advance(std::chrono::seconds(2));
  ASSERT_TRUE(world.settle_down());
  ASSERT_EQ(record_paths(world.fs).size(), 4u);
  ASSERT_EQ(world.deliver(world.hub), 4);
  ASSERT_TRUE(world.settle_down());
  // The next flush syncs the unlinks.
  ASSERT_TRUE(world.put(5, 2));
  world.clock.advance(std::chrono::seconds(2));
  ASSERT_TRUE(world.settle_down());
  world.forget();
  world.fs.lose_power(Loss::keep_all);
  ASSERT_TRUE(world.open()) << world.last_error;
  EXPECT_EQ(due_count(world, world.hub), 2u);
  world.expect_promises("delivered from files");
}

// The journal tells who a record was for, its row who still waits: writing the file again must not ask the journal.
TEST(SpoolEdges, FileWrittenAgain_KeepsWhatItsRowSaysOfEachTarget) {
  SpoolWorld world;
  world.two_targets = true;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 4));
  world.clock.advance(std::chrono::seconds(2));
  ASSERT_TRUE(world.settle_down());
  ASSERT_EQ(world.deliver(world.hub), 4);
  ASSERT_TRUE(world.settle_down());
  world.forget();
  world.fs.lose_power(Loss::keep_all);
  ASSERT_TRUE(world.open()) << world.last_error;
  ASSERT_TRUE(world.close()) << world.last_error;  // the segment goes, so the files are written again before
  ASSERT_TRUE(world.open()) << world.last_error;
  EXPECT_EQ(due_count(world, world.hub), 0u);
  EXPECT_EQ(due_count(world, world.shore), 4u);
  world.expect_promises("files written again");
}

// The block that took the segment into use has rotted: the segment is not free for that.
TEST(SpoolEdges, FirstBlockOfASegmentRotten_TheBatchesBehindItLive) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 5));
  ASSERT_TRUE(world.put(6, 5));
  world.forget();
  world.fs.flip("journal/0.seg", 8);
  world.fs.lose_power(Loss::drop_all);
  ASSERT_TRUE(world.open()) << world.last_error;
  EXPECT_EQ(due_count(world, world.hub), 10u);
  EXPECT_FALSE(world.spool->status().notices.empty());
  world.expect_promises("a rotten first block");
}

// A commit writes into blocks that are there. When that fails for "no room", as on a disk that promised more than it
// has, the segment's state is as unknown as after any other error.
TEST(SpoolEdges, NoRoomInsideASegment_IsTheEndOfTheLife) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 2));
  world.forget();
  bool no_room = false;
  FaultyFileSystem faulty(world.fs, [&](std::string_view verb, std::string_view path) -> std::optional<Error> {
    if (!no_room || verb != "write" || !path.starts_with("journal/")) return std::nullopt;
    return Error{ErrorKind::full, "no space left"};
  });
  auto opened = Spool::open(faulty, world.clock, world.options, world.key);
  ASSERT_TRUE(opened.ok());
  ASSERT_TRUE((*opened)->put_batch(std::vector<Arrival>{world.message(3)}).ok());
  no_room = true;
  auto verdicts = (*opened)->put_batch(std::vector<Arrival>{world.message(4)});
  ASSERT_FALSE(verdicts.ok());
  EXPECT_EQ(verdicts.error().kind, ErrorKind::io);
  no_room = false;
  EXPECT_FALSE((*opened)->put_batch(std::vector<Arrival>{world.message(5)}).ok());
  opened->reset();
  world.fs.lose_power(Loss::drop_all);
  ASSERT_TRUE(world.open()) << world.last_error;
  world.acknowledged.insert(3);
  EXPECT_EQ(due_count(world, world.hub), 3u);
  world.expect_promises("no room inside a segment");
}

// Its row says that it has a file; what is under the name is not the record. The journal still has it, until it is told
// to forget.
TEST(SpoolEdges, FileOfZeros_WhileTheJournalHasThePut_IsWrittenAgain) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 3));
  world.clock.advance(std::chrono::seconds(2));
  ASSERT_TRUE(world.settle_down());
  world.forget();
  world.fs.lose_power(Loss::keep_all);
  const std::string path = record_paths(world.fs).at(1);
  const Bytes whole = world.fs.bytes(path);
  world.fs.overwrite(path, 0, Bytes(whole.size()));
  ASSERT_TRUE(world.open()) << world.last_error;
  ASSERT_TRUE(world.close()) << world.last_error;  // the segment goes
  EXPECT_EQ(world.fs.bytes(path), whole);
  ASSERT_TRUE(world.open());
  EXPECT_EQ(due_count(world, world.hub), 3u);
  world.expect_promises("a file of zeros");
}

TEST(SpoolEdges, SettledWhileItsRowIsWritten_LeavesOnce) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 3));
  DueCursor cursor;
  auto due = world.spool->due(world.hub, Drain::fifo, cursor, 1, 1u << 20);
  ASSERT_EQ(due->size(), 1u);
  bool synced = false, settled = false;
  world.fs.observe([&](std::uint64_t, std::string_view verb, std::string_view path) {
    synced = synced || verb == "sync_all";
    if (settled || !synced || !path.starts_with("index.sqlite3")) return;
    settled = true;  // what the row says was decided before
    const std::vector<Settlement> one{{due->front().sequence, Fate::delivered, Reason::none, {}}};
    ASSERT_TRUE(world.spool->settle(world.hub, one).ok());
    world.delivered[1].insert(world.hub);
  });
  world.clock.advance(std::chrono::seconds(2));
  ASSERT_TRUE(world.settle_down());
  ASSERT_TRUE(settled);
  world.fs.observe({});
  ASSERT_TRUE(world.settle_down());
  EXPECT_EQ(due_count(world, world.hub), 2u);
  EXPECT_EQ(record_paths(world.fs).size(), 2u);
  EXPECT_EQ(world.spool->status().totals.delivered, 1u);
  world.expect_promises("settled while its row was written");
}

// Once its tombstone is forgotten, nothing could tell a file that a cut brings back from one that was never delivered.
TEST(SpoolEdges, TombstoneForgotten_TheUnlinkIsOnTheMedium) {
  for (const SyncMode mode : {SyncMode::automatic, SyncMode::files}) {
    SpoolWorld world;
    world.options.sync = mode;
    ASSERT_TRUE(world.open());
    ASSERT_TRUE(world.put(1, 4));
    ASSERT_TRUE(world.close()) << world.last_error;  // all in files, nothing in the journal
    ASSERT_TRUE(world.open());
    ASSERT_TRUE(world.settle_down());
    ASSERT_EQ(world.deliver(world.hub), 4);
    ASSERT_TRUE(world.close()) << world.last_error;
    world.fs.lose_power(Loss::keep_bytes);  // a removed name is back, unless its directory was synced
    EXPECT_TRUE(record_paths(world.fs).empty());
    ASSERT_TRUE(world.open());
    ASSERT_TRUE(world.settle_down());
    EXPECT_EQ(due_count(world, world.hub), 0u);
    world.expect_promises("tombstones forgotten");
  }
}

// Where one sync does not stand for all, each file has its own: large ones before their verdict, the others before the
// journal forgets them.
TEST(SpoolEdges, FileByFile_EachFileIsOnTheMedium) {
  SpoolWorld world;
  world.options.sync = SyncMode::files;
  ASSERT_TRUE(world.open());
  std::vector<Arrival> arrivals{world.message(1), world.message(2)};
  arrivals[1].envelope.payload.resize(30'000, 'y');
  ASSERT_TRUE(world.spool->put_batch(arrivals).ok());
  world.acknowledged = {1, 2};
  std::unique_ptr<SimulatedFileSystem> at_once = world.fs.copy();
  at_once->lose_power(Loss::drop_all);
  const auto large = record_paths(*at_once);
  ASSERT_EQ(large.size(), 1u);
  EXPECT_EQ(at_once->bytes(large[0]), world.fs.bytes(large[0]));
  ASSERT_TRUE(world.close()) << world.last_error;
  world.fs.lose_power(Loss::drop_all);
  ASSERT_TRUE(world.open()) << world.last_error;
  EXPECT_EQ(due_count(world, world.hub), 2u);
  world.expect_promises("file by file");
}

TEST(SpoolEdges, SyncFailsInTheMiddleOfAGroup_NothingIsSyncedAfterIt) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 40));
  bool failed = false;
  world.fs.observe([&](std::uint64_t, std::string_view verb, std::string_view path) {
    if (failed || verb != "write" || !path.starts_with("journal/")) return;
    failed = true;  // the sync behind this write
    world.fs.fail_next({FaultKind::io, false, false});
  });
  EXPECT_FALSE(world.put(41, 120)) << "more than the rest of the segment: it is appended in pieces";
  EXPECT_TRUE(failed);
  world.fs.observe({});
  EXPECT_EQ(world.fs.counts().syncs_after_failure, 0u);
  world.forget();
  world.fs.clear_faults();
  world.fs.lose_power(Loss::drop_all);
  ASSERT_TRUE(world.open()) << world.last_error;
  EXPECT_EQ(due_count(world, world.hub), 40u);
}

// The thread waits for something: here, for its turn to commit.
bool sleeps(pid_t thread) {
  std::ifstream stat("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string number, name, state;
  stat >> number >> name >> state;
  return state == "S";
}

// Two sources queue up behind one commit, in this order, and are committed together; there is no room for the first row
// of a file.
struct Told {
  bool first_taken = true, second_taken = false;
};
Told no_room_for_the_first_file(SpoolWorld& world, const std::vector<Arrival>& first,
                                const std::vector<Arrival>& second) {
  std::thread first_source, second_source;
  std::atomic<pid_t> first_thread{0}, second_thread{0};
  Told told;
  bool struck = false;
  world.fs.observe([&](std::uint64_t, std::string_view verb, std::string_view path) {
    if (verb == "sync" && path.starts_with("journal/") && !first_source.joinable()) {
      first_source = std::thread([&] {
        first_thread = ::gettid();
        told.first_taken = world.spool->put_batch(first).ok();
      });
      EXPECT_TRUE(eventually([&] { return sleeps(first_thread); }));
      second_source = std::thread([&] {
        second_thread = ::gettid();
        told.second_taken = world.spool->put_batch(second).ok();
      });
      EXPECT_TRUE(eventually([&] { return sleeps(second_thread); }));
    }
    if (verb == "sync_all" && !struck) {
      struck = true;
      world.fs.fail_next({FaultKind::full, false, false});
    }
  });
  EXPECT_TRUE(world.put(1, 1));
  first_source.join();
  second_source.join();
  world.fs.observe({});
  world.fs.clear_faults();
  EXPECT_TRUE(struck);
  return told;
}

Arrival large_message(const SpoolWorld& world, std::uint64_t number) {
  Arrival arrival = world.message(number);
  arrival.envelope.payload.resize(30'000, 'y');
  return arrival;
}

// The file of the first goes again; there is room for the second.
TEST(SpoolEdges, RepeatOfARecordThatHadNoRoom_IsNotADuplicate) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.settle_down());
  const Told told =
      no_room_for_the_first_file(world, {large_message(world, 2), world.message(3)}, {large_message(world, 2)});
  EXPECT_FALSE(told.first_taken);
  if (told.second_taken) world.acknowledged.insert(2);
  EXPECT_EQ(world.spool->audit()->taken, told.second_taken ? 2u : 1u);
  world.expect_promises("a repeat of what had no room");
}

TEST(SpoolEdges, NoRoomForTheRecordOfOneSource_IsToldToThatOne) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.settle_down());
  const Told told = no_room_for_the_first_file(world, {large_message(world, 2)}, {world.message(3)});
  EXPECT_FALSE(told.first_taken);
  if (told.first_taken) world.acknowledged.insert(2);
  if (told.second_taken) world.acknowledged.insert(3);
  EXPECT_EQ(world.spool->audit()->taken, told.second_taken ? 2u : 1u);
  world.expect_promises("no room for one of two");
}

// The file is unlinked, the power goes: by then the index must know of the setting aside for good, or the quarantine
// file would be taken for one that did not come to its end.
TEST(SpoolEdges, SetAsideFromItsFile_AndCut_IsInQuarantine) {
  for (const Loss loss : {Loss::keep_names, Loss::drop_all, Loss::keep_all}) {
    SpoolWorld world;
    ASSERT_TRUE(world.open());
    ASSERT_TRUE(world.put(1, 2));
    ASSERT_TRUE(world.close()) << world.last_error;  // in files only
    ASSERT_TRUE(world.open());
    ASSERT_TRUE(world.settle_down());
    ASSERT_EQ(world.deliver(world.hub, 1, Fate::rejected), 1);
    ASSERT_TRUE(world.maintain());
    world.forget();
    world.fs.lose_power(loss);
    ASSERT_TRUE(world.open()) << world.last_error;
    ASSERT_TRUE(world.settle_down());
    EXPECT_EQ(world.spool->list_quarantine(0, 10)->size(), 1u);
    EXPECT_EQ(due_count(world, world.hub), 1u);
    world.expect_promises("set aside and cut");
  }
}

// All that is left of the later lives is the base up to which segments were given back: new ones must lie above it.
TEST(SpoolEdges, OlderManifest_AndNothingLeft_NewCommitsAreFoundAgain) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  const Bytes copies[2] = {world.fs.bytes("manifest.0"), world.fs.bytes("manifest.1")};
  ASSERT_TRUE(world.close());
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 5));
  ASSERT_EQ(world.deliver(world.hub), 5);
  ASSERT_TRUE(world.close());
  world.fs.plant("manifest.0", copies[0]);
  world.fs.plant("manifest.1", copies[1]);
  ASSERT_TRUE(world.open()) << world.last_error;
  ASSERT_TRUE(world.put(6, 3));
  world.forget();
  world.fs.lose_power(Loss::drop_all);
  ASSERT_TRUE(world.open()) << world.last_error;
  EXPECT_EQ(due_count(world, world.hub), 3u);
  world.expect_promises("an older manifest, nothing left");
}

TEST(SpoolEdges, OlderManifest_AndRecordsInTheJournal_DoesNotRepeatSequences) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  const Bytes copies[2] = {world.fs.bytes("manifest.0"), world.fs.bytes("manifest.1")};
  ASSERT_TRUE(world.close());
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 5));
  const Sequence given = world.spool->status().next_sequence;
  world.forget();
  world.fs.lose_power(Loss::keep_all);
  world.fs.plant("manifest.0", copies[0]);
  world.fs.plant("manifest.1", copies[1]);
  ASSERT_TRUE(world.open()) << world.last_error;
  auto verdicts = world.spool->put_batch(std::vector<Arrival>{world.message(6)});
  ASSERT_TRUE(verdicts.ok());
  EXPECT_GE(verdicts->front().sequence, given);
  world.acknowledged.insert(6);
  world.expect_promises("an older manifest and a journal");
}

// Nothing but the files knew how far sequences had come, and they are looked at while new ones are given.
TEST(SpoolEdges, OlderManifestAndNoIndex_FilesOfTheSameSequencesAreDeliveredLater) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  const Bytes copies[2] = {world.fs.bytes("manifest.0"), world.fs.bytes("manifest.1")};
  ASSERT_TRUE(world.close());
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 5));
  ASSERT_TRUE(world.close());
  world.fs.plant("manifest.0", copies[0]);
  world.fs.plant("manifest.1", copies[1]);
  world.fs.erase("index.sqlite3");
  world.fs.erase("journal");
  ASSERT_TRUE(world.open()) << world.last_error;
  ASSERT_TRUE(world.put(6, 5)) << world.last_error;
  ASSERT_TRUE(world.settle_down());
  EXPECT_EQ(record_paths(world.fs).size(), 5u) << "another record of the same sequence is no reason to remove one";
  EXPECT_FALSE(world.spool->status().notices.empty());
  while (world.deliver(world.hub) > 0) {
  }
  ASSERT_TRUE(world.close()) << world.last_error;
  ASSERT_TRUE(world.open()) << world.last_error;
  world.expect_promises("an older manifest and no index");
}

TEST(SpoolEdges, DoneInTheJournal_IsForTheTargetThatSaidIt) {
  SpoolWorld world;
  world.two_targets = true;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 5));
  ASSERT_EQ(world.deliver(world.shore, 3), 3);  // the second place of the route
  ASSERT_EQ(world.deliver(world.hub, 1), 1);
  world.clock.advance(std::chrono::milliseconds(300));
  ASSERT_TRUE(world.maintain());
  world.forget();
  world.fs.lose_power(Loss::drop_all);
  ASSERT_TRUE(world.open()) << world.last_error;
  EXPECT_EQ(due_count(world, world.hub), 4u);
  EXPECT_EQ(due_count(world, world.shore), 2u);
  world.expect_promises("done of two targets");
}

TEST(SpoolEdges, UnlinkUndoneByAPowerLoss_AfterTheJournalForgot_IsFinished) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 4));
  ASSERT_TRUE(world.close()) << world.last_error;  // in files only
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.settle_down());
  ASSERT_EQ(world.deliver(world.hub), 4);
  ASSERT_TRUE(world.maintain());
  world.forget();
  world.fs.lose_power(Loss::keep_bytes);  // a removed name is back
  ASSERT_EQ(record_paths(world.fs).size(), 4u);
  ASSERT_TRUE(world.open()) << world.last_error;
  ASSERT_TRUE(world.settle_down());
  EXPECT_EQ(due_count(world, world.hub), 0u);
  EXPECT_TRUE(record_paths(world.fs).empty());
  world.expect_promises("unlinks undone, without the journal");
}

TEST(SpoolEdges, FileGone_WhileTheJournalHasThePut_IsNoLoss) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 3));
  world.clock.advance(std::chrono::seconds(2));
  ASSERT_TRUE(world.settle_down());
  world.forget();
  world.fs.lose_power(Loss::keep_all);
  world.fs.erase(record_paths(world.fs).at(1));
  ASSERT_TRUE(world.open()) << world.last_error;
  ASSERT_TRUE(world.settle_down());
  EXPECT_EQ(world.spool->status().totals.lost, 0u);
  ASSERT_TRUE(world.close()) << world.last_error;
  ASSERT_TRUE(world.open()) << world.last_error;
  EXPECT_EQ(due_count(world, world.hub), 3u);
  world.expect_promises("a file that is gone");
}

// With the verdict the row is durable, not only the file: the file alone does not tell which place in its stream the
// message had.
TEST(SpoolEdges, LargeRecord_ItsPlaceInTheStreamOutlivesACut) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  std::vector<Arrival> arrivals{world.message(1)};
  arrivals[0].envelope.payload.resize(30'000, 'y');
  ASSERT_TRUE(world.spool->put_batch(arrivals).ok());
  world.acknowledged.insert(1);
  world.forget();
  world.fs.lose_power(Loss::drop_all);
  ASSERT_TRUE(world.open()) << world.last_error;
  auto last = world.spool->last_position("TELEMETRY", 100);
  ASSERT_TRUE(last.ok());
  ASSERT_TRUE(last->has_value());
  EXPECT_EQ((*last)->sequence, 1u);
  world.expect_promises("a large record");
}

// A file that was found without its row, delivered, and sent again by its source: it is known by then.
TEST(SpoolEdges, FoundWithoutItsRow_IsRememberedAfterItLeft) {
  for (const bool by_place : {false, true}) {
    SpoolWorld world;
    ASSERT_TRUE(world.open());
    std::vector<Arrival> arrivals{world.message(1), world.message(2), world.message(3)};
    for (Arrival& arrival : arrivals) {
      if (!by_place) arrival.identity = {"msg:" + std::to_string(arrival.envelope.origin.sequence), false};
    }
    ASSERT_TRUE(world.spool->put_batch(arrivals).ok());
    ASSERT_TRUE(world.close()) << world.last_error;
    world.fs.erase("index.sqlite3");
    world.fs.erase("index.sqlite3-wal");
    world.fs.erase("journal");
    ASSERT_TRUE(world.open()) << world.last_error;
    ASSERT_TRUE(world.settle_down());
    ASSERT_EQ(world.deliver(world.hub), 3);
    ASSERT_TRUE(world.settle_down());
    ASSERT_TRUE(world.spool->put_batch(arrivals).ok());
    EXPECT_EQ(due_count(world, world.hub), 0u) << by_place;
    world.expect_promises("found without rows");
  }
}

// The same conflicting message, before and after a restart, is kept once.
TEST(SpoolEdges, ConflictRepeatedInALaterLife_IsKeptOnce) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 1));
  for (int life = 0; life < 3; ++life) {
    ASSERT_TRUE(world.spool->put_batch(std::vector<Arrival>{world.message(1, "other")}).ok());
    EXPECT_EQ(world.spool->list_quarantine(0, 10)->size(), 1u) << life;
    ASSERT_TRUE(world.close()) << world.last_error;
    ASSERT_TRUE(world.open()) << world.last_error;
  }
  EXPECT_EQ(world.spool->audit()->taken, 2u);
}

// Delivered from its file and not yet told to the index: nobody gets it a second time meanwhile.
TEST(SpoolEdges, SettledInItsFile_IsNotDueBeforeTheIndexKnows) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 3));
  world.clock.advance(std::chrono::seconds(2));
  ASSERT_TRUE(world.settle_down());
  ASSERT_EQ(world.deliver(world.hub, 2), 2);
  EXPECT_EQ(due_count(world, world.hub), 1u);
  ASSERT_TRUE(world.maintain());
  EXPECT_EQ(due_count(world, world.hub), 1u);
}

// What was damaged is counted with its own segment, not with each that goes after it.
TEST(SpoolEdges, RotInOneOfManySegments_IsCountedOnce) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 40));
  ASSERT_TRUE(world.put(41, 120));
  world.forget();
  world.fs.flip("journal/0.seg", 4096 + 128 + 2 * 697 + 300);
  world.fs.lose_power(Loss::drop_all);
  ASSERT_TRUE(world.open()) << world.last_error;
  EXPECT_EQ(world.spool->status().totals.lost, 1u);
  world.may_be_missing = {3};
  world.expect_promises("rot in one of many segments");
}

// A message with a place in its stream is looked up by that: so it has to be remembered, although it was refused.
TEST(SpoolEdges, TooLargeAndSentAgain_IsKeptOnce) {
  SpoolWorld world;
  world.options.limits.max_record_bytes = 20'000;
  ASSERT_TRUE(world.open());
  std::vector<Arrival> arrivals{world.message(1)};
  arrivals[0].envelope.payload.resize(30'000, 'y');
  for (const VerdictKind kind : {VerdictKind::refused, VerdictKind::duplicate, VerdictKind::duplicate}) {
    auto verdicts = world.spool->put_batch(arrivals);
    ASSERT_TRUE(verdicts.ok());
    EXPECT_EQ(verdicts->front().kind, kind);
    ASSERT_TRUE(world.close()) << world.last_error;
    ASSERT_TRUE(world.open()) << world.last_error;
  }
  EXPECT_EQ(world.spool->list_quarantine(0, 10)->size(), 1u);
  EXPECT_EQ(world.spool->audit()->taken, 1u);
}

TEST(SpoolEdges, SetAsideFromTheJournal_IsNotDueInALaterLife) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 2));
  ASSERT_EQ(world.deliver(world.hub, 1, Fate::rejected), 1);
  ASSERT_TRUE(world.maintain());
  world.forget();
  world.fs.lose_power(Loss::keep_all);
  ASSERT_TRUE(world.open()) << world.last_error;
  EXPECT_EQ(world.spool->list_quarantine(0, 10)->size(), 1u);
  EXPECT_EQ(due_count(world, world.hub), 1u);
  world.expect_promises("set aside from the journal");
}

// The index has dropped it and the power goes before its file: what is found then is no new record.
TEST(SpoolEdges, DroppedFromQuarantine_AndCutBeforeTheUnlink_StaysDropped) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 1));
  ASSERT_TRUE(world.spool->put_batch(std::vector<Arrival>{world.message(1, "other")})
                  .ok());  // a conflict: it was never anywhere else
  ASSERT_EQ(world.spool->list_quarantine(0, 10)->size(), 1u);
  world.fs.observe([&](std::uint64_t, std::string_view verb, std::string_view path) {
    if (verb == "remove" && path.starts_with("quarantine/")) world.fs.fail_next({FaultKind::io, true, false});
  });
  RecordFilter all;
  all.everything = true;
  EXPECT_FALSE(world.spool->drop_quarantined(all).ok());
  world.fs.observe({});
  world.forget();
  world.fs.clear_faults();
  world.fs.lose_power(Loss::drop_all);
  ASSERT_TRUE(world.open()) << world.last_error;
  EXPECT_TRUE(world.spool->list_quarantine(0, 10)->empty());
  EXPECT_EQ(world.spool->audit()->taken, 2u);
  EXPECT_TRUE(world.spool->audit()->balanced());
}

// Found damaged when it was due: the journal has it, so its file is mended and it is due again, in the same life.
TEST(SpoolEdges, DamagedFile_WhileTheJournalHasThePut_IsMendedWhenItIsFound) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 3));
  world.clock.advance(std::chrono::seconds(2));
  ASSERT_TRUE(world.settle_down());
  const std::string path = record_paths(world.fs).at(1);
  const Bytes whole = world.fs.bytes(path);
  world.fs.flip(path, whole.size() - 20);
  EXPECT_EQ(due_count(world, world.hub), 2u);
  ASSERT_TRUE(world.settle_down());
  EXPECT_EQ(world.fs.bytes(path), whole);
  EXPECT_EQ(due_count(world, world.hub), 3u);
  world.expect_promises("a damaged file");
}

TEST(SpoolEdges, OlderManifestAndNoIndex_SequencesGoOnAboveTheFilesThatWereFound) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  const Bytes copies[2] = {world.fs.bytes("manifest.0"), world.fs.bytes("manifest.1")};
  ASSERT_TRUE(world.close());
  ASSERT_TRUE(world.open());
  auto first = world.spool->put_batch(std::vector<Arrival>{world.message(1), world.message(2), world.message(3)});
  ASSERT_TRUE(first.ok());
  world.acknowledged = {1, 2, 3};
  ASSERT_TRUE(world.close());
  world.fs.plant("manifest.0", copies[0]);
  world.fs.plant("manifest.1", copies[1]);
  world.fs.erase("index.sqlite3");
  world.fs.erase("journal");
  ASSERT_TRUE(world.open()) << world.last_error;
  ASSERT_TRUE(world.settle_down());  // the files are found
  auto later = world.spool->put_batch(std::vector<Arrival>{world.message(6)});
  ASSERT_TRUE(later.ok());
  EXPECT_GT(later->front().sequence, first->back().sequence);
  world.acknowledged.insert(6);
  world.expect_promises("sequences after files were found");
}

// What was settled needs no room to be written down, whatever else a stop has none for.
TEST(SpoolEdges, StopOnAFullDisk_KeepsWhatWasSettled) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 10));
  ASSERT_EQ(world.deliver(world.hub, 5), 5);
  world.fs.set_capacity(4096, 1);
  ASSERT_TRUE(world.close());
  world.fs.set_capacity(1ull << 30, 100'000);
  ASSERT_TRUE(world.open()) << world.last_error;
  EXPECT_EQ(due_count(world, world.hub), 5u);
  world.expect_promises("stopped on a full disk");
}

// One target refuses more records than may be remembered while another has not said its word: each goes to the other,
// and then into quarantine; none is stuck.
TEST(SpoolEdges, MoreRefusedThanMayBeRemembered_EachIsSetAsideInTheEnd) {
  constexpr std::uint64_t kRecords = 5000;
  SpoolWorld world;
  world.two_targets = true;
  ASSERT_TRUE(world.open());
  for (std::uint64_t first = 1; first <= kRecords; first += 500) ASSERT_TRUE(world.put(first, 500));
  world.clock.advance(std::chrono::seconds(2));
  ASSERT_TRUE(world.settle_down());
  const auto refuse_all = [&] {
    while (world.deliver(world.shore, 1000, Fate::rejected) > 0) ASSERT_TRUE(world.maintain());
    ASSERT_TRUE(world.settle_down());
  };
  refuse_all();
  EXPECT_EQ(world.spool->status().quarantined, 0u);
  while (world.deliver(world.hub) > 0) ASSERT_TRUE(world.settle_down());
  refuse_all();
  EXPECT_EQ(world.spool->status().quarantined, kRecords);
  EXPECT_TRUE(world.spool->audit()->balanced());
}

// What is in the journal only may have to go to files: its room there is taken.
TEST(SpoolEdges, LimitOfBytes_HoldsWhenTheJournalGoesToFiles) {
  SpoolWorld world;
  world.options.limits.max_bytes = 16u << 20;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.maintain());
  std::uint64_t number = 1;
  while (number < 5000 && world.put(number, 20)) {
    number += 20;
    ASSERT_TRUE(world.maintain());
  }
  EXPECT_LT(number, 5000u);
  world.clock.advance(std::chrono::seconds(2));
  ASSERT_TRUE(world.settle_down());
  const SpoolStatus status = world.spool->status();
  EXPECT_EQ(status.in_journal, 0u);
  EXPECT_LE(status.disk_bytes, world.options.limits.max_bytes + (256u << 10));
}

}  // namespace
}  // namespace holdfast
