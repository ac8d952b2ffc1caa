// The spool's promises where nothing goes wrong, and where an operator or a message is odd.

#include "spool/spool.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/spool_world.h"

namespace holdfast {
namespace {

TEST(Spool, Put_ThenDue_GivesTheMessagesBackInOrder) {
  SpoolWorld world;
  ASSERT_TRUE(world.open()) << world.last_error;
  ASSERT_TRUE(world.put(1, 20));
  DueCursor cursor;
  auto due = world.spool->due(world.hub, Drain::fifo, cursor, 100, 1u << 20);
  ASSERT_TRUE(due.ok());
  ASSERT_EQ(due->size(), 20u);
  for (std::size_t i = 0; i < due->size(); ++i) {
    const Arrival sent = world.message(i + 1);
    EXPECT_EQ((*due)[i].envelope, sent.envelope);
    EXPECT_EQ((*due)[i].key, sent.identity.key);
    EXPECT_TRUE((*due)[i].surely_unsent);
  }
  // The cursor has passed them; a fresh one begins again, and then they may have been sent.
  EXPECT_TRUE(world.spool->due(world.hub, Drain::fifo, cursor, 100, 1u << 20)->empty());
  DueCursor fresh;
  auto again = world.spool->due(world.hub, Drain::fifo, fresh, 100, 1u << 20);
  ASSERT_EQ(again->size(), 20u);
  EXPECT_FALSE(again->front().surely_unsent);
  world.expect_promises("connected");
}

TEST(Spool, Connected_NoFileIsMade) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  for (int round = 0; round < 50; ++round) {
    ASSERT_TRUE(world.put(static_cast<std::uint64_t>(round) * 10 + 1, 10)) << world.last_error;
    ASSERT_EQ(world.deliver(world.hub), 10);
    ASSERT_TRUE(world.maintain());
  }
  EXPECT_EQ(world.fs.files("records/").size(), 0u);
  world.expect_promises("connected");
}

TEST(Spool, Disconnected_LingerMovesRecordsToFiles) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 30));
  ASSERT_TRUE(world.settle_down());
  EXPECT_EQ(world.fs.files("records/").size(), 0u);
  world.clock.advance(std::chrono::seconds(2));
  ASSERT_TRUE(world.settle_down());
  EXPECT_EQ(world.fs.files("records/").size(), 30u);
  EXPECT_EQ(world.spool->status().in_files, 30u);
  world.expect_promises("from files");
  EXPECT_EQ(world.fs.files("records/").size(), 0u);
}

TEST(Spool, LongOutage_JournalTurnsOver_EverythingIsInFiles) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  for (std::uint64_t i = 0; i < 60; ++i) {
    ASSERT_TRUE(world.put(i * 20 + 1, 20)) << i << world.last_error;
    if (i % 5 == 0) {
      ASSERT_TRUE(world.maintain()) << world.last_error;
    }
  }
  EXPECT_EQ(world.spool->status().in_custody, 1200u);
  world.expect_promises("after an outage");
}

TEST(Spool, CleanStop_LeavesFilesAndAnEmptyJournal) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 25));
  ASSERT_TRUE(world.close()) << world.last_error;
  EXPECT_EQ(world.fs.files("records/").size(), 25u);
  world.fs.lose_power(Loss::drop_all);
  ASSERT_TRUE(world.open()) << world.last_error;
  EXPECT_EQ(world.spool->status().in_journal, 0u);
  EXPECT_EQ(world.spool->status().in_files, 25u);
  ASSERT_TRUE(world.put(1, 25));
  EXPECT_EQ(world.spool->status().verdicts.duplicate_in_custody, 25u);
  world.expect_promises("after a clean stop");
}

TEST(Spool, Redelivery_IsADuplicate_InBatchInCustodyAndInTheLedger) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  const std::vector<Arrival> twice{world.message(1), world.message(1)};
  auto verdicts = world.spool->put_batch(twice);
  ASSERT_TRUE(verdicts.ok());
  EXPECT_EQ((*verdicts)[0].kind, VerdictKind::accepted);
  EXPECT_EQ((*verdicts)[1].kind, VerdictKind::duplicate);
  EXPECT_EQ((*verdicts)[1].seen_in, SeenIn::batch);
  verdicts = world.spool->put_batch(std::vector<Arrival>{world.message(1)});
  EXPECT_EQ((*verdicts)[0].seen_in, SeenIn::custody);
  world.acknowledged.insert(1);
  ASSERT_EQ(world.deliver(world.hub), 1);
  verdicts = world.spool->put_batch(std::vector<Arrival>{world.message(1)});
  EXPECT_EQ((*verdicts)[0].kind, VerdictKind::duplicate);
  EXPECT_EQ((*verdicts)[0].seen_in, SeenIn::ledger);
  ASSERT_TRUE(world.close());
  ASSERT_TRUE(world.open());
  verdicts = world.spool->put_batch(std::vector<Arrival>{world.message(1)});
  EXPECT_EQ((*verdicts)[0].seen_in, SeenIn::ledger);
  world.expect_promises("after a restart");
}

TEST(Spool, SameKeyOtherContent_IsKeptInQuarantine_AndCountedOnce) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 1));
  const std::vector<Arrival> other{world.message(1, "other")};
  auto verdicts = world.spool->put_batch(other);
  ASSERT_TRUE(verdicts.ok()) << verdicts.error().text;
  EXPECT_EQ((*verdicts)[0].kind, VerdictKind::conflict);
  verdicts = world.spool->put_batch(other);
  EXPECT_EQ((*verdicts)[0].kind, VerdictKind::duplicate) << "the same newcomer again is the same newcomer";
  EXPECT_EQ(world.fs.files("quarantine/").size(), 1u);
  ASSERT_EQ(world.deliver(world.hub), 1);
  ASSERT_TRUE(world.close());
  ASSERT_TRUE(world.open());
  verdicts = world.spool->put_batch(other);
  EXPECT_EQ((*verdicts)[0].kind, VerdictKind::duplicate) << "also when the earlier one is only remembered";
  auto listed = world.spool->list_quarantine(0, 10);
  ASSERT_EQ(listed->size(), 1u);
  EXPECT_EQ(listed->front().reason, Reason::conflict);
  auto shown = world.spool->show_quarantined(listed->front().id.hex());
  ASSERT_TRUE(shown.ok()) << shown.error().text;
  EXPECT_EQ(shown->body.envelope.payload, other[0].envelope.payload);
  world.expect_promises("with a conflict");
}

TEST(Spool, Refused_IsInCustodyBeforeItsVerdict) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  Arrival refused = world.message(1);
  refused.refused = Reason::no_route;
  refused.identity = {"refused:truck-07:TELEMETRY:1:1000", Strategy::message_id};
  auto verdicts = world.spool->put_batch(std::vector<Arrival>{refused, world.message(2)});
  ASSERT_TRUE(verdicts.ok());
  EXPECT_EQ((*verdicts)[0].kind, VerdictKind::refused);
  EXPECT_EQ((*verdicts)[1].kind, VerdictKind::accepted) << "one bad message never changes the fate of its batch";
  world.acknowledged.insert(2);
  world.forget();
  world.fs.lose_power(Loss::drop_all);
  ASSERT_TRUE(world.open()) << world.last_error;
  EXPECT_EQ(world.spool->list_quarantine(0, 10)->size(), 1u);
  verdicts = world.spool->put_batch(std::vector<Arrival>{refused});
  EXPECT_EQ((*verdicts)[0].kind, VerdictKind::duplicate);
  world.expect_promises("after a cut");
}

TEST(Spool, Rejected_GoesToQuarantine_AndComesBackWhenRequeued) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 3));
  ASSERT_EQ(world.deliver(world.hub, 2, Fate::rejected), 2);
  ASSERT_TRUE(world.settle_down());
  EXPECT_EQ(world.spool->status().quarantined, 2u);
  EXPECT_EQ(world.spool->status().in_custody, 1u);
  EXPECT_TRUE(world.spool->audit()->balanced());
  RecordFilter all;
  all.everything = true;
  auto requeued = world.spool->requeue(all, [&](const Envelope&) { return std::optional(world.route); });
  ASSERT_TRUE(requeued.ok()) << requeued.error().text;
  EXPECT_EQ(*requeued, 2u);
  EXPECT_EQ(world.fs.files("quarantine/").size(), 0u);
  world.expect_promises("after requeue");
}

TEST(Spool, RejectedByOne_StillReachesTheOther) {
  SpoolWorld world;
  world.two_targets = true;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 4));
  ASSERT_EQ(world.deliver(world.hub, 10, Fate::rejected), 4);
  ASSERT_TRUE(world.settle_down());
  EXPECT_EQ(world.spool->status().quarantined, 0u);
  ASSERT_EQ(world.deliver(world.shore, 2), 2);
  world.clock.advance(std::chrono::seconds(2));
  ASSERT_TRUE(world.settle_down());
  ASSERT_EQ(world.deliver(world.shore, 2), 2);
  ASSERT_TRUE(world.settle_down());
  EXPECT_TRUE(world.spool->audit()->balanced());
  EXPECT_EQ(world.spool->status().quarantined, 4u) << "set aside once every other target had it";
}

TEST(Spool, TwoTargets_EachHasItsOwnProgress) {
  SpoolWorld world;
  world.two_targets = true;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 40));
  ASSERT_EQ(world.deliver(world.hub, 100), 40);
  world.clock.advance(std::chrono::seconds(2));
  ASSERT_TRUE(world.settle_down());
  EXPECT_EQ(world.fs.files("records/").size(), 40u);
  const SpoolStatus status = world.spool->status();
  EXPECT_EQ(status.targets[0].waiting_records, 0u);
  EXPECT_EQ(status.targets[1].waiting_records, 40u);
  ASSERT_TRUE(world.close());
  ASSERT_TRUE(world.open());
  DueCursor cursor;
  EXPECT_TRUE(world.spool->due(world.hub, Drain::fifo, cursor, 100, 1u << 20)->empty())
      << "the hub does not get them again";
  world.expect_promises("two targets");
}

TEST(Spool, PriorityDrain_UrgentFirst_FifoWithinALevel) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  std::vector<Arrival> arrivals;
  for (std::uint64_t i = 1; i <= 12; ++i) {
    arrivals.push_back(world.message(i));
    arrivals.back().priority = static_cast<Priority>(i % 3 == 0 ? 0 : 7);
    world.acknowledged.insert(i);
  }
  ASSERT_TRUE(world.spool->put_batch(arrivals).ok());
  world.clock.advance(std::chrono::seconds(2));
  ASSERT_TRUE(world.settle_down());
  Arrival late = world.message(13);
  late.priority = 2;
  world.acknowledged.insert(13);
  ASSERT_TRUE(world.spool->put_batch(std::vector<Arrival>{late}).ok());
  DueCursor cursor;
  auto due = world.spool->due(world.hub, Drain::priority, cursor, 100, 1u << 20);
  std::vector<std::uint64_t> order;
  for (const DueRecord& record : *due) order.push_back(message_number(record.envelope));
  EXPECT_EQ(order, (std::vector<std::uint64_t>{3, 6, 9, 12, 13, 1, 2, 4, 5, 7, 8, 10, 11}));
  DueCursor fifo;
  due = world.spool->due(world.hub, Drain::fifo, fifo, 5, 1u << 20);
  EXPECT_EQ(due->size(), 5u);
  EXPECT_EQ(message_number(due->back().envelope), 5u);
  world.expect_promises("priorities");
}

TEST(Spool, RecordLargerThanAQuarterOfASegment_GoesToItsFileAtOnce) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  std::vector<Arrival> arrivals{world.message(1), world.message(2), world.message(3)};
  arrivals[1].envelope.payload.resize(100'000, 'y');
  auto verdicts = world.spool->put_batch(arrivals);
  ASSERT_TRUE(verdicts.ok()) << verdicts.error().text;
  for (std::uint64_t i = 1; i <= 3; ++i) world.acknowledged.insert(i);
  EXPECT_EQ(world.fs.files("records/").size(), 1u);
  DueCursor cursor;
  auto due = world.spool->due(world.hub, Drain::fifo, cursor, 100, 1u << 20);
  ASSERT_EQ(due->size(), 3u);
  EXPECT_EQ(message_number((*due)[1].envelope), 2u);
  world.forget();
  world.fs.lose_power(Loss::drop_all);
  ASSERT_TRUE(world.open());
  world.expect_promises("large record");
}

TEST(Spool, LingerZero_AFileBeforeEveryVerdict) {
  SpoolWorld world;
  world.options.linger = Nanoseconds(0);
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 10));
  EXPECT_EQ(world.fs.files("records/").size(), 10u);
  world.forget();
  world.fs.lose_power(Loss::drop_all);
  ASSERT_TRUE(world.open());
  world.expect_promises("linger zero");
}

TEST(Spool, Limits_PauseTheIntake_SettlingGoesOn_AndReleaseIt) {
  SpoolWorld world;
  world.options.limits.max_records = 100;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 100));
  ASSERT_TRUE(world.maintain());
  EXPECT_EQ(world.spool->pressure().kind, PressureKind::max_records);
  auto refused = world.spool->put_batch(std::vector<Arrival>{world.message(101)});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::full);
  ASSERT_EQ(world.deliver(world.hub, 3), 3);
  ASSERT_TRUE(world.maintain());
  EXPECT_TRUE(world.spool->pressure().paused()) << "hysteresis";
  ASSERT_EQ(world.deliver(world.hub, 7), 7);
  ASSERT_TRUE(world.maintain());
  EXPECT_FALSE(world.spool->pressure().paused());
  EXPECT_TRUE(world.put(101, 1));
  world.expect_promises("limits");
}

TEST(Spool, DiskFull_DrainsAndResumesByItself) {
  SpoolWorld world;
  ASSERT_TRUE(world.open()) << world.last_error;
  ASSERT_TRUE(world.settle_down());
  world.fs.set_capacity(48u << 20, 100'000);
  std::uint64_t next = 1;
  while (world.put(next, 20)) {
    next += 20;
    ASSERT_TRUE(world.maintain(3)) << world.last_error;
    ASSERT_LT(next, 100'000u);
  }
  EXPECT_GT(next, 200u);
  // The uplink comes back while nothing more can be written.
  for (int i = 0; i < 2000 && world.spool->status().in_custody > 0; ++i) {
    ASSERT_GE(world.deliver(world.hub, 100), 0) << world.last_error;
    ASSERT_TRUE(world.maintain()) << world.last_error;
  }
  EXPECT_EQ(world.spool->status().in_custody, 0u);
  world.clock.advance(std::chrono::seconds(2));
  ASSERT_TRUE(world.settle_down());
  EXPECT_TRUE(world.put(next, 20)) << world.last_error;
  world.expect_promises("after a full disk");
}

TEST(Spool, StartOnAFullDisk_StillDrains) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  world.clock.advance(std::chrono::seconds(2));
  ASSERT_TRUE(world.maintain());  // makes the reserve
  ASSERT_TRUE(world.put(1, 30));
  world.forget();
  world.fs.restart_without_power_loss();
  const auto space = world.fs.space();
  world.fs.set_capacity(space->total_bytes - space->free_bytes, 100'000);  // not one block is left
  ASSERT_TRUE(world.open()) << world.last_error;
  int got = 0;
  for (int some = 1; some > 0; got += some) {
    some = world.deliver(world.hub, 10);
    ASSERT_GE(some, 0) << world.last_error;
    ASSERT_TRUE(world.maintain()) << world.last_error;
  }
  EXPECT_EQ(got, 30);
}

TEST(Spool, WrongKey_RefusesAndTellsWhichIsWanted) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 1));
  ASSERT_TRUE(world.close());
  SecretKey right = std::move(world.key);
  world.key = SecretKey::random();
  world.fs.flip("manifest.1", 40);
  const Bytes damaged = world.fs.bytes("manifest.1");
  EXPECT_FALSE(world.open());
  EXPECT_EQ(world.fs.bytes("manifest.1"), damaged) << "who has not the key repairs nothing";
  EXPECT_NE(world.last_error.find(right.id()), std::string::npos) << world.last_error;
  EXPECT_NE(world.last_error.find(world.key.id()), std::string::npos);
  world.key = std::move(right);
  ASSERT_TRUE(world.open());
  world.expect_promises("with the right key again");
}

TEST(Spool, TwoProcesses_TheSecondRefuses) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  auto second = Spool::open(world.fs, world.clock, world.options, world.key);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().kind, ErrorKind::unavailable);
}

TEST(Spool, DirectoryThatOthersCanReach_IsRefused) {
  SpoolWorld world;
  world.fs.set_owner("", 0750, true);
  EXPECT_FALSE(world.open());
  world.fs.set_owner("", 0700, false);
  EXPECT_FALSE(world.open());
  EXPECT_EQ(world.fs.files().size(), 0u) << "touches nothing";
  world.fs.set_owner("", 0700, true);
  EXPECT_TRUE(world.open());
}

TEST(Spool, UnsafeFileSystem_IsRefusedUnlessAllowed) {
  SpoolWorld world;
  world.fs.set_type("tmpfs", false, false);
  EXPECT_FALSE(world.open());
  world.options.allow_unsafe_fs = true;
  ASSERT_TRUE(world.open());
  EXPECT_TRUE(world.spool->status().unsafe_file_system);
}

TEST(Spool, BothManifestsGone_NothingIsMadeAnew) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 1));
  ASSERT_TRUE(world.close());
  world.fs.erase("manifest.0");
  world.fs.erase("manifest.1");
  EXPECT_FALSE(world.open());
  EXPECT_FALSE(world.fs.there("manifest.0"));
}

TEST(Spool, OneManifestDestroyed_IsRepairedAndReported) {
  for (const char* gone : {"manifest.0", "manifest.1"}) {
    SpoolWorld world;
    ASSERT_TRUE(world.open());
    ASSERT_TRUE(world.put(1, 5));
    world.forget();
    world.fs.overwrite(gone, 0, Bytes(64, 0xee));
    world.fs.lose_power(Loss::drop_all);
    ASSERT_TRUE(world.open()) << gone << world.last_error;
    EXPECT_FALSE(world.spool->status().notices.empty());
    world.expect_promises(gone);
  }
}

TEST(Spool, IndexLost_RecordsInFilesAreFoundAgain_WithTheirTargets) {
  SpoolWorld world;
  world.two_targets = true;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 50));
  ASSERT_TRUE(world.close());
  world.fs.erase("index.sqlite3");
  world.fs.erase("index.sqlite3-wal");
  ASSERT_TRUE(world.open()) << world.last_error;
  ASSERT_TRUE(world.put(1, 50)) << "before the files were compared, too, they are known";
  EXPECT_EQ(world.spool->status().verdicts.duplicate_in_custody, 50u);
  world.expect_promises("index lost");
}

TEST(Spool, FlippedTruncatedZeroAndForeignFiles_TheRestFlows) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 40));
  ASSERT_TRUE(world.close());
  std::vector<std::string> records;
  for (const auto& path : world.fs.files()) {
    if (path.starts_with("records/")) records.push_back(path);
  }
  ASSERT_EQ(records.size(), 40u);
  world.fs.flip(records[0], 200);
  world.fs.flip(records[1], 20);
  world.fs.cut_to(records[2], 100);
  world.fs.cut_to(records[3], 0);
  world.fs.overwrite(records[4], 0, Bytes(world.fs.bytes(records[4]).size(), 0));
  world.fs.plant(records[5].substr(0, 11) + std::string(62, 'a') + ".rec", Bytes(10, 1));
  world.fs.plant("records/zz/junk", Bytes(10, 1));
  world.fs.plant_directory("records/00/" + std::string(64, '0') + ".rec");
  world.fs.plant_other("records/01/" + std::string(64, '0') + ".rec");
  ASSERT_TRUE(world.open()) << world.last_error;
  ASSERT_TRUE(world.settle_down());
  int got = 0;
  for (int some = 1; some > 0; got += some) some = world.deliver(world.hub, 7);
  EXPECT_EQ(got, 35);
  ASSERT_TRUE(world.settle_down());
  EXPECT_EQ(world.spool->status().quarantined, 5u);
  EXPECT_GT(world.spool->status().ignored_names, 0u);
  auto audit = world.spool->audit();
  EXPECT_TRUE(audit->balanced());
  EXPECT_EQ(audit->delivered, 35u);
}

TEST(Spool, FileGone_IsALossAlarm) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 10));
  ASSERT_TRUE(world.close());
  for (const auto& path : world.fs.files()) {
    if (path.starts_with("records/")) {
      world.fs.erase(path);
      break;
    }
  }
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.settle_down());
  EXPECT_EQ(world.spool->status().totals.lost, 1u);
  EXPECT_FALSE(world.spool->status().notices.empty());
  EXPECT_TRUE(world.spool->audit()->balanced());
}

TEST(Spool, JournalRot_BeforeALaterBatch_IsALossAlarm_TheRestLives) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  for (std::uint64_t i = 1; i <= 6; ++i) ASSERT_TRUE(world.put(i, 1));
  world.forget();
  // Segment 0: block 0 takes it into use, then one batch a block.
  world.fs.flip("journal/0.seg", 3 * 4096 + 300);
  world.fs.overwrite("journal/0.seg", 5 * 4096, Bytes(4096, 0x5a));
  world.fs.lose_power(Loss::drop_all);
  ASSERT_TRUE(world.open()) << world.last_error;
  EXPECT_EQ(world.spool->status().totals.lost, 2u);
  world.may_be_missing = {3, 5};
  world.expect_promises("rot");
  EXPECT_EQ(world.spool->status().totals.lost, 2u);
  ASSERT_TRUE(world.close());
  ASSERT_TRUE(world.open());
  EXPECT_EQ(world.spool->status().totals.lost, 2u) << "counted once";
}

TEST(Spool, Retarget_RecordsOfAGoneTarget_ReachTheNewOne) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 30));
  ASSERT_TRUE(world.settle_down());
  const TargetNumber renamed = *world.spool->target_number("hub2");
  world.spool->set_active_targets({renamed});
  DueCursor cursor;
  EXPECT_TRUE(world.spool->due(renamed, Drain::fifo, cursor, 100, 1u << 20)->empty());
  auto moved = world.spool->retarget(world.hub, renamed);
  ASSERT_TRUE(moved.ok()) << moved.error().text;
  EXPECT_EQ(*moved, 30u);
  world.hub = renamed;
  world.expect_promises("retargeted");
}

TEST(Spool, Discard_IsCountedAndAsksForAFilter) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 14));
  EXPECT_EQ(*world.spool->discard({}, false), 0u);
  RecordFilter by_subject;
  by_subject.subject = fmt::format("telemetry.{}.3", kMarker);
  EXPECT_EQ(*world.spool->discard(by_subject, true), 2u);
  EXPECT_EQ(*world.spool->discard(by_subject, false), 2u);
  EXPECT_EQ(world.spool->status().in_custody, 12u);
  world.may_be_missing = {3, 10};
  ASSERT_TRUE(world.close());
  ASSERT_TRUE(world.open());
  EXPECT_EQ(world.spool->status().in_custody, 12u);
  EXPECT_EQ(world.spool->audit()->discarded, 2u);
  EXPECT_TRUE(world.spool->audit()->balanced());
}

TEST(Spool, ListShowVerify) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 10));
  world.clock.advance(std::chrono::seconds(2));
  ASSERT_TRUE(world.settle_down());
  ASSERT_TRUE(world.put(11, 5));
  auto first = world.spool->list(0, 8);
  ASSERT_EQ(first->size(), 8u);
  auto rest = world.spool->list(first->back().sequence, 100);
  ASSERT_EQ(rest->size(), 7u);
  EXPECT_FALSE(rest->back().in_file);
  auto shown = world.spool->show(rest->back().id.short_hex());
  ASSERT_TRUE(shown.ok()) << shown.error().text;
  EXPECT_EQ(message_number(shown->body.envelope), 15u);
  int bad = 0;
  EXPECT_EQ(*world.spool->verify(0, 100, [&](const RecordSummary&, Reason) { ++bad; }), 0u);
  EXPECT_EQ(bad, 0);
  world.fs.flip("records/" + first->front().id.hex().substr(0, 2) + "/" + first->front().id.hex() + ".rec", 180);
  EXPECT_EQ(*world.spool->verify(0, 100,
                                 [&](const RecordSummary& summary, Reason reason) {
                                   ++bad;
                                   EXPECT_EQ(summary.id, first->front().id);
                                   EXPECT_EQ(reason, Reason::damaged);
                                 }),
            0u);
  EXPECT_EQ(bad, 1);
}

TEST(Spool, SyncFails_TheLifeIsOver_NothingIsAcknowledged) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 5));
  world.fs.fail_next({FaultKind::io, true, false});
  EXPECT_FALSE(world.put(6, 5));
  EXPECT_FALSE(world.put(11, 5));
  EXPECT_FALSE(world.maintain());
  EXPECT_LT(world.deliver(world.hub), 0);
  world.fs.clear_faults();
  EXPECT_FALSE(world.put(6, 5)) << "no second try in this life (I4)";
  world.forget();
  world.fs.restart_without_power_loss();
  ASSERT_TRUE(world.open()) << world.last_error;
  world.expect_promises("after a failed sync");
}

TEST(Spool, LastPosition_KnowsWhatWasCommitted_AcrossACut) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 9));
  world.forget();
  world.fs.lose_power(Loss::drop_all);
  ASSERT_TRUE(world.open());
  const auto last = world.spool->last_committed("TELEMETRY", 100);
  ASSERT_TRUE(last.ok() && last->size() == 1);
  EXPECT_EQ(last->front().sequence, 9u);
  EXPECT_EQ(last->front().timestamp_ns, 9000);
  EXPECT_EQ(world.spool->last_committed("TELEMETRY", 4)->front().sequence, 4u);
  EXPECT_TRUE(world.spool->last_committed("OTHER", 100)->empty());
  EXPECT_EQ(*world.spool->first_committed("TELEMETRY"), 1u);
  EXPECT_FALSE(*world.spool->first_committed("OTHER"));
  ASSERT_TRUE(world.close());
  ASSERT_TRUE(world.open());
  EXPECT_EQ(world.spool->last_committed("TELEMETRY", 100)->front().sequence, 9u);
  EXPECT_EQ(*world.spool->first_committed("TELEMETRY"), 1u);
}

}  // namespace
}  // namespace holdfast
