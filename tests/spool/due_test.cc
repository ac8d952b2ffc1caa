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

}  // namespace
}  // namespace holdfast
