// What is due, while what was settled has not left yet.
#include <gtest/gtest.h>

#include "tests/support/spool_world.h"

namespace holdfast {
namespace {

// The records in files that were settled since housekeeping's last round still have rows: a reader that comes by them
// again must come to the unsettled ones behind them before it comes to the journal's.
TEST(Due, BehindAPageOfSettledRows_NothingIsPassedOver) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 60));
  ASSERT_TRUE(world.close());
  world.forget();
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.settle_down());
  ASSERT_EQ(world.spool->status().in_files, 60U);
  ASSERT_TRUE(world.put(61, 60));
  ASSERT_EQ(world.deliver(world.hub, 25), 25);

  DueCursor again;
  std::uint64_t next = 26;
  while (next <= 120) {
    auto due = world.spool->due(world.hub, Drain::fifo, again, 10, 1 << 20);
    ASSERT_TRUE(due.ok());
    ASSERT_FALSE(due->empty());
    for (const DueRecord& record : *due) EXPECT_EQ(message_number(record.envelope), next++);
  }
}

// Who sleeps until something is due must hear of records that come to lie behind where the readers are.
TEST(Due, RecordsOfAGoneTarget_AreCalledOutWhenTheyAreRetargeted) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 10));
  const TargetNumber renamed = *world.spool->target_number("hub2");
  int called = 0;
  world.spool->on_due([&] { ++called; });
  ASSERT_TRUE(world.spool->retarget(world.hub, renamed).ok());
  EXPECT_GE(called, 1);
}

TEST(Due, RecordsThatTheIndexHadForgotten_AreCalledOutWhenTheyAreFound) {
  SpoolWorld world;
  world.options.linger = Nanoseconds(0);  // files alone: the journal does not know them either
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 60));
  ASSERT_TRUE(world.close());
  world.forget();
  for (const char* part : {"index.sqlite3", "index.sqlite3-wal"}) world.fs.erase(part);
  ASSERT_TRUE(world.open());
  int called = 0;
  world.spool->on_due([&] { ++called; });
  ASSERT_TRUE(world.settle_down());
  EXPECT_EQ(world.spool->status().in_files, 60U);
  EXPECT_GE(called, 1);
  world.expect_promises("the index was lost");
}

TEST(Due, KeepsToTheBytesThatThereIsRoomFor) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 5));
  DueCursor cursor;
  auto due = world.spool->due(world.hub, Drain::fifo, cursor, 5, 1 << 20);
  ASSERT_TRUE(due.ok());
  ASSERT_EQ(due->size(), 5u);
  const std::size_t two = due->at(0).bytes + due->at(1).bytes;
  DueCursor again;
  EXPECT_EQ(world.spool->due(world.hub, Drain::fifo, again, 5, two)->size(), 2u);
  EXPECT_EQ(world.spool->due(world.hub, Drain::fifo, again, 5, 1)->size(), 1u) << "at least one";
}

// Out of descriptors is not damage, and nothing is passed over because of it.
TEST(Due, WhatCannotBeReadNow_IsReadLater) {
  int looked = 0;
  for (std::uint64_t at = 1; at <= 20; ++at) {
    SpoolWorld world;
    ASSERT_TRUE(world.open());
    ASSERT_TRUE(world.put(1, 5));
    ASSERT_TRUE(world.close());
    world.forget();
    ASSERT_TRUE(world.open());
    ASSERT_TRUE(world.settle_down());
    DueCursor cursor;
    world.fs.count_reads(true);
    world.fs.fail_at(world.fs.steps() + at, {FaultKind::unavailable});
    std::size_t got = 0;
    bool dead = false;
    for (int turn = 0; turn < 3; ++turn) {
      auto due = world.spool->due(world.hub, Drain::fifo, cursor, 10, 1 << 20);
      if (due.ok()) got += due->size();
      dead = dead || (!due.ok() && due.error().kind == ErrorKind::io);
    }
    if (dead) continue;  // what the index could not read
    ++looked;
    EXPECT_EQ(got, 5u) << at;
  }
  EXPECT_GE(looked, 10);
}

// Between the look and the read the ring turns over: where the records were lie others, of their size.
TEST(Due, OfASegmentThatIsReusedMeanwhile_IsReadFromFiles) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1001, 20));
  world.clock.advance(std::chrono::seconds(2));
  ASSERT_TRUE(world.settle_down());
  ASSERT_EQ(world.spool->status().in_files, 20u);
  const auto lies_there = [&] {  // behind the segment's header and the batch's: frames
    const Bytes segment = world.fs.bytes("journal/0.seg");
    return Bytes(segment.begin() + 2 * 4096, segment.begin() + 3 * 4096);
  };
  const Bytes before = lies_there();
  bool turned = false;
  world.fs.count_reads(true);
  world.fs.observe([&](std::uint64_t, std::string_view verb, std::string_view path) {
    if (turned || verb != "read" || !path.starts_with("journal/")) return;
    turned = true;
    for (std::uint64_t first = 1021; first < 3000 && lies_there() == before; first += 50) {
      ASSERT_TRUE(world.put(first, 50));
      world.clock.advance(std::chrono::seconds(2));
      ASSERT_TRUE(world.settle_down());
    }
  });
  DueCursor cursor;
  const auto due = world.spool->due(world.hub, Drain::fifo, cursor, 20, 1 << 20);
  world.fs.observe({});
  ASSERT_TRUE(turned);
  ASSERT_NE(lies_there(), before) << "the ring did not turn over";
  ASSERT_TRUE(due.ok());
  ASSERT_EQ(due->size(), 20u);
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(message_number(due->at(i).envelope), 1001 + i);
}

}  // namespace
}  // namespace holdfast
