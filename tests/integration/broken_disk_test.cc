// A disk that turns read-only under the running process, as ext4 does when it finds itself damaged: nothing more is
// acknowledged, the process leaves with 75 and says why, every start says why as well; on the mended disk the next
// start goes on, and nothing that was acknowledged is missing.
#include <gtest/gtest.h>

#include "appliance/exit_code.h"
#include "tests/integration/scene.h"
#include "tests/support/loop_disk.h"

namespace holdfast {
namespace {

struct Broken {
  const char* linger;  // records are in the journal when it happens, or in files, or go to files at once
  bool ends;
};

class BrokenDisk : public testing::TestWithParam<Broken> {};

TEST_P(BrokenDisk, EndsTheLife_AndTheNextOneGoesOnWhenItIsMended) {
  LoopDisk disk(128);
  if (!disk.mounted()) GTEST_SKIP() << disk.trouble();
  constexpr std::uint64_t kBefore = 3000, kAll = 6000;
  NatsServer edge, hub;
  JetStreamClient(edge.url()).make_stream(kEdgeStream, {"telemetry.>"});
  JetStreamClient(hub.url()).make_stream(kHubStream, {"telemetry.>"});
  hub.kill();
  Appliance box(HOLDFAST_BINARY, {nats_source(edge.url(), kEdgeStream) + nats_target("hub", hub.url()),
                                  std::string("journal_bytes = \"4MiB\"\nlinger = \"") + GetParam().linger + "\"",
                                  disk.path() + "/state", "min_free_bytes = \"8MiB\""});
  JetStreamClient(edge.url()).publish_many(kSubject, 1, kBefore, 300);
  box.start();
  ASSERT_TRUE(eventually([&] { return box.status()["accounting"]["taken"].count() == kBefore; }, kPatience));
  if (!disk.fail()) GTEST_SKIP() << "this kernel cannot be told that an ext4 is damaged";

  JetStreamClient(edge.url()).publish_many(kSubject, kBefore + 1, kAll - kBefore, 300);
  if (GetParam().ends) {
    EXPECT_EQ(box.end(), kExitTemporary) << box.log();
    EXPECT_TRUE(box.log_has("Read-only file system")) << box.log();
  } else {
    EXPECT_TRUE(eventually([&] { return box.log_has("can only be read"); }, kPatience)) << box.log();
    EXPECT_EQ(box.status()["accounting"]["taken"].count(), kBefore);
    box.kill9();
  }
  EXPECT_EQ(box.run_to_the_end(), kExitTemporary) << box.log_of_this_start();
  EXPECT_TRUE(box.log_has("Read-only file system")) << box.log_of_this_start();

  ASSERT_TRUE(disk.mend()) << disk.trouble();
  hub.start();
  box.start();
  ASSERT_TRUE(eventually([&] { return JetStreamClient(hub.url()).stream(kHubStream).messages >= kAll; }, kPatience))
      << pretty_json_text(box.status()) << box.log();
  EXPECT_EQ(arrivals(hub, kHubStream, kAll).missing, 0u);
  const Json audit = box.audit();
  EXPECT_TRUE(audit["balanced"].flag()) << pretty_json_text(audit);
  EXPECT_EQ(audit["lost"].count(), 0u);
  EXPECT_EQ(box.terminate(), 0);
}

INSTANTIATE_TEST_SUITE_P(Linger, BrokenDisk,
                         testing::Values(Broken{"10m", true}, Broken{"200ms", true}, Broken{"0s", false}),
                         [](const auto& broken) { return std::string("Of") + broken.param.linger; });

}  // namespace
}  // namespace holdfast
