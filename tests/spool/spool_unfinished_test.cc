// What was begun and could not be finished, and what left while somebody was looking at it: no half of it may be
// believed, neither in this life nor in the next.
#include <gtest/gtest.h>

#include "tests/support/faulty_file_system.h"
#include "tests/support/spool_world.h"

namespace holdfast {
namespace {

using std::chrono::seconds;

int answer_all(Spool& spool, TargetNumber target, DueCursor& cursor, Fate fate, std::size_t most = 1000) {
  auto due = spool.due(target, Drain::fifo, cursor, most, 64u << 20);
  if (!due.ok()) return -1;
  std::vector<Settlement> settlements;
  for (const DueRecord& record : *due)
    settlements.push_back({record.sequence, fate, fate == Fate::rejected ? Reason::rejected : Reason::none, "no"});
  return spool.settle(target, settlements).ok() ? static_cast<int>(due->size()) : -1;
}

void some_seconds(SpoolWorld& world, Spool& spool) {
  for (int i = 0; i < 5; ++i) {
    world.clock.advance(seconds(2));
    ASSERT_TRUE(spool.maintain().ok());
  }
}

RecordFilter everything() {
  RecordFilter filter;
  filter.everything = true;
  return filter;
}

// A spool whose index has no room from its nth write to the WAL on.
class FullWal {
 public:
  explicit FullWal(SpoolWorld& world)
      : files_(world.fs, [this](std::string_view verb, std::string_view path) { return gate(verb, path); }) {
    world.options.linger = Nanoseconds(0);
    auto opened = Spool::open(files_, world.clock, world.options, world.key);
    EXPECT_TRUE(opened.ok());
    spool = std::move(*opened);
    world.route = *spool->route_number({{*spool->target_number("hub"), true}});
    while (spool->maintain()->count() == 0) {
    }
  }
  void fail_after(int writes) { left_ = writes; }

  std::unique_ptr<Spool> spool;

 private:
  std::optional<Error> gate(std::string_view verb, std::string_view path) {
    if (verb != "write" || !path.starts_with("index.sqlite3-wal") || left_ < 0) return {};
    if (left_ == 0) return Error{ErrorKind::full, "no space left"};
    --left_;
    return {};
  }
  int left_ = -1;
  FaultyFileSystem files_;
};

// The transaction was refused, and its last frame may be in the WAL: the next life must not take it for committed.
TEST(SpoolUnfinished, TransactionRefusedForWantOfRoom_IsNotSeenByTheNextLife) {
  for (const bool requeues : {false, true}) {
    bool went_well = false;
    for (int writes = 0; !went_well; ++writes) {
      ASSERT_LT(writes, 100);
      SpoolWorld world;
      {
        FullWal full(world);
        std::vector<Arrival> first{world.message(1)}, second{world.message(2)};
        if (requeues) {
          first[0].refused = Reason::no_route;
          first[0].identity.key = "refused:1";
        }
        ASSERT_TRUE(full.spool->put_batch(first).ok());
        full.fail_after(writes);
        went_well =
            requeues
                ? full.spool->requeue(everything(), [&](const Envelope&) { return std::optional(world.route); }).ok()
                : full.spool->put_batch(second).ok();
      }
      world.fs.restart_without_power_loss();
      ASSERT_TRUE(world.open()) << world.last_error;
      ASSERT_TRUE(world.settle_down());
      EXPECT_EQ(world.spool->status().totals.lost, 0u) << (requeues ? "requeue, " : "put, ") << writes << " writes";
      EXPECT_TRUE(world.spool->audit()->balanced());
    }
  }
}

// The directory was made by a commit that then had no room; the next commit into it is the one that is acknowledged.
TEST(SpoolUnfinished, DirectoryMadeByACommitThatFailed_IsSyncedByTheNext) {
  for (const bool next_life : {false, true}) {
    SpoolWorld world;
    world.fs.set_type("simulated", true, false);
    world.options.linger = Nanoseconds(0);
    ASSERT_TRUE(world.open());
    ASSERT_TRUE(world.settle_down());
    world.fs.observe([&](std::uint64_t, std::string_view verb, std::string_view path) {
      if (path.starts_with("records/") && path.size() > 12 && verb.find("write") != verb.npos)
        world.fs.set_capacity(1, 1u << 20);
    });
    EXPECT_FALSE(world.put(1, 1));
    world.fs.observe({});
    world.fs.set_capacity(1ull << 40, 1ull << 30);
    if (next_life) {
      world.forget();
      world.fs.restart_without_power_loss();
      ASSERT_TRUE(world.open()) << world.last_error;
    }
    some_seconds(world, *world.spool);
    ASSERT_TRUE(world.put(1, 1)) << world.last_error;
    world.forget();
    world.fs.lose_power(Loss::drop_all);
    ASSERT_TRUE(world.open()) << world.last_error;
    world.expect_promises(next_life ? "made by an earlier life" : "made by an earlier commit");
  }
}

// A life was killed after its unlinks and before a sync; the next finds the names gone, in memory.
TEST(SpoolUnfinished, UnlinksOfAKilledLife_AreOnTheMediumBeforeTheirTombstonesGo) {
  for (const bool whole : {true, false}) {
    for (unsigned seed = 1; seed <= 10; ++seed) {
      SpoolWorld world(seed);
      world.fs.set_type("simulated", true, whole);
      world.options.linger = Nanoseconds(0);
      ASSERT_TRUE(world.open());
      ASSERT_TRUE(world.put(1, 5));
      ASSERT_TRUE(world.settle_down());
      ASSERT_EQ(*world.spool->discard(everything(), false), 5u);
      ASSERT_TRUE(world.settle_down());
      world.forget();
      world.fs.restart_without_power_loss();
      ASSERT_TRUE(world.open()) << world.last_error;
      ASSERT_TRUE(world.settle_down());
      some_seconds(world, *world.spool);
      // Any durable transaction: the tombstones are gone for good.
      ASSERT_TRUE(world.spool->put_batch(std::vector<Arrival>{world.message(100)}).ok());
      ASSERT_EQ(*world.spool->discard(everything(), false), 1u);
      world.forget();
      world.fs.lose_power(seed);
      ASSERT_TRUE(world.open()) << world.last_error;
      ASSERT_TRUE(world.settle_down());
      EXPECT_EQ(world.spool->audit()->in_custody, 0u) << "seed " << seed;
    }
  }
}

// An optional target refuses what the required one then gets: nothing of it stays in memory.
TEST(SpoolUnfinished, RefusalsOfOptionalTargets_AreForgottenWithTheirRecords) {
  SpoolWorld world;
  world.two_targets = true;
  world.options.journal_bytes = 4 * (4u << 20);
  ASSERT_TRUE(world.open());
  const RouteNumber both_required = world.route;
  world.route = *world.spool->route_number({{world.hub, true}, {world.shore, false}});
  DueCursor hub, shore;
  for (std::uint64_t batch = 0; batch < 45; ++batch) {
    ASSERT_TRUE(world.put(1 + batch * 100, 100)) << world.last_error;
    ASSERT_EQ(answer_all(*world.spool, world.shore, shore, Fate::rejected), 100);
    ASSERT_TRUE(world.maintain());
    ASSERT_EQ(answer_all(*world.spool, world.hub, hub, Fate::delivered), 100);
    ASSERT_TRUE(world.settle_down());
  }
  world.route = both_required;
  ASSERT_TRUE(world.put(100'000, 3));
  ASSERT_EQ(answer_all(*world.spool, world.shore, shore, Fate::rejected), 3);
  ASSERT_TRUE(world.maintain());
  ASSERT_EQ(answer_all(*world.spool, world.hub, hub, Fate::delivered), 3);
  some_seconds(world, *world.spool);
  EXPECT_EQ(world.spool->status().quarantined, 3u);
  EXPECT_EQ(world.spool->status().in_custody, 0u);
}

TEST(SpoolUnfinished, OptionalTarget_StaysOptionalWhenItIsRetargeted) {
  SpoolWorld world;
  world.two_targets = true;
  ASSERT_TRUE(world.open());
  const TargetNumber third = *world.spool->target_number("third");
  world.route = *world.spool->route_number({{world.hub, true}, {world.shore, false}});
  ASSERT_TRUE(world.put(1, 10));
  world.clock.advance(seconds(2));
  ASSERT_TRUE(world.settle_down());
  EXPECT_EQ(*world.spool->retarget(world.shore, third), 10u);
  DueCursor hub, other;
  EXPECT_EQ(answer_all(*world.spool, third, other, Fate::delivered, 4), 4);
  ASSERT_EQ(answer_all(*world.spool, world.hub, hub, Fate::delivered), 10);
  ASSERT_TRUE(world.settle_down());
  EXPECT_EQ(world.spool->status().in_custody, 0u);
  EXPECT_EQ(world.spool->status().totals.delivered, 10u);
  EXPECT_TRUE(world.spool->audit()->balanced());
}

TEST(SpoolUnfinished, RequiredTarget_StaysRequiredWhenItIsRetargeted) {
  SpoolWorld world;
  world.two_targets = true;
  ASSERT_TRUE(world.open());
  const TargetNumber third = *world.spool->target_number("third");
  ASSERT_TRUE(world.put(1, 10));
  EXPECT_EQ(*world.spool->retarget(world.shore, third), 10u);
  DueCursor hub, other;
  ASSERT_EQ(answer_all(*world.spool, world.hub, hub, Fate::delivered), 10);
  ASSERT_TRUE(world.settle_down());
  EXPECT_EQ(world.spool->status().in_custody, 10u);
  EXPECT_EQ(answer_all(*world.spool, third, other, Fate::delivered), 10);
  ASSERT_TRUE(world.settle_down());
  EXPECT_EQ(world.spool->status().in_custody, 0u);
  EXPECT_TRUE(world.spool->audit()->balanced());
}

TEST(SpoolUnfinished, RecordsThatLeaveWhileTheyAreRetargeted_StayGone) {
  SpoolWorld world;
  world.two_targets = true;
  ASSERT_TRUE(world.open());
  const TargetNumber third = *world.spool->target_number("third");
  world.route = *world.spool->route_number({{world.hub, true}, {world.shore, false}});
  ASSERT_TRUE(world.put(1, 5));
  DueCursor hub;
  bool once = false;
  world.fs.observe([&](std::uint64_t, std::string_view, std::string_view path) {
    if (once || !path.starts_with("records/")) return;
    once = true;
    answer_all(*world.spool, world.hub, hub, Fate::delivered, 2);
  });
  const auto retargeted = world.spool->retarget(world.shore, third);
  world.fs.observe({});
  ASSERT_TRUE(retargeted.ok()) << retargeted.error().text;
  EXPECT_EQ(*retargeted, 3u);
  ASSERT_TRUE(world.settle_down());
  EXPECT_EQ(world.spool->status().in_custody, 3u);
  EXPECT_TRUE(world.spool->audit()->balanced());
}

TEST(SpoolUnfinished, QuarantineFileThatIsGone_IsNobodyElsesTrouble) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 3));
  DueCursor cursor;
  ASSERT_EQ(answer_all(*world.spool, world.hub, cursor, Fate::rejected), 3);
  ASSERT_TRUE(world.settle_down());
  for (const auto& path : world.fs.files()) {
    if (!path.starts_with("quarantine/")) continue;
    world.fs.erase(path);
    break;
  }
  const auto requeued = world.spool->requeue(everything(), [&](const Envelope&) { return std::optional(world.route); });
  ASSERT_TRUE(requeued.ok()) << requeued.error().text;
  EXPECT_EQ(*requeued, 2u);
  EXPECT_TRUE(world.maintain());
}

// Its file in quarantine was written, the index had no room, and the record left by another door.
TEST(SpoolUnfinished, SettingAsideThatWasOvertaken_LeavesNoFileBehind) {
  for (const bool discards : {false, true}) {
    SpoolWorld world;
    world.options.linger = Nanoseconds(0);
    bool full = false;
    FaultyFileSystem files(world.fs, [&](std::string_view verb, std::string_view path) -> std::optional<Error> {
      if (full && verb == "write" && path.starts_with("index.")) return Error{ErrorKind::full, "no space left"};
      return {};
    });
    auto opened = Spool::open(files, world.clock, world.options, world.key);
    ASSERT_TRUE(opened.ok());
    Spool& spool = **opened;
    const TargetNumber hub = *spool.target_number("hub"), shore = *spool.target_number("shore");
    world.route = *spool.route_number({{hub, true}, {shore, false}});
    ASSERT_TRUE(spool.put_batch(std::vector<Arrival>{world.message(1)}).ok());
    DueCursor of_hub, of_shore;
    ASSERT_EQ(answer_all(spool, hub, of_hub, discards ? Fate::rejected : Fate::delivered), 1);
    if (!discards) {
      ASSERT_EQ(answer_all(spool, shore, of_shore, Fate::rejected), 1);
    }
    full = true;
    ASSERT_TRUE(spool.maintain().ok());
    full = false;
    if (discards) {
      ASSERT_EQ(*spool.discard(everything(), false), 1u);
    }
    some_seconds(world, spool);
    const auto audit = spool.audit();
    ASSERT_TRUE(audit.ok());
    EXPECT_TRUE(audit->balanced()) << "taken " << audit->taken << " delivered " << audit->delivered << " quarantined "
                                   << audit->quarantined << " discarded " << audit->discarded;
  }
}

TEST(SpoolUnfinished, RefusalsOnAFullDisk_AreBounded_AndAskedAgainWhenThereIsRoom) {
  constexpr std::uint64_t kRecords = 6000;
  SpoolWorld world;
  world.options.journal_bytes = 4 * (1u << 20);
  world.options.linger = std::chrono::milliseconds(1);
  ASSERT_TRUE(world.open());
  for (std::uint64_t first = 1; first <= kRecords; first += 200) {
    ASSERT_TRUE(world.put(first, 200)) << world.last_error;
    world.clock.advance(seconds(2));
    ASSERT_TRUE(world.settle_down());
  }
  world.fs.set_capacity(1u << 20, 1u << 20);
  DueCursor cursor;
  while (answer_all(*world.spool, world.hub, cursor, Fate::rejected) > 0) ASSERT_TRUE(world.maintain());
  EXPECT_TRUE(world.spool->audit().ok()) << "a full disk is no reason not to answer";
  EXPECT_EQ(world.spool->status().in_custody, kRecords);
  world.fs.set_capacity(1ull << 40, 1ull << 30);
  for (int i = 0; i < 20; ++i) {
    world.clock.advance(seconds(2));
    ASSERT_TRUE(world.settle_down());
    answer_all(*world.spool, world.hub, cursor, Fate::rejected, 10'000);
  }
  EXPECT_EQ(world.spool->status().quarantined, kRecords);
  EXPECT_TRUE(world.spool->audit()->balanced());
}

// With a manifest from a backup the sequences go on above what is found, and what is found is compared all the same.
TEST(SpoolUnfinished, OlderManifest_FilesAndRowsAreCompared) {
  for (const bool one_is_gone : {false, true}) {
    SpoolWorld world;
    world.options.linger = Nanoseconds(0);
    ASSERT_TRUE(world.open());
    ASSERT_TRUE(world.put(1, 10));
    ASSERT_TRUE(world.close());
    const Bytes first = world.fs.bytes("manifest.0"), second = world.fs.bytes("manifest.1");
    const auto before = world.fs.files();
    ASSERT_TRUE(world.open());
    ASSERT_TRUE(world.put(11, 10));
    ASSERT_TRUE(world.close());
    std::string newest;
    for (const auto& path : world.fs.files()) {
      if (path.starts_with("records/") && std::ranges::find(before, path) == before.end()) newest = path;
    }
    if (one_is_gone) world.fs.erase(newest);
    world.fs.plant("manifest.0", first);
    world.fs.plant("manifest.1", second);
    ASSERT_TRUE(world.open()) << world.last_error;
    ASSERT_TRUE(world.settle_down());
    const auto audit = world.spool->audit();
    ASSERT_TRUE(audit.ok());
    EXPECT_EQ(audit->files_without_row, 0u);
    EXPECT_EQ(audit->lost, one_is_gone ? 1u : 0u);
    EXPECT_TRUE(audit->balanced());
  }
}

}  // namespace
}  // namespace holdfast
