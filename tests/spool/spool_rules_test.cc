// Rules of INVARIANTS.md that deserve a story of their own, besides the cuts at every step.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <thread>

#include "spool/record_files.h"
#include "tests/support/spool_world.h"

namespace holdfast {
namespace {

constexpr std::size_t kBlockBytes = 4096;

TEST(SpoolRules, RouteNumbers_OfAChangedConfiguration_KeepTheirMeaning) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  const RouteNumber first = world.route;
  const TargetNumber shore = *world.spool->target_number("shore");
  const RouteNumber second = *world.spool->route_number({{shore, true}});
  EXPECT_NE(first, second);
  ASSERT_TRUE(world.close());
  ASSERT_TRUE(world.open());
  EXPECT_EQ(world.route, first);
  EXPECT_EQ(*world.spool->route_number({{shore, true}}), second);
  EXPECT_NE(*world.spool->route_number({{shore, false}}), second);
  EXPECT_EQ(world.spool->target_name(shore), "shore");
}

TEST(SpoolRules, SequencesOfALaterLife_AreAboveAllEarlierOnes) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 3));
  const Sequence earlier = world.spool->status().next_sequence;
  ASSERT_EQ(world.deliver(world.hub), 3);
  ASSERT_TRUE(world.close());
  ASSERT_TRUE(world.open());
  auto verdicts = world.spool->put_batch(std::vector<Arrival>{world.message(4)});
  EXPECT_GT(verdicts->front().sequence, earlier);
  EXPECT_GT(world.spool->status().next_sequence - earlier, 1u << 20) << "the floor was raised, whatever was found";
}

TEST(SpoolRules, OlderManifest_DoesNotRepeatSequences) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  const Bytes copies[2] = {world.fs.bytes("manifest.0"), world.fs.bytes("manifest.1")};
  ASSERT_TRUE(world.close());
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 5));
  const Sequence given = world.spool->status().next_sequence;
  ASSERT_TRUE(world.close());
  world.fs.plant("manifest.0", copies[0]);
  world.fs.plant("manifest.1", copies[1]);
  ASSERT_TRUE(world.open()) << world.last_error;
  auto verdicts = world.spool->put_batch(std::vector<Arrival>{world.message(6)});
  ASSERT_TRUE(verdicts.ok());
  EXPECT_GE(verdicts->front().sequence, given);
  world.acknowledged.insert(6);
  world.expect_promises("an older manifest");
}

TEST(SpoolRules, BatchLargerThanTheRestOfTheSegment_IsCutAndKept) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 40));
  ASSERT_TRUE(world.put(41, 120)) << world.last_error;
  world.forget();
  world.fs.lose_power(Loss::drop_all);
  ASSERT_TRUE(world.open());
  EXPECT_EQ(world.due_count(world.hub), 160u);
  world.expect_promises("a batch over segments");
}

TEST(SpoolRules, RepeatOfAPendingRecord_SharesTheFateOfItsSync) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 1));
  std::thread second_source;
  bool second_acknowledged = true;
  world.fs.observe([&](std::uint64_t, std::string_view verb, std::string_view path) {
    if (second_source.joinable() || verb != "sync" || !path.starts_with("journal/")) return;
    second_source =
        std::thread([&] { second_acknowledged = world.spool->put_batch(std::vector<Arrival>{world.message(2)}).ok(); });
  });
  world.fs.fail_at(world.fs.steps() + 2, {FaultKind::io, false, false});
  EXPECT_FALSE(world.put(2, 1));
  ASSERT_TRUE(second_source.joinable());
  second_source.join();
  EXPECT_FALSE(second_acknowledged);
  world.fs.observe({});
  world.forget();
  world.fs.clear_faults();
  world.fs.lose_power(Loss::drop_all);
  ASSERT_TRUE(world.open());
  world.expect_promises("a repeat of a pending record");
}

TEST(SpoolRules, FlushOntoAnEarlierRecord_KeepsBoth) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 1));
  ASSERT_TRUE(world.close());
  const std::string path = world.fs.files("records/").at(0);
  const Bytes earlier = world.fs.bytes(path);
  // Nothing remembers it, and its file comes back after files and index were compared.
  world.fs.erase(path);
  world.fs.erase("index.sqlite3");
  world.fs.erase("journal");
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.settle_down());
  world.fs.plant(path, earlier);
  ASSERT_TRUE(world.put(1, 1));
  world.clock.advance(std::chrono::seconds(2));
  ASSERT_TRUE(world.maintain(3));
  EXPECT_EQ(world.fs.bytes(path), earlier) << "the earlier record stays";
  auto quarantined = world.spool->list_quarantine(0, 10);
  ASSERT_EQ(quarantined->size(), 1u);
  EXPECT_EQ(quarantined->front().reason, Reason::duplicate_record);
  EXPECT_TRUE(world.spool->audit()->balanced());
}

TEST(SpoolRules, SettledDuringAFlush_LeavesOnce) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 4));
  DueCursor cursor;
  auto due = world.spool->due(world.hub, Drain::fifo, cursor, 2, 1u << 20);
  ASSERT_EQ(due->size(), 2u);
  bool settled = false;
  world.fs.observe([&](std::uint64_t, std::string_view verb, std::string_view) {
    if (settled || verb != "sync_all") return;
    settled = true;
    const std::vector<Settlement> both{{(*due)[0].sequence, Fate::delivered, Reason::none, {}},
                                       {(*due)[1].sequence, Fate::delivered, Reason::none, {}}};
    ASSERT_TRUE(world.spool->settle(world.hub, both).ok());
    world.delivered[1].insert(world.hub);
    world.delivered[2].insert(world.hub);
  });
  world.clock.advance(std::chrono::seconds(2));
  ASSERT_TRUE(world.settle_down());
  EXPECT_TRUE(settled);
  world.fs.observe({});
  EXPECT_EQ(world.fs.files("records/").size(), 2u);
  EXPECT_EQ(world.spool->status().totals.delivered, 2u);
  EXPECT_EQ(world.due_count(world.hub), 2u);
  world.expect_promises("settled during a flush");
}

// Of the journal's record by a `done` frame that a later sync covered; its row was being written meanwhile, and says
// that the target waits.
TEST(SpoolRules, SettledWhileItsRowIsWritten_IsNotDeliveredAgain) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 2));
  DueCursor cursor;
  const auto due = world.spool->due(world.hub, Drain::fifo, cursor, 1, 1u << 20);
  ASSERT_EQ(due->size(), 1u);
  bool files_synced = false, settled = false;
  world.fs.observe([&](std::uint64_t, std::string_view verb, std::string_view path) {
    files_synced = files_synced || verb == "sync_all";
    if (settled || !files_synced || verb != "write" || path != "index.sqlite3-wal") return;
    settled = true;
    const std::vector<Settlement> one{{due->front().sequence, Fate::delivered, Reason::none, {}}};
    ASSERT_TRUE(world.spool->settle(world.hub, one).ok());
    world.delivered[1].insert(world.hub);
  });
  world.clock.advance(std::chrono::seconds(2));
  ASSERT_TRUE(world.maintain());
  world.fs.observe({});
  ASSERT_TRUE(settled);
  ASSERT_EQ(world.spool->status().in_files, 2u);
  ASSERT_TRUE(world.put(3, 1)) << "the settlement rides on its sync";
  const Arrival elsewhere = world.message(4);
  ASSERT_TRUE(world.spool->remember_places(std::vector{&elsewhere}).ok()) << "with it the row is on the medium";
  world.forget();
  world.fs.lose_power(Loss::drop_all);
  ASSERT_TRUE(world.open());
  EXPECT_EQ(world.due_count(world.hub), 2u);
  ASSERT_TRUE(world.settle_down());
  EXPECT_EQ(world.spool->status().totals.delivered, 1u);
  EXPECT_TRUE(world.spool->audit()->balanced());
  world.expect_promises("settled while its row was written");
}

TEST(SpoolRules, Record_StaysUntilEveryRequiredTargetHasIt) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  const TargetNumber archive = *world.spool->target_number("archive");
  const RouteNumber both = *world.spool->route_number({{archive, false}, {world.hub, true}});
  world.spool->set_active_targets({world.hub, archive});
  std::vector<Arrival> arrivals{world.message(1), world.message(2)};
  for (Arrival& arrival : arrivals) arrival.route = both;
  ASSERT_TRUE(world.spool->put_batch(arrivals).ok());
  ASSERT_EQ(world.deliver(archive), 2);
  ASSERT_TRUE(world.settle_down());
  EXPECT_EQ(world.spool->status().in_custody, 2u) << "the optional one alone releases nothing";
  ASSERT_EQ(world.deliver(world.hub, 1), 1);
  EXPECT_EQ(world.spool->status().in_custody, 1u);
  world.clock.advance(std::chrono::seconds(2));
  ASSERT_TRUE(world.settle_down());
  EXPECT_EQ(world.fs.files("records/").size(), 1u);
  ASSERT_EQ(world.deliver(world.hub, 1), 1);
  ASSERT_TRUE(world.settle_down());
  EXPECT_EQ(world.spool->status().in_custody, 0u);
  EXPECT_TRUE(world.spool->audit()->balanced());
}

TEST(SpoolRules, LateUnlink_SparesALaterRecordOfTheSameName) {
  SpoolWorld world;
  const SecretKey naming = SecretKey::random();
  const SecretKey data = SecretKey::random();
  const Namer namer(naming);
  RecordFiles files(world.fs, namer);
  ASSERT_TRUE(files.prepare().ok());
  FrameHeader header;
  header.id = namer.record_id("msg:1");
  header.sequence = 8;
  header.data_key_id = 1;
  Bytes frame;
  seal_frame(header, as_bytes("later"), data, namer, frame);
  DirtyDirectories dirty;
  ASSERT_TRUE(files.write(header.id, 8, frame, true, dirty).ok());
  auto removed = files.remove(header.id, 7);
  ASSERT_TRUE(removed.ok());
  EXPECT_FALSE(*removed);
  Bytes there;
  ASSERT_TRUE(files.read(header.id, there).ok());
  EXPECT_EQ(there, frame);
  EXPECT_TRUE(*files.remove(header.id, 8));
}

// More than one lot is settled, and the second name does not get to go.
TEST(SpoolRules, SettledTogether_IsWrittenDownBeforeTheFirstNameGoes) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  for (std::uint64_t first = 1; first < 2500; first += 250) ASSERT_TRUE(world.put(first, 250));
  ASSERT_TRUE(world.close());
  world.forget();
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.settle_down());
  ASSERT_EQ(world.deliver(world.hub, 3000), 2500);
  bool failed = false;
  world.fs.observe([&](std::uint64_t, std::string_view verb, std::string_view path) {
    if (failed || verb != "remove" || !path.starts_with("records/")) return;
    failed = true;  // the one behind it
    world.fs.fail_next({FaultKind::io, false, false});
  });
  EXPECT_FALSE(world.settle_down());
  EXPECT_TRUE(failed);
  world.fs.observe({});
  world.forget();
  world.fs.clear_faults();
  world.fs.lose_power(Loss::drop_all);
  ASSERT_TRUE(world.open()) << world.last_error;
  ASSERT_TRUE(world.settle_down());
  world.cursors.clear();
  EXPECT_EQ(world.deliver(world.hub, 3000), 0);
  EXPECT_TRUE(world.spool->audit()->balanced());
}

TEST(SpoolRules, UnlinkUndoneByAPowerLoss_IsFinishedAndNotDelivered) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 6));
  world.clock.advance(std::chrono::seconds(2));
  ASSERT_TRUE(world.settle_down());
  ASSERT_EQ(world.deliver(world.hub, 4), 4);
  ASSERT_TRUE(world.maintain());
  EXPECT_EQ(world.fs.files("records/").size(), 2u);
  world.forget();
  world.fs.lose_power(Loss::keep_bytes);  // a removed name is back
  EXPECT_EQ(world.fs.files("records/").size(), 6u);
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.settle_down());
  EXPECT_EQ(world.fs.files("records/").size(), 2u);
  EXPECT_EQ(world.due_count(world.hub), 2u);
  world.expect_promises("unlinks undone");
}

TEST(SpoolRules, DamagedDone_SettlesNothing) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 2));
  ASSERT_EQ(world.deliver(world.hub), 2);
  world.clock.advance(std::chrono::milliseconds(300));
  ASSERT_TRUE(world.maintain());
  world.forget();
  // Block 0 takes the segment into use, block 1 is the commit, block 2 the list of what was settled.
  world.fs.flip("journal/0.seg", 2 * kBlockBytes + 128 + 144 + 12);
  world.fs.lose_power(Loss::drop_all);
  ASSERT_TRUE(world.open());
  EXPECT_EQ(world.due_count(world.hub), 2u);
  world.expect_promises("a damaged done");
}

TEST(SpoolRules, DoneInTheJournal_OutlivesAPowerLoss) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 5));
  ASSERT_EQ(world.deliver(world.hub, 3), 3);
  world.clock.advance(std::chrono::milliseconds(300));
  ASSERT_TRUE(world.maintain());
  world.forget();
  world.fs.lose_power(Loss::drop_all);
  ASSERT_TRUE(world.open());
  EXPECT_EQ(world.due_count(world.hub), 2u);
  world.expect_promises("done in the journal");
}

// The ring is used several times over; then a cut.
TEST(SpoolRules, ReusedSegments_BringNothingBack_AndRememberEverything) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  constexpr std::uint64_t kRounds = 120, kBatch = 4;
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    ASSERT_TRUE(world.put(round * kBatch + 1, kBatch)) << world.last_error;
    ASSERT_EQ(world.deliver(world.hub), static_cast<int>(kBatch));
    if (round % 10 == 0) {
      ASSERT_TRUE(world.maintain());
    }
  }
  world.clock.advance(std::chrono::milliseconds(300));
  ASSERT_TRUE(world.maintain());
  world.forget();
  world.fs.lose_power(Loss::drop_all);
  ASSERT_TRUE(world.open()) << world.last_error;
  ASSERT_TRUE(world.settle_down());
  EXPECT_EQ(world.due_count(world.hub), 0u) << "what was settled stays so";
  std::vector<Arrival> again;
  for (std::uint64_t number = 1; number <= kRounds * kBatch; ++number) again.push_back(world.message(number));
  auto verdicts = world.spool->put_batch(again);
  ASSERT_TRUE(verdicts.ok());
  for (const Verdict& verdict : *verdicts) EXPECT_EQ(verdict.kind, VerdictKind::duplicate);
  EXPECT_EQ(world.spool->audit()->taken, kRounds * kBatch);
  world.expect_promises("reused segments");
}

TEST(SpoolRules, TornLastBatch_KeepsItsWholeFrames) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 5));
  world.forget();
  world.fs.flip("journal/0.seg", kBlockBytes + 128 + 2 * 697 + 300);
  world.fs.lose_power(Loss::drop_all);
  ASSERT_TRUE(world.open());
  EXPECT_EQ(world.due_count(world.hub), 4u);
  EXPECT_FALSE(world.spool->status().notices.empty());
  EXPECT_EQ(world.spool->status().totals.lost, 0u) << "it may never have been acknowledged";
  world.may_be_missing = {3};
  world.expect_promises("a torn last batch");
}

// Messages of one size, batches of one size: behind the tear lie whole frames of the segment's earlier use.
TEST(SpoolRules, TornLastBatch_OverAnEarlierUse_BringsNothingBack_AndLosesNothing) {
  for (const std::uint64_t kept_blocks : {1u, 2u}) {
    SpoolWorld world;
    ASSERT_TRUE(world.open());
    constexpr std::uint64_t kBatch = 24;
    std::uint64_t next = 1;
    const auto segments = [&] {
      std::map<std::string, Bytes> held;
      for (const auto& path : world.fs.files()) {
        if (path.starts_with("journal/")) held[path] = world.fs.bytes(path);
      }
      return held;
    };
    std::map<std::string, Bytes> before;
    // Until a batch is the first of a segment's fourth use.
    for (std::uint64_t round = 0; round < 40; ++round, next += kBatch) {
      before = segments();
      ASSERT_TRUE(world.put(next, kBatch)) << world.last_error;
      ASSERT_EQ(world.deliver(world.hub), static_cast<int>(kBatch));
      ASSERT_TRUE(world.maintain());
    }
    const auto after = segments();
    std::size_t torn = 0;
    for (const auto& [path, bytes] : after) {
      const Bytes& old = before.at(path);
      std::size_t first = 0;
      while (first < bytes.size() && old[first] == bytes[first]) ++first;
      if (first == bytes.size()) continue;
      // The batch of this round: where its block begins. The rest of it did not get to the medium.
      std::size_t block = first / kBlockBytes * kBlockBytes;
      if (block == 0) block = kBlockBytes;
      Bytes mixed = bytes;
      const std::size_t tear = block + kept_blocks * kBlockBytes;
      std::copy(old.begin() + static_cast<std::ptrdiff_t>(tear), old.end(),
                mixed.begin() + static_cast<std::ptrdiff_t>(tear));
      world.forget();
      world.fs.plant(path, mixed);
      ++torn;
    }
    ASSERT_EQ(torn, 1u);
    for (std::uint64_t number = next - kBatch; number < next; ++number)
      world.acknowledged.erase(number);  // its sync never returned
    for (int life = 0; life < 3; ++life) {
      ASSERT_TRUE(world.open()) << world.last_error;
      EXPECT_EQ(world.spool->status().totals.lost, 0u);
      EXPECT_LT(world.due_count(world.hub), kBatch);
      world.forget();
    }
    EXPECT_EQ(std::ranges::count_if(world.fs.files(),
                                    [](const auto& path) { return path.starts_with("quarantine/damaged-"); }),
              1)
        << "kept once, however often it is read";
    ASSERT_TRUE(world.open());
    world.expect_promises("a batch torn over an earlier use");
  }
}

TEST(SpoolRules, FlushCutShort_LeavesNoFileBehind) {
  for (std::uint64_t nth = 1; nth <= 80; ++nth) {
    SpoolWorld world;
    ASSERT_TRUE(world.open());
    ASSERT_TRUE(world.settle_down());
    ASSERT_TRUE(world.put(1, 8));
    world.clock.advance(std::chrono::seconds(2));
    world.fs.fail_at(world.fs.steps() + (nth + 1) / 2, {FaultKind::full, nth % 2 == 0, false});
    ASSERT_TRUE(world.maintain()) << world.last_error;
    world.fs.clear_faults();
    while (world.deliver(world.hub) > 0) {
    }
    ASSERT_TRUE(world.close()) << world.last_error;
    EXPECT_TRUE(world.fs.files("records/").empty()) << nth;
    ASSERT_TRUE(world.open());
    ASSERT_TRUE(world.settle_down());
    EXPECT_EQ(world.spool->audit()->taken, 8u) << nth;
    EXPECT_EQ(world.due_count(world.hub), 0u) << nth;
  }
}

TEST(SpoolRules, FlushCutShort_ByAStop_LeavesNoFileBehind) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.settle_down());
  ASSERT_TRUE(world.put(1, 8));
  const auto one_file = [&](std::uint64_t, std::string_view verb, std::string_view path) {
    if (verb != "sync_all" && !(verb == "open" && path.starts_with("records/"))) return;
    if (world.fs.files("records/").size() < 3) return;
    world.fs.fail_next({FaultKind::power_cut, true});
  };
  world.fs.observe(one_file);
  world.clock.advance(std::chrono::seconds(2));
  EXPECT_FALSE(world.maintain());
  world.fs.observe({});
  world.forget();
  world.fs.clear_faults();
  world.fs.lose_power(Loss::keep_all);
  ASSERT_FALSE(world.fs.files("records/").empty());
  ASSERT_TRUE(world.open()) << world.last_error;
  // Delivered and its segment given back before names are compared.
  EXPECT_EQ(world.deliver(world.hub), 8);
  ASSERT_TRUE(world.close()) << world.last_error;
  EXPECT_TRUE(world.fs.files("records/").empty());
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.settle_down());
  EXPECT_EQ(world.spool->audit()->taken, 8u);
  EXPECT_EQ(world.due_count(world.hub), 0u);
}

TEST(SpoolRules, DeliveredWhileItsFileIsInDoubt_IsNotWrittenAgain) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 12));
  world.clock.advance(std::chrono::seconds(2));
  ASSERT_TRUE(world.settle_down());
  ASSERT_EQ(world.fs.files("records/").size(), 12u);
  world.forget();
  world.fs.lose_power(Loss::keep_all);
  // The journal still has them; the rows say that they are in files.
  ASSERT_TRUE(world.open());
  EXPECT_EQ(world.deliver(world.hub), 12);
  ASSERT_TRUE(world.settle_down());
  EXPECT_TRUE(world.fs.files("records/").empty());
  ASSERT_TRUE(world.close()) << world.last_error;
  EXPECT_TRUE(world.fs.files("records/").empty()) << "made again although they have left";
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.settle_down());
  EXPECT_EQ(world.due_count(world.hub), 0u);
  EXPECT_EQ(world.spool->audit()->taken, 12u);
}

}  // namespace
}  // namespace holdfast
