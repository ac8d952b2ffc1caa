// A data key seals so many bytes and no more, in a spool that is never stopped.
#include <gtest/gtest.h>

#include "spool/manifest.h"
#include "tests/support/spool_world.h"

namespace holdfast {
namespace {

TEST(SpoolRotation, KeysChangeWhileItRuns_AndWhatTheOldOnesSealedIsRead) {
  SpoolWorld world;
  world.options.data_key_bytes = 20'000;
  ASSERT_TRUE(world.open());
  for (std::uint64_t first = 1; first < 400; first += 10) {
    ASSERT_TRUE(world.put(first, 10));
    ASSERT_EQ(world.deliver(world.hub, 9), 9);
    world.clock.advance(std::chrono::seconds(2));
    ASSERT_TRUE(world.maintain(2));
  }
  const auto loaded = load_manifest(world.fs);
  ASSERT_TRUE(loaded.ok());
  EXPECT_GT(loaded->manifest.current_data_key, 3u);
  world.expect_promises("rotated");
}

}  // namespace
}  // namespace holdfast
