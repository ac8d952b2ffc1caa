// Where two rules of INVARIANTS.md meet: what one of them alone would not show, neither in its own test nor in the cuts
// at every step.
#include <gtest/gtest.h>

#include "tests/support/spool_world.h"

namespace holdfast {
namespace {

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
    EXPECT_EQ(world.spool->audit()->taken, world.due_count(world.hub));
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
  ASSERT_EQ(world.fs.files("records/").size(), 4u);
  ASSERT_EQ(world.deliver(world.hub), 4);
  ASSERT_TRUE(world.settle_down());
  // The next flush syncs the unlinks.
  ASSERT_TRUE(world.put(5, 2));
  world.clock.advance(std::chrono::seconds(2));
  ASSERT_TRUE(world.settle_down());
  world.forget();
  world.fs.lose_power(Loss::keep_all);
  ASSERT_TRUE(world.open()) << world.last_error;
  EXPECT_EQ(world.due_count(world.hub), 2u);
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
  EXPECT_EQ(world.due_count(world.hub), 0u);
  EXPECT_EQ(world.due_count(world.shore), 4u);
  world.expect_promises("files written again");
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
  EXPECT_EQ(world.due_count(world.hub), 2u);
  EXPECT_EQ(world.fs.files("records/").size(), 2u);
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
    EXPECT_TRUE(world.fs.files("records/").empty());
    ASSERT_TRUE(world.open());
    ASSERT_TRUE(world.settle_down());
    EXPECT_EQ(world.due_count(world.hub), 0u);
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
  const auto large = at_once->files("records/");
  ASSERT_EQ(large.size(), 1u);
  EXPECT_EQ(at_once->bytes(large[0]), world.fs.bytes(large[0]));
  ASSERT_TRUE(world.close()) << world.last_error;
  world.fs.lose_power(Loss::drop_all);
  ASSERT_TRUE(world.open()) << world.last_error;
  EXPECT_EQ(world.due_count(world.hub), 2u);
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
  EXPECT_EQ(world.due_count(world.hub), 40u);
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
    EXPECT_EQ(world.due_count(world.hub), 1u);
    world.expect_promises("set aside and cut");
  }
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
  EXPECT_EQ(world.due_count(world.hub), 4u);
  EXPECT_EQ(world.due_count(world.shore), 2u);
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
  ASSERT_EQ(world.fs.files("records/").size(), 4u);
  ASSERT_TRUE(world.open()) << world.last_error;
  ASSERT_TRUE(world.settle_down());
  EXPECT_EQ(world.due_count(world.hub), 0u);
  EXPECT_TRUE(world.fs.files("records/").empty());
  world.expect_promises("unlinks undone, without the journal");
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
  const auto last = world.spool->last_committed("TELEMETRY", 100);
  ASSERT_TRUE(last.ok());
  ASSERT_EQ(last->size(), 1u);
  EXPECT_EQ(last->front().sequence, 1u);
  world.expect_promises("a large record");
}

// A file that was found without its row, delivered, and sent again by its source: it is known by then.
TEST(SpoolEdges, FoundWithoutItsRow_IsRememberedAfterItLeft) {
  for (const bool by_place : {false, true}) {
    SpoolWorld world;
    ASSERT_TRUE(world.open());
    std::vector<Arrival> arrivals{world.message(1), world.message(2), world.message(3)};
    for (Arrival& arrival : arrivals) {
      if (!by_place)
        arrival.identity = {"msg:" + std::to_string(arrival.envelope.origin.sequence), Strategy::message_id};
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
    EXPECT_EQ(world.due_count(world.hub), 0u) << by_place;
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
  EXPECT_EQ(world.due_count(world.hub), 1u);
  ASSERT_TRUE(world.maintain());
  EXPECT_EQ(world.due_count(world.hub), 1u);
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
  EXPECT_EQ(world.due_count(world.hub), 1u);
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

}  // namespace
}  // namespace holdfast
