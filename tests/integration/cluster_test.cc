// A hub of three servers with a replica of the stream on each: what a drain does when it loses its leader, and then its
// quorum.
#include <gtest/gtest.h>

#include "tests/integration/scene.h"
#include "tests/support/nats_cluster.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

TEST(Cluster, LeaderKilledInTheMiddleOfADrain_ThenASecondMember_NothingIsLost) {
  constexpr std::uint64_t kBefore = 10'000, kAfter = 500, kAll = kBefore + kAfter;
  NatsServer edge;
  NatsCluster hub;
  JetStreamClient(edge.url()).make_stream(kEdgeStream, {"telemetry.>"});
  StreamRequest stream;
  stream.name = kHubStream;
  stream.subjects = {"telemetry.>"};
  stream.duplicate_window = 10min;  // longer than the whole test
  hub.make_stream(stream);
  Appliance box(HOLDFAST_BINARY, {nats_source(edge.url(), kEdgeStream) +
                                  nats_target("hub", hub.url(), "window = 64\nstream = \"HUB\"")});
  const auto delivered_so_far = [&] { return box.status()["accounting"]["delivered"].count(); };

  JetStreamClient(edge.url()).publish_many(kSubject, 1, kBefore, 256);
  std::optional<std::size_t> leader;
  ASSERT_TRUE(eventually([&] { return (leader = hub.leader(kHubStream)).has_value(); }, kPatience));
  box.start();
  ASSERT_TRUE(eventually([&] { return delivered_so_far() >= 300; }, kPatience));
  hub.member(*leader).kill();
  EXPECT_LT(delivered_so_far(), kBefore) << "the drain was over before";
  ASSERT_TRUE(eventually([&] { return delivered_so_far() == kBefore; }, kPatience)) << "two of three are a quorum\n"
                                                                                    << pretty_json_text(box.status());

  // The one that leads now, too: one is no quorum.
  std::optional<std::size_t> second;
  ASSERT_TRUE(eventually(
      [&] {
        second = hub.leader(kHubStream);
        return second.has_value() && hub.member(*second).running();
      },
      kPatience));
  hub.member(*second).kill();
  JetStreamClient(edge.url()).publish_many(kSubject, kBefore + 1, kAfter, 256);
  ASSERT_TRUE(taken(box, kAll)) << "a hub without a quorum must not stop the intake";
  ASSERT_TRUE(eventually([&] { return needs_attention(box, "target_on_hold") || needs_attention(box, "lane_on_hold"); },
                         kPatience))
      << pretty_json_text(box.status());
  EXPECT_TRUE(stays([&] { return delivered_so_far() == kBefore; }, 2s)) << "no quorum can have taken it";
  EXPECT_EQ(box.target("hub")["waiting_records"].count(), kAfter);
  EXPECT_EQ(box.status()["quarantine"]["records"].count(), 0u);

  hub.member(*second).start();
  ASSERT_TRUE(delivered(box, kAll)) << pretty_json_text(box.status());
  EXPECT_EQ(arrivals(hub.member(*second), kHubStream, kAll), kEachOnce);
  const Json audit = box.audit();
  EXPECT_TRUE(audit["balanced"].flag()) << pretty_json_text(audit);
  EXPECT_EQ(audit["lost"].count(), 0u);
}

}  // namespace
}  // namespace holdfast
