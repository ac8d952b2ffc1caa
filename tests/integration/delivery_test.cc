// What the appliance is for: everything that the edge had is on the hub, once, whatever server was away meanwhile.
#include <gtest/gtest.h>

#include <chrono>

#include "tests/integration/scene.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

void expect_all_done(Scene& scene, std::uint64_t count) {
  ASSERT_TRUE(delivered(scene.box, count)) << pretty_json_text(scene.box.status());
  EXPECT_EQ(arrivals(scene.hub, kHubStream, count), kEachOnce);
  const Json audit = scene.box.audit();
  EXPECT_TRUE(audit["balanced"].flag()) << pretty_json_text(audit);
  EXPECT_EQ(audit["lost"].count(), 0u);
  EXPECT_EQ(audit["taken"].count(), count);
  EXPECT_TRUE(eventually([&] { return scene.box.record_files().empty(); }));
}

TEST(Delivery, HubDownForTheWholeIntake_ThenEverythingArrives) {
  Scene scene;
  scene.hub.kill();
  scene.publish(1, 1500);
  scene.box.start();
  ASSERT_TRUE(in_files(scene.box, 1500)) << pretty_json_text(scene.box.status());
  EXPECT_EQ(scene.box.record_files().size(), 1500u);
  EXPECT_TRUE(eventually([&] { return needs_attention(scene.box, "target_on_hold"); }, kPatience));
  scene.hub.start();
  expect_all_done(scene, 1500);
}

TEST(Delivery, HubThatAnswersNothingForAWhile_GetsEachRecordOnce) {
  Scene scene;
  scene.publish(1, 2000);
  scene.box.start();
  ASSERT_TRUE(taken(scene.box, 300));
  scene.hub.freeze();
  ASSERT_TRUE(taken(scene.box, 2000)) << "a hub that hangs must not stop the intake";
  scene.hub.thaw();
  expect_all_done(scene, 2000);
}

// A server that is stopped says goodbye and syncs; one that is killed does neither.
class RestartUnderLoad : public testing::TestWithParam<bool> {
 protected:
  static void restart(NatsServer& server) {
    if (GetParam()) {
      server.kill();
    } else {
      server.stop();
    }
    server.start();
  }
};
INSTANTIATE_TEST_SUITE_P(Server, RestartUnderLoad, testing::Bool(),
                         [](const auto& with) { return with.param ? "Killed" : "Stopped"; });

TEST_P(RestartUnderLoad, OfTheEdge_LosesNothing) {
  Scene scene;
  scene.publish(1, 4000);
  scene.box.start();
  ASSERT_TRUE(taken(scene.box, 300));
  restart(scene.edge);
  ASSERT_TRUE(taken(scene.box, 2000));
  restart(scene.edge);
  scene.publish(4001, 100);
  expect_all_done(scene, 4100);
}

TEST_P(RestartUnderLoad, OfTheHub_LosesNothing) {
  Scene scene;
  scene.publish(1, 4000);
  scene.box.start();
  const auto on_hub = [&](std::uint64_t count) {
    return eventually([&] { return scene.box.status()["accounting"]["delivered"].count() >= count; }, kPatience);
  };
  ASSERT_TRUE(on_hub(300));
  restart(scene.hub);
  ASSERT_TRUE(on_hub(2000));
  restart(scene.hub);
  expect_all_done(scene, 4000);
}

TEST(Delivery, OneOfTwoTargetsDown_TheOtherGetsAll_AndFilesWaitForTheOneOnly) {
  NatsServer edge, near, far;
  JetStreamClient(edge.url()).make_stream(kEdgeStream, {"telemetry.>"});
  for (NatsServer* hub : {&near, &far}) JetStreamClient(hub->url()).make_stream(kHubStream, {"telemetry.>"});
  far.kill();
  Appliance box(HOLDFAST_BINARY, {nats_source(edge.url(), kEdgeStream) + nats_target("near", near.url()) +
                                  nats_target("far", far.url())});
  box.start();
  JetStreamClient(edge.url()).publish_many(kSubject, 1, 900, 256);
  ASSERT_TRUE(in_files(box, 900));
  EXPECT_TRUE(eventually([&] { return box.target("near")["waiting_records"].count() == 0; }, kPatience));
  EXPECT_EQ(arrivals(near, kHubStream, 900), kEachOnce);
  EXPECT_EQ(box.target("far")["waiting_records"].count(), 900u);
  Json page;
  page.set("limit", 1000);
  const Json list = box.ask("spool list", page);
  ASSERT_EQ(list["records"].list().size(), 900u);
  for (const Json& record : list["records"].list()) {
    ASSERT_EQ(record["waits_for"].list().size(), 1u);
    ASSERT_EQ(record["waits_for"].list()[0].text(), "far");
    ASSERT_EQ(record["in"].text(), "file");
  }

  far.start();
  ASSERT_TRUE(delivered(box, 900));
  EXPECT_EQ(arrivals(far, kHubStream, 900), kEachOnce);
  EXPECT_EQ(arrivals(near, kHubStream, 900), kEachOnce);
  EXPECT_TRUE(eventually([&] { return box.record_files().empty(); }));
}

TEST(Delivery, StreamThatIsNotThere_IsWaitedFor_SaidSo_AndPickedUp) {
  NatsServer edge, hub;
  JetStreamClient(hub.url()).make_stream(kHubStream, {"telemetry.>"});
  Appliance box(HOLDFAST_BINARY, {nats_source(edge.url(), kEdgeStream) + nats_target("hub", hub.url())});
  box.start();
  ASSERT_TRUE(eventually([&] { return needs_attention(box, "source_no_stream"); }, kPatience));
  EXPECT_TRUE(eventually([&] { return box.log_has("has no stream"); }, kPatience)) << box.log();
  JetStreamClient(edge.url()).make_stream(kEdgeStream, {"telemetry.>"});
  JetStreamClient(edge.url()).publish_many(kSubject, 1, 100);
  ASSERT_TRUE(delivered(box, 100)) << pretty_json_text(box.status());
  EXPECT_FALSE(needs_attention(box, "source_no_stream"));
}

// The hub has no stream for one subject: that lane waits, and nothing else does.
TEST(Delivery, SubjectThatTheHubDoesNotTake_WaitsAlone) {
  NatsServer edge, hub;
  JetStreamClient(edge.url()).make_stream(kEdgeStream, {"telemetry.>"});
  JetStreamClient(hub.url()).make_stream(kHubStream, {"telemetry.a"});
  Appliance box(HOLDFAST_BINARY, {nats_source(edge.url(), kEdgeStream) + nats_target("hub", hub.url())});
  JetStreamClient publisher(edge.url());
  publisher.publish_many("telemetry.b", 1, 50);
  publisher.publish_many("telemetry.a", 51, 500);
  box.start();
  EXPECT_TRUE(eventually([&] { return box.status()["accounting"]["delivered"].count() == 500; }, kPatience));
  EXPECT_EQ(box.target("hub")["waiting_records"].count(), 50u);
  EXPECT_TRUE(eventually([&] { return needs_attention(box, "lane_on_hold"); }, kPatience));

  JetStreamClient(hub.url()).make_stream("LATE", {"telemetry.b"});
  Json kick;
  kick.set("target", "hub");
  EXPECT_FALSE(box.ask("target kick", kick).is_null());
  ASSERT_TRUE(delivered(box, 550)) << pretty_json_text(box.status());
  EXPECT_EQ(arrivals(hub, "LATE", 50), kEachOnce);
}

// Each with its own way of naming messages; their sequence numbers are the same.
TEST(Delivery, TwoSourcesOfTwoStreams_ShareOneSpool) {
  NatsServer edge, hub;
  const std::string orders = "[[source]]\nname = \"orders\"\ntype = \"nats\"\nurl = \"" + edge.url() +
                             "\"\nstream = \"ORDERS\"\nack_wait = \"2s\"\nidentity = \"message_id\"\n\n";
  Appliance box(HOLDFAST_BINARY, {nats_source(edge.url(), kEdgeStream) + orders + nats_target("hub", hub.url())});
  JetStreamClient client(edge.url());
  client.make_stream(kEdgeStream, {"telemetry.>"});
  client.make_stream("ORDERS", {"orders.>"});
  JetStreamClient(hub.url()).make_stream(kHubStream, {"telemetry.>", "orders.>"});
  client.publish_many(kSubject, 1, 300, 64);
  client.publish_many("orders.a", 301, 300, 64, "order-");
  for (int life = 1; life <= 2; ++life) {
    box.start();
    ASSERT_TRUE(delivered(box, 600)) << pretty_json_text(box.status());
    ASSERT_TRUE(eventually(
        [&] {
          const Json status = box.status();
          return status["sources"].list()[0]["acknowledged"].count() == 300 &&
                 status["sources"].list()[1]["acknowledged"].count() == 300;
        },
        kPatience));
    const Json status = box.status();
    const char* verdict = life == 1 ? "accepted" : "duplicates_in_ledger";
    EXPECT_EQ(status["sources"].list()[0]["verdicts"]["stream_sequence"][verdict].count(), 300u);
    EXPECT_EQ(status["sources"].list()[1]["verdicts"]["message_id"][verdict].count(), 300u);
    ASSERT_EQ(box.terminate(), 0);
    client.delete_consumer(kEdgeStream, "holdfast");  // everything comes again
    client.delete_consumer("ORDERS", "holdfast");
  }
  EXPECT_EQ(arrivals(hub, kHubStream, 600), kEachOnce);
}

}  // namespace
}  // namespace holdfast
