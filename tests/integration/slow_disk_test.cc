// Flash that is worn or cheap: every sync takes 70 ms, and now and then one takes two seconds.
#include <gtest/gtest.h>

#include <chrono>

#include "tests/integration/scene.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMessages = 20'000;

TEST(SlowDisk, BatchesGrow_NothingComesTwice_AndItIsSaid) {
  Scene scene;  // messages come again after two seconds (ack_wait), unless they are kept alive
  scene.publish(1, kMessages);
  scene.box.launch({"LD_PRELOAD=" HOLDFAST_SLOW_SYNC, "SLOW_SYNC_MS=70", "SLOW_SYNC_STALL=2000", "SLOW_SYNC_EVERY=25"});
  ASSERT_TRUE(eventually([&] { return !scene.box.status().is_null(); }, kPatience)) << scene.box.log();
  const Nanoseconds began = system_clock().monotonic();
  bool said = false, kept_alive = false;
  const bool all = eventually(
      [&] {
        const Json status = scene.box.status();
        said = said || needs_attention(scene.box, "slow_disk");
        kept_alive = kept_alive || status["sources"].list()[0]["in_progress_sent"].count() > 0;
        return status["accounting"]["taken"].count() == kMessages && status["accounting"]["in_custody"].count() == 0;
      },
      kPatience);
  const double took = std::chrono::duration<double>(system_clock().monotonic() - began).count();
  ASSERT_TRUE(all) << pretty_json_text(scene.box.status());
  EXPECT_TRUE(said) << "a sync of two seconds is worth a word";
  EXPECT_TRUE(kept_alive);
  const Json source = scene.box.status()["sources"].list()[0];
  EXPECT_EQ(source["redelivered"].count(), 0u);
  EXPECT_EQ(arrivals(scene.hub, kHubStream, kMessages), kEachOnce);
  // A commit takes what arrived during the last: some 80 batches, each at 70 ms, every 25th a stall, and what the
  // upkeep syncs beside them.
  RecordProperty("seconds", std::to_string(took));
  EXPECT_LT(took, 60);
}

}  // namespace
}  // namespace holdfast
