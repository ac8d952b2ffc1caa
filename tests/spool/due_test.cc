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

}  // namespace
}  // namespace holdfast
