// What has no identity, and what is another under a known one: kept, published aside or forwarded, and never in the
// way.
#include <gtest/gtest.h>

#include "tests/integration/scene.h"
#include "tests/support/raw_publish.h"

namespace holdfast {
namespace {

const Json& verdicts_of(const Json& status, const char* strategy) {
  return status["sources"].list()[0]["verdicts"][strategy];
}

bool all_acknowledged(Scene& scene, std::uint64_t count) {
  return eventually([&] { return scene.box.status()["sources"].list()[0]["acknowledged"].count() == count; },
                    kPatience);
}

TEST(DeadLetters, WhatHasNoIdentity_IsPublishedAside_AndTheRestOfItsBatchGoesOn) {
  Scene scene("", "identity = \"message_id\"\ndead_letter = \"dead.telemetry\"");
  JetStreamClient edge(scene.edge.url());
  edge.make_stream("DEAD", {"dead.>"});
  for (int n = 1; n <= 40; ++n) {
    const std::string number = std::to_string(n);
    const std::vector<Header> id{{"Nats-Msg-Id", "m" + number}};
    edge.publish(kSubject, number, n % 10 == 0 ? std::vector<Header>{{"Trace", number}} : id);
  }
  scene.box.start();
  ASSERT_TRUE(delivered(scene.box, 36)) << pretty_json_text(scene.box.status());
  ASSERT_TRUE(all_acknowledged(scene, 40)) << pretty_json_text(scene.box.status());
  const auto letters = edge.read_all("DEAD");
  ASSERT_EQ(letters.size(), 4u);
  EXPECT_EQ(letters[0].payload, "10");
  EXPECT_EQ(letters[0].header("Holdfast-Error"), "no_identity");
  EXPECT_EQ(letters[0].header("Holdfast-Original-Subject"), kSubject);
  EXPECT_EQ(letters[0].header("Holdfast-Sequence"), "10");
  EXPECT_EQ(letters[0].header("Trace"), "10");
  EXPECT_EQ(letters[0].header("Nats-Msg-Id").substr(0, 8), "refused:");
  EXPECT_EQ(scene.box.status()["sources"].list()[0]["dead_letters"].count(), 4u);
  EXPECT_EQ(scene.box.status()["accounting"]["taken"].count(), 36u);

  // All of it comes again: nothing is published twice.
  ASSERT_EQ(scene.box.terminate(), 0);
  edge.delete_consumer(kEdgeStream, "holdfast");
  scene.box.start();
  ASSERT_TRUE(all_acknowledged(scene, 40)) << pretty_json_text(scene.box.status());
  EXPECT_EQ(edge.stream("DEAD").messages, 4u);
}

TEST(DeadLetters, WithoutAStreamForThem_GoToQuarantine) {
  Scene scene("", "identity = \"message_id\"\ndead_letter = \"dead.telemetry\"");
  scene.publish(1, 5);
  scene.box.start();
  ASSERT_TRUE(all_acknowledged(scene, 5)) << pretty_json_text(scene.box.status());
  const Json status = scene.box.status();
  EXPECT_EQ(status["quarantine"]["records"].count(), 5u);
  EXPECT_EQ(verdicts_of(status, "message_id")["refused"].count(), 5u);
  EXPECT_EQ(verdicts_of(status, "message_id")["last_reason"].text(), "no_identity");
}

TEST(DeadLetters, LargerThanTheServerTakes_GoToQuarantine) {
  Scene scene("max_record_bytes = \"64KiB\"", "dead_letter = \"dead.telemetry\"");
  JetStreamClient edge(scene.edge.url());
  StreamRequest small{.name = "DEAD", .subjects = {"dead.>"}};
  small.max_message_bytes = 100'000;
  edge.make_stream(small);
  edge.publish(kSubject, std::string(90'000, 'x'));
  edge.publish(kSubject, std::string(200'000, 'x'));
  edge.publish(kSubject, "3");
  scene.box.start();
  ASSERT_TRUE(all_acknowledged(scene, 3)) << pretty_json_text(scene.box.status());
  EXPECT_EQ(edge.read_all("DEAD").size(), 1u);
  EXPECT_EQ(scene.box.status()["quarantine"]["records"].count(), 1u);
  EXPECT_TRUE(delivered(scene.box, 1));
}

// An id that is empty names nothing: not even what the next line says.
TEST(Headers, AnEmptyOne_IsEmpty_AndTheNextIsTheNext) {
  Scene scene("", "identity = \"message_id\"");
  const int port = scene.edge.port();
  publish_raw(port, kSubject, "NATS/1.0\r\nmessage-id:\r\nX-Kind: alarm\r\n\r\n", "fire");
  publish_raw(port, kSubject, "NATS/1.0\r\nmessage-id:\r\nX-Kind: alarm\r\n\r\n", "fire");
  publish_raw(port, kSubject, "NATS/1.0\r\nmessage-id:\r\nNats-Message-Id: real\r\nX-Last:\r\n\r\n", "3");
  scene.box.start();
  ASSERT_TRUE(all_acknowledged(scene, 3)) << pretty_json_text(scene.box.status());
  ASSERT_TRUE(delivered(scene.box, 1)) << pretty_json_text(scene.box.status());
  EXPECT_EQ(scene.box.status()["quarantine"]["records"].count(), 2u);
  EXPECT_EQ(verdicts_of(scene.box.status(), "message_id")["last_reason"].text(), "no_identity");
  const auto arrived = JetStreamClient(scene.hub.url()).read_all(kHubStream);
  ASSERT_EQ(arrived.size(), 1u);
  EXPECT_EQ(arrived[0].header("Nats-Msg-Id"), "msg:real");
  EXPECT_EQ(arrived[0].header("Nats-Message-Id"), "real");
}

TEST(Headers, ThatCannotBeRead_AreKeptAsTheyCame) {
  Scene scene;
  publish_raw(scene.edge.port(), kSubject, "NATS/1.0\r\nX-Real: v\r\nno header\r\n\r\n", "1");
  scene.box.start();
  ASSERT_TRUE(all_acknowledged(scene, 1)) << pretty_json_text(scene.box.status());
  EXPECT_EQ(scene.box.status()["quarantine"]["records"].count(), 1u);
  EXPECT_EQ(scene.box.command({"quarantine", "requeue", "all"}).code, 0);
  ASSERT_TRUE(delivered(scene.box, 1)) << pretty_json_text(scene.box.status());
  const auto arrived = JetStreamClient(scene.hub.url()).read_all(kHubStream);
  ASSERT_EQ(arrived.size(), 1u);
  EXPECT_EQ(arrived[0].header("Holdfast-Undecoded-Headers"), "TkFUUy8xLjANClgtUmVhbDogdg0Kbm8gaGVhZGVyDQoNCg==");
}

TEST(HeadersOnly, ThePayloadIsKnownToBeLeftOut_AndTheTargetSeesIt) {
  Scene scene("", "headers_only = true");
  scene.publish(1, 3, 500);
  scene.box.start();
  ASSERT_TRUE(delivered(scene.box, 3)) << pretty_json_text(scene.box.status());
  const auto arrived = JetStreamClient(scene.hub.url()).read_all(kHubStream);
  ASSERT_EQ(arrived.size(), 3u);
  EXPECT_EQ(arrived[0].payload, "");
  EXPECT_EQ(arrived[0].header("Nats-Msg-Size"), "500");
}

TEST(HeadersOnly, AskedForByOthersOnly_HoldsTheSource) {
  Scene scene;
  ConsumerConfig consumer;
  consumer.name = "holdfast";
  consumer.ack_wait = std::chrono::seconds(2);
  consumer.headers_only = true;
  JetStreamClient(scene.edge.url()).make_consumer(kEdgeStream, consumer);
  scene.publish(1, 3, 500);
  scene.box.start();
  ASSERT_TRUE(eventually([&] { return scene.box.status()["sources"].list()[0]["state"].text() == "held"; }, kPatience))
      << pretty_json_text(scene.box.status());
  JetStreamClient(scene.edge.url()).delete_consumer(kEdgeStream, "holdfast");
  EXPECT_TRUE(delivered(scene.box, 3)) << pretty_json_text(scene.box.status());
  EXPECT_EQ(arrivals(scene.hub, kHubStream, 3), kEachOnce);
}

TEST(Backoff, IsTakenByTheServer) {
  Scene scene("", "backoff = [\"1s\", \"5s\"]\nmax_deliver = 10");
  scene.publish(1, 50);
  scene.box.start();
  ASSERT_TRUE(delivered(scene.box, 50)) << pretty_json_text(scene.box.status());
  EXPECT_EQ(JetStreamClient(scene.edge.url()).consumer(kEdgeStream, "holdfast")->config.backoff.size(), 2u);
}

void publish_two_of_one_id(Scene& scene, const std::string& second) {
  JetStreamClient edge(scene.edge.url());
  edge.publish(kSubject, "1", {{"Nats-Message-Id", "one"}});
  edge.publish(kSubject, second, {{"Nats-Message-Id", "one"}});
}

TEST(Conflicts, AreForwardedWhenTheSourceAsksForIt) {
  Scene scene("", "identity = \"message_id\"\non_conflict = \"forward\"");
  publish_two_of_one_id(scene, "2");
  scene.box.start();
  ASSERT_TRUE(delivered(scene.box, 2)) << pretty_json_text(scene.box.status());
  const auto arrived = JetStreamClient(scene.hub.url()).read_all(kHubStream);
  ASSERT_EQ(arrived.size(), 2u);
  EXPECT_EQ(arrived[0].header("Nats-Msg-Id"), "msg:one");
  EXPECT_EQ(arrived[1].header("Nats-Msg-Id").rfind("msg:one:conflict:", 0), 0u);
  const Json status = scene.box.status();
  EXPECT_EQ(verdicts_of(status, "message_id")["conflicts"].count(), 1u);
  EXPECT_EQ(status["quarantine"]["records"].count(), 0u);
}

TEST(Duplicates, AreKeptWhenTheSourceAsksForIt_AndARedeliveryIsNone) {
  Scene scene("", "identity = \"message_id\"\non_duplicate = \"quarantine\"");
  publish_two_of_one_id(scene, "1");
  for (int life = 1; life <= 3; ++life) {
    scene.box.start();
    ASSERT_TRUE(all_acknowledged(scene, 2)) << pretty_json_text(scene.box.status());
    EXPECT_EQ(scene.box.status()["quarantine"]["records"].count(), 1u) << "life " << life;
    ASSERT_EQ(scene.box.terminate(), 0);
    JetStreamClient(scene.edge.url()).delete_consumer(kEdgeStream, "holdfast");
  }
  EXPECT_EQ(JetStreamClient(scene.hub.url()).stream(kHubStream).messages, 1u);
}

TEST(ConfirmedAcknowledgement, IsWaitedFor) {
  Scene scene("", "ack = \"confirmed\"");
  scene.publish(1, 1000);
  scene.box.start();
  ASSERT_TRUE(delivered(scene.box, 1000)) << pretty_json_text(scene.box.status());
  ASSERT_TRUE(all_acknowledged(scene, 1000)) << pretty_json_text(scene.box.status());
  EXPECT_EQ(scene.box.status()["sources"].list()[0]["unconfirmed"].count(), 0u);
  EXPECT_EQ(JetStreamClient(scene.edge.url()).consumer(kEdgeStream, "holdfast")->floor_sequence, 1000u);
}

// "new" is where the first one began: what came while there was none is not skipped.
TEST(DeliverPolicy, New_SkipsNothingWhenTheConsumerIsLost) {
  Scene scene("", "deliver_policy = \"new\"");
  scene.publish(1, 50);
  scene.box.start();
  ASSERT_TRUE(
      eventually([&] { return JetStreamClient(scene.edge.url()).consumer(kEdgeStream, "holdfast").has_value(); }));
  scene.publish(51, 50);
  ASSERT_TRUE(delivered(scene.box, 50)) << pretty_json_text(scene.box.status());
  ASSERT_EQ(scene.box.terminate(), 0);
  JetStreamClient(scene.edge.url()).delete_consumer(kEdgeStream, "holdfast");
  scene.publish(101, 50);
  scene.box.start();
  ASSERT_TRUE(delivered(scene.box, 100)) << pretty_json_text(scene.box.status());
  const auto arrived = JetStreamClient(scene.hub.url()).read_all(kHubStream);
  EXPECT_EQ(arrived.size(), 100u);
}

TEST(DeliverPolicy, New_SkipsNothingOfAStreamThatWasMadeAgain) {
  Scene scene("", "deliver_policy = \"new\"");
  scene.publish(1, 60);
  scene.box.start();
  ASSERT_TRUE(
      eventually([&] { return JetStreamClient(scene.edge.url()).consumer(kEdgeStream, "holdfast").has_value(); }));
  scene.publish(61, 20);
  ASSERT_TRUE(delivered(scene.box, 20)) << pretty_json_text(scene.box.status());
  ASSERT_EQ(scene.box.terminate(), 0);
  JetStreamClient edge(scene.edge.url());
  edge.delete_stream(kEdgeStream);
  edge.make_stream(kEdgeStream, {"telemetry.>"});
  scene.publish(81, 30);
  scene.box.start();
  EXPECT_TRUE(delivered(scene.box, 50)) << pretty_json_text(scene.box.status());
}

TEST(ConsumerMode, Bind_WaitsForAConsumer) {
  Scene scene("", "consumer_mode = \"bind\"");
  scene.publish(1, 5);
  scene.box.start();
  ASSERT_TRUE(eventually([&] { return scene.box.status()["sources"].list()[0]["state"].text() == "held"; }, kPatience))
      << pretty_json_text(scene.box.status());
  ConsumerConfig consumer;
  consumer.name = "holdfast";
  consumer.ack_wait = std::chrono::seconds(2);
  JetStreamClient(scene.edge.url()).make_consumer(kEdgeStream, consumer);
  EXPECT_TRUE(delivered(scene.box, 5)) << pretty_json_text(scene.box.status());
}

}  // namespace
}  // namespace holdfast
