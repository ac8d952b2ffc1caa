// Names of records that have left, while they are still there: whose they are, what they count for, when they go.
#include <gtest/gtest.h>

#include <algorithm>

#include "spool/journal.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/spool_world.h"

namespace holdfast {
namespace {

Arrival by_id(const SpoolWorld& world, std::uint64_t number) {
  Arrival arrival = world.message(number);
  arrival.identity = {"msg:" + std::to_string(number), Strategy::message_id};
  return arrival;
}

// Another message of the same id and content, which nobody remembers: a redelivery would be known by its place.
Arrival once_more(const SpoolWorld& world, std::uint64_t number) {
  Arrival arrival = by_id(world, number);
  arrival.envelope.origin.sequence += 1'000'000;
  return arrival;
}

// 2500 records in files, forgotten by the ledger, delivered; some names are still there.
void many_names_wait(SpoolWorld& world) {
  ASSERT_TRUE(world.open());
  for (std::uint64_t first = 1; first < 3000; first += 250) {
    std::vector<Arrival> arrivals;
    for (std::uint64_t i = 0; i < 250; ++i) arrivals.push_back(by_id(world, first + i));
    ASSERT_TRUE(world.spool->put_batch(arrivals).ok());
  }
  ASSERT_TRUE(world.close());
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.settle_down());
  for (int i = 0; i < 40; ++i) {
    world.clock.advance(std::chrono::seconds(100));
    ASSERT_TRUE(world.settle_down());
  }
  ASSERT_EQ(world.deliver(world.hub, 4000), 3000);
  ASSERT_TRUE(world.maintain());
  ASSERT_EQ(world.spool->status().in_custody, 0u);
  ASSERT_GT(world.fs.files("records/").size(), 1500u);
}

TEST(LeftNames, TakenAgainAfterTheWindow_WhileTheNameOfTheFirstWaits_IsDelivered) {
  SpoolWorld world;
  world.options.ledger_window = std::chrono::seconds(10);
  many_names_wait(world);
  auto verdicts = world.spool->put_batch(std::vector<Arrival>{once_more(world, 3000)});
  ASSERT_TRUE(verdicts.ok()) << verdicts.error().text;
  ASSERT_EQ(verdicts->front().kind, VerdictKind::accepted);
  world.clock.advance(std::chrono::seconds(2));
  ASSERT_TRUE(world.maintain(2));
  EXPECT_TRUE(world.spool->list_quarantine(0, 10)->empty()) << "a record that nobody has was set aside";
  EXPECT_EQ(world.due_count(world.hub), 1u);
}

TEST(LeftNames, TakenAgainIntoAFile_WhileTheNameOfTheFirstWaits_IsNotTheEndOfTheLife) {
  SpoolWorld world;
  world.options.ledger_window = std::chrono::seconds(10);
  world.options.linger = Nanoseconds(0);
  many_names_wait(world);
  auto verdicts = world.spool->put_batch(std::vector<Arrival>{once_more(world, 3000)});
  EXPECT_TRUE(verdicts.ok()) << verdicts.error().text;
}

// The same without any unlink that waits: still in custody after the window.
TEST(LeftNames, InCustodyForLongerThanTheWindow_TakenAgainIntoAFile) {
  SpoolWorld world;
  world.options.ledger_window = std::chrono::seconds(10);
  world.options.linger = Nanoseconds(0);
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.spool->put_batch(std::vector<Arrival>{by_id(world, 1)}).ok());
  for (int i = 0; i < 40; ++i) {
    world.clock.advance(std::chrono::seconds(100));
    ASSERT_TRUE(world.settle_down());
  }
  auto verdicts = world.spool->put_batch(std::vector<Arrival>{once_more(world, 1)});
  EXPECT_TRUE(verdicts.ok()) << verdicts.error().text;
}

// Out of descriptors for a moment after a start, while names are compared.
TEST(LeftNames, NameThatCouldNotGoWhileNamesAreCompared_IsNotTakenForARecord) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 6));
  ASSERT_TRUE(world.close());
  bool struck = false;
  FaultyFileSystem faulty(world.fs, [&](std::string_view verb, std::string_view path) -> std::optional<Error> {
    if (!struck || verb != "remove" || !path.starts_with("records/")) return std::nullopt;
    return Error{ErrorKind::unavailable, "too many open files"};
  });
  auto opened = Spool::open(faulty, world.clock, world.options, world.key);
  ASSERT_TRUE(opened.ok());
  Spool& spool = **opened;
  spool.set_active_targets({world.hub});
  DueCursor cursor;
  auto due = spool.due(world.hub, Drain::fifo, cursor, 3, 1 << 20);
  ASSERT_EQ(due->size(), 3u);
  for (const DueRecord& record : *due)
    ASSERT_TRUE(
        spool.settle(world.hub, std::vector<Settlement>{{record.sequence, Fate::delivered, Reason::none, {}}}).ok());
  struck = true;
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(spool.maintain().ok());
  EXPECT_EQ(spool.status().in_custody, 3u) << "adopted again";
  struck = false;
  for (int i = 0; i < 30; ++i) {
    world.clock.advance(std::chrono::seconds(2));
    ASSERT_TRUE(spool.maintain().ok());
  }
  DueCursor again;
  auto rest = spool.due(world.hub, Drain::fifo, again, 10, 1 << 20);
  ASSERT_TRUE(rest.ok());
  EXPECT_EQ(rest->size(), 3u);
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(spool.maintain().ok());
  EXPECT_EQ(spool.status().totals.lost, 0u);
  EXPECT_TRUE(spool.audit()->balanced());
}

// The target refuses a record whose frame in the journal has rotted and whose file is sound.
TEST(LeftNames, SetAsideWhileTheJournalHasRottenBytes_KeepsTheSoundOnes) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 3));
  world.clock.advance(std::chrono::seconds(2));
  ASSERT_TRUE(world.settle_down());
  const auto paths = world.fs.files("records/");
  const Bytes segment = world.fs.bytes("journal/0.seg");
  for (const auto& path : paths) {
    const Bytes file = world.fs.bytes(path);
    const auto frame = std::search(segment.begin(), segment.end(), file.begin(), file.end());
    ASSERT_NE(frame, segment.end());
    world.fs.flip("journal/0.seg", static_cast<std::size_t>(frame - segment.begin()) + file.size() - 20);
  }
  ASSERT_EQ(world.deliver(world.hub, 1, Fate::rejected), 1);
  ASSERT_TRUE(world.settle_down());
  auto quarantined = world.spool->list_quarantine(0, 10);
  ASSERT_EQ(quarantined->size(), 1u);
  auto shown = world.spool->show_quarantined(quarantined->front().id.hex());
  ASSERT_TRUE(shown.ok());
  EXPECT_EQ(message_number(shown->body.envelope), 1u) << "the sound copy is gone, the rotten one is kept";
}

// A sector of the journal that cannot be read; the records have been in files for long.
TEST(LeftNames, JournalThatCannotBeRead_IsNotTheEndWhileTheFileIsThere) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  world.forget();
  bool struck = false;
  FaultyFileSystem faulty(world.fs, [&](std::string_view verb, std::string_view path) -> std::optional<Error> {
    if (!struck || verb != "read" || !path.starts_with("journal/")) return std::nullopt;
    return Error{ErrorKind::io, "Input/output error"};
  });
  auto opened = Spool::open(faulty, world.clock, world.options, world.key);
  ASSERT_TRUE(opened.ok());
  world.spool = std::move(*opened);
  world.spool->set_active_targets({world.hub});
  ASSERT_TRUE(world.put(1, 3));
  world.clock.advance(std::chrono::seconds(2));
  ASSERT_TRUE(world.settle_down());
  ASSERT_EQ(world.fs.files("records/").size(), 3u);
  struck = true;
  EXPECT_EQ(world.deliver(world.hub), 3) << world.last_error;
  struck = false;
  world.spool.reset();
}

// A spool whose record names cannot go while `stuck`.
struct StuckNames {
  SpoolWorld world;
  bool stuck = false;
  FaultyFileSystem faulty{world.fs, [this](std::string_view verb, std::string_view path) -> std::optional<Error> {
                            if (!stuck || verb != "remove" || !path.starts_with("records/")) return std::nullopt;
                            return Error{ErrorKind::unavailable, "too many open files"};
                          }};

  void begin(std::uint64_t records) {
    ASSERT_TRUE(world.open());
    world.forget();
    auto opened = Spool::open(faulty, world.clock, world.options, world.key);
    ASSERT_TRUE(opened.ok());
    world.spool = std::move(*opened);
    world.spool->set_active_targets({world.hub});
    ASSERT_TRUE(world.settle_down());
    for (std::uint64_t first = 1; first <= records; first += 50) ASSERT_TRUE(world.put(first, 50));
    world.clock.advance(std::chrono::seconds(2));
    ASSERT_TRUE(world.settle_down());
    world.clock.advance(std::chrono::seconds(2));
    ASSERT_TRUE(world.settle_down());
    ASSERT_EQ(world.fs.files("records/").size(), records);
  }
};

TEST(LeftNames, NamesThatCannotGo_KeepTheirTombstones_AndGoLater) {
  StuckNames names;
  names.begin(200);
  SpoolWorld& world = names.world;
  names.stuck = true;
  ASSERT_EQ(world.deliver(world.hub), 200);
  ASSERT_TRUE(world.settle_down());
  EXPECT_EQ(world.spool->status().in_custody, 0u);
  EXPECT_EQ(world.fs.files("records/").size(), 200u);
  auto audit = world.spool->audit();
  ASSERT_TRUE(audit.ok());
  EXPECT_TRUE(audit->balanced()) << "a name that waits is nobody's record";
  EXPECT_EQ(audit->files_without_row, 0u);
  // The next life knows of them, though the journal does not.
  ASSERT_TRUE(world.close());
  names.stuck = false;
  ASSERT_TRUE(world.open()) << world.last_error;
  ASSERT_TRUE(world.settle_down());
  EXPECT_EQ(world.due_count(world.hub), 0u);
  EXPECT_TRUE(world.fs.files("records/").empty());
  EXPECT_TRUE(world.spool->audit()->balanced());
}

TEST(LeftNames, NamesThatCannotGo_GoInTheSameLifeWhenTheyCan) {
  StuckNames names;
  names.begin(200);
  SpoolWorld& world = names.world;
  names.stuck = true;
  ASSERT_EQ(world.deliver(world.hub), 200);
  ASSERT_TRUE(world.maintain(3));
  names.stuck = false;
  ASSERT_TRUE(world.settle_down());
  EXPECT_TRUE(world.fs.files("records/").empty());
  auto audit = world.spool->audit();
  EXPECT_TRUE(audit->balanced());
  EXPECT_EQ(audit->files_without_row, 0u);
  // The count of names is right again: one that nobody knows of is seen.
  Bytes junk(100, 1);
  world.fs.plant("records/00/" + std::string(64, '0') + ".rec", junk);
  EXPECT_EQ(world.spool->audit()->files_without_row, 1u);
  world.spool.reset();
}

TEST(LeftNames, NamesThatCannotGo_AreOnTheDiskStill) {
  StuckNames names;
  names.begin(200);
  SpoolWorld& world = names.world;
  const auto before = world.spool->status().disk_bytes;
  names.stuck = true;
  ASSERT_EQ(world.deliver(world.hub), 200);
  ASSERT_TRUE(world.settle_down());
  EXPECT_GE(world.spool->status().disk_bytes, before);
  names.stuck = false;
  ASSERT_TRUE(world.settle_down());
  const auto after = world.spool->status().disk_bytes;
  EXPECT_LE(after + 150 * 4096, before);
  EXPECT_LT(after, before);
  world.spool.reset();
}

TEST(LeftNames, NamesThatCannotGo_CountAgainstMaxBytes) {
  StuckNames names;
  names.begin(400);
  SpoolWorld& world = names.world;
  const auto full = world.spool->status().disk_bytes;
  ASSERT_TRUE(world.close());
  names.world.options.limits.max_bytes = full - 50 * 4096;
  auto opened = Spool::open(names.faulty, world.clock, world.options, world.key);
  ASSERT_TRUE(opened.ok());
  world.spool = std::move(*opened);
  world.cursors.clear();
  world.spool->set_active_targets({world.hub});
  ASSERT_TRUE(world.settle_down());
  ASSERT_TRUE(world.spool->pressure().paused());
  names.stuck = true;
  ASSERT_EQ(world.deliver(world.hub), 400);
  ASSERT_TRUE(world.settle_down());
  EXPECT_TRUE(world.spool->pressure().paused()) << "nothing has become free";
  names.stuck = false;
  ASSERT_TRUE(world.settle_down());
  EXPECT_FALSE(world.spool->pressure().paused());
  world.spool.reset();
}

// What cannot go is no reason to try without a pause.
TEST(LeftNames, NamesThatCannotGo_AreNoReasonToHurry) {
  StuckNames names;
  names.begin(2500);
  SpoolWorld& world = names.world;
  names.stuck = true;
  ASSERT_EQ(world.deliver(world.hub, 3000), 2500);
  EXPECT_TRUE(world.settle_down(10));
  EXPECT_GT(*world.spool->maintain(), Nanoseconds(0));
  names.stuck = false;
  world.spool.reset();
}

// A stop with time left takes the names along.
TEST(LeftNames, Stop_LeavesNoNameOfWhatHasLeft) {
  StuckNames names;
  names.begin(2500);
  SpoolWorld& world = names.world;
  ASSERT_EQ(world.deliver(world.hub, 3000), 2500);
  ASSERT_TRUE(world.close());
  EXPECT_TRUE(world.fs.files("records/").empty());
}

// What is settled while rows and names are being compared is neither counted twice nor taken for a find.
TEST(LeftNames, NamesThatGoWhileRowsAreCompared_AreCountedRight) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 100));
  ASSERT_TRUE(world.close());
  ASSERT_TRUE(world.open());
  ASSERT_EQ(world.deliver(world.hub, 60), 60);  // before the first row was compared
  ASSERT_TRUE(world.settle_down());
  auto audit = world.spool->audit();
  EXPECT_EQ(audit->files_without_row, 0u);
  EXPECT_TRUE(audit->balanced());
}

TEST(LeftNames, NamesOfWhatLeftWhileNamesAreCompared_AreNoRecords) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  for (std::uint64_t first = 1; first < 3000; first += 250) ASSERT_TRUE(world.put(first, 250));
  ASSERT_TRUE(world.close());
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.maintain());  // tombstones are done with
  ASSERT_EQ(world.deliver(world.hub, 4000), 3000);
  ASSERT_TRUE(world.maintain());
  auto audit = world.spool->audit();  // compares to the end, and lets nothing go meanwhile
  ASSERT_TRUE(audit.ok());
  EXPECT_TRUE(audit->balanced());
  EXPECT_EQ(audit->taken, 3000u);
  EXPECT_EQ(world.due_count(world.hub), 0u);
}

}  // namespace
}  // namespace holdfast
