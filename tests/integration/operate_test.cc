// What an operator does to a box that is in the field, through the command line.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>

#include "tests/integration/scene.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

TEST(RenamedTarget, KeepsItsBacklog_SaysSo_AndIsServedAfterRetarget) {
  NatsServer edge, hub;
  JetStreamClient(edge.url()).make_stream(kEdgeStream, {"telemetry.>"});
  JetStreamClient(hub.url()).make_stream(kHubStream, {"telemetry.>"});
  hub.kill();
  Appliance box(HOLDFAST_BINARY, {nats_source(edge.url(), kEdgeStream) + nats_target("old-hub", hub.url())});
  JetStreamClient(edge.url()).publish_many(kSubject, 1, 500, 200);
  box.start();
  ASSERT_TRUE(in_files(box, 500));
  ASSERT_EQ(box.terminate(), 0);

  hub.start();
  box.configure({nats_source(edge.url(), kEdgeStream) + nats_target("hub", hub.url())});
  box.start();
  JetStreamClient(edge.url()).publish_many(kSubject, 501, 100, 200);
  ASSERT_TRUE(eventually([&] { return box.target("hub")["delivered"].count() == 100; }, kPatience));
  EXPECT_EQ(box.target("old-hub")["waiting_records"].count(), 500u);
  EXPECT_FALSE(box.target("old-hub")["configured"].flag());
  EXPECT_TRUE(needs_attention(box, "target_gone"));
  const ProgramAnswer status = box.command({"status"});
  EXPECT_EQ(status.code, 1) << status.out << status.err;
  EXPECT_NE(status.out.find("old-hub"), std::string::npos) << status.out;

  const ProgramAnswer wrong = box.command({"spool", "retarget", "old-hub", "no-such-hub"});
  EXPECT_NE(wrong.code, 0);
  const ProgramAnswer moved = box.command({"spool", "retarget", "old-hub", "hub"});
  EXPECT_EQ(moved.code, 0) << moved.err;
  ASSERT_TRUE(delivered(box, 600)) << pretty_json_text(box.status());
  EXPECT_EQ(arrivals(hub, kHubStream, 600), kEachOnce);
  EXPECT_EQ(box.command({"status"}).code, 0);
}

TEST(Quarantine, TakesWhatNoRouteMatches_AndRequeuesItOnceThereIsOne) {
  NatsServer edge, hub;
  JetStreamClient(edge.url()).make_stream(kEdgeStream, {"telemetry.>", "odd.>"});
  JetStreamClient(hub.url()).make_stream(kHubStream, {"telemetry.>", "odd.>"});
  const std::string ends = nats_source(edge.url(), kEdgeStream) + nats_target("hub", hub.url());
  Appliance box(HOLDFAST_BINARY, {ends + route({"telemetry.>"}, {"hub"})});
  JetStreamClient publisher(edge.url());
  publisher.publish_many("odd.one", 1, 3);
  publisher.publish_many("telemetry.a", 4, 100);
  box.start();
  ASSERT_TRUE(eventually([&] { return box.status()["accounting"]["delivered"].count() == 100; }, kPatience));
  EXPECT_EQ(quarantine_reasons(box), (std::vector<std::string>{"no_route", "no_route", "no_route"}));
  EXPECT_TRUE(needs_attention(box, "quarantine"));
  EXPECT_TRUE(box.audit()["balanced"].flag());
  ASSERT_EQ(box.terminate(), 0);

  box.configure({ends + route({"telemetry.>"}, {"hub"}) + route({"odd.>"}, {"hub"})});
  box.start();
  EXPECT_EQ(quarantine_reasons(box).size(), 3u) << "nothing leaves the quarantine by itself";
  const ProgramAnswer requeue = box.command({"quarantine", "requeue", "all", "--json"});
  EXPECT_EQ(requeue.code, 0) << requeue.err;
  ASSERT_TRUE(eventually([&] { return box.status()["accounting"]["in_custody"].count() == 0; }, kPatience));
  EXPECT_EQ(arrivals(hub, kHubStream, 103), kEachOnce);
  EXPECT_TRUE(quarantine_reasons(box).empty());
  EXPECT_TRUE(box.audit()["balanced"].flag()) << pretty_json_text(box.audit());
}

TEST(Quarantine, TakesWhatIsAboveTheLimits_AndTheRestFlows) {
  NatsServerOptions wide, narrow;
  wide.max_payload = 4u << 20;
  narrow.max_payload = 64u << 10;
  NatsServer edge(wide), hub(narrow);
  JetStreamClient(edge.url()).make_stream(kEdgeStream, {"telemetry.>"});
  JetStreamClient(hub.url()).make_stream(kHubStream, {"telemetry.>"});
  Appliance box(HOLDFAST_BINARY,
                {nats_source(edge.url(), kEdgeStream) + nats_target("hub", hub.url()), "max_record_bytes = \"1MiB\""});
  JetStreamClient publisher(edge.url());
  publisher.publish_many(kSubject, 1, 50);
  publisher.publish(kSubject, std::string(2u << 20, 'x'));    // above what a record may be
  publisher.publish(kSubject, std::string(200u << 10, 'x'));  // above what the hub takes
  publisher.publish_many(kSubject, 51, 50);
  box.start();
  ASSERT_TRUE(eventually(
      [&] {
        const Json status = box.status();  // one moment
        return status["accounting"]["in_custody"].count() == 0 && status["accounting"]["taken"].count() == 102;
      },
      kPatience))
      << pretty_json_text(box.status());
  EXPECT_EQ(quarantine_reasons(box), (std::vector<std::string>{"oversize", "too_large"}));
  EXPECT_EQ(arrivals(hub, kHubStream, 100), kEachOnce);
  EXPECT_TRUE(box.audit()["balanced"].flag());
}

// The id of some record in custody, as a list shows it.
std::string some_id(Appliance& box) {
  const Json page = box.ask("spool list");
  return page["records"].list().empty() ? "" : page["records"].list()[0]["id"].text();
}

void expect_json(const Appliance& box, std::vector<std::string> words) {
  words.push_back("--json");
  const ProgramAnswer answer = box.command(words);
  EXPECT_TRUE(answer.code == 0 || answer.code == 1 || answer.code == 75) << words[0] << ": " << answer.err;
  EXPECT_TRUE(parse_json(answer.out).has_value()) << words[0] << ": " << answer.out;
}

TEST(Commands, WithJson_AnswerJsonAlone_WhetherTheApplianceRunsOrNot) {
  NatsServer edge;
  JetStreamClient(edge.url()).make_stream(kEdgeStream, {"telemetry.>", "odd.>"});
  Appliance box(HOLDFAST_BINARY, {nats_source(edge.url(), kEdgeStream) + nats_target("hub", "nats://127.0.0.1:1") +
                                  route({"telemetry.>"}, {"hub"})});
  JetStreamClient publisher(edge.url());
  publisher.publish_many(kSubject, 1, 20);
  publisher.publish_many("odd.one", 1, 1);
  box.start();
  ASSERT_TRUE(in_files(box, 20));
  const std::string id = some_id(box);
  ASSERT_FALSE(id.empty());
  const Json set_aside = box.ask("quarantine list");
  ASSERT_EQ(set_aside["records"].list().size(), 1u);
  const std::string odd = set_aside["records"].list()[0]["id"].text();

  for (const bool running : {true, false}) {
    SCOPED_TRACE(running ? "running" : "stopped");
    expect_json(box, {"check"});
    expect_json(box, {"status"});
    expect_json(box, {"audit"});
    expect_json(box, {"spool", "list", "--limit", "5"});
    expect_json(box, {"spool", "show", id});
    expect_json(box, {"spool", "verify"});
    expect_json(box, {"spool", "discard", "all", "--reason", "try", "--dry-run"});
    expect_json(box, {"quarantine", "list"});
    expect_json(box, {"quarantine", "show", odd});
    expect_json(box, {"quarantine", "requeue", "all"});
    if (running) expect_json(box, {"target", "kick", "hub"});
    if (running) {
      EXPECT_EQ(box.command({"status"}).code, 1) << "the hub is on hold";
      ASSERT_EQ(box.terminate(), 0);
      EXPECT_EQ(box.command({"status"}).code, 75) << "nobody runs";
    }
  }
}

TEST(Commands, ShowOpensTheRecord) {
  NatsServer edge;
  JetStreamClient(edge.url()).make_stream(kEdgeStream, {"telemetry.>"});
  Appliance box(HOLDFAST_BINARY, {nats_source(edge.url(), kEdgeStream) + nats_target("hub", "nats://127.0.0.1:1")});
  JetStreamClient(edge.url()).publish("telemetry.a", "the payload", {{"Colour", "blue"}});
  box.start();
  ASSERT_TRUE(taken(box, 1));
  const ProgramAnswer shown = box.command({"spool", "show", some_id(box), "--json"});
  ASSERT_EQ(shown.code, 0) << shown.err;
  const auto record = parse_json(shown.out);
  ASSERT_TRUE(record.has_value()) << shown.out;
  EXPECT_EQ((*record)["subject"].text(), "telemetry.a");
  EXPECT_EQ((*record)["payload_text"].text(), "the payload");
  EXPECT_EQ((*record)["headers"].list().at(0)["value"].text(), "blue");
  EXPECT_EQ((*record)["key"].text().rfind("seq:test:EDGE:1:", 0), 0u) << (*record)["key"].text();
}

TEST(Commands, HoldKeepsATargetAlone_UntilResume) {
  Scene scene;
  scene.box.start();
  EXPECT_EQ(scene.box.command({"target", "hold", "hub"}).code, 0);
  scene.publish(1, 200);
  ASSERT_TRUE(in_files(scene.box, 200));
  EXPECT_EQ(JetStreamClient(scene.hub.url()).stream(kHubStream).messages, 0u);
  EXPECT_EQ(scene.box.command({"status"}).code, 1);
  EXPECT_EQ(scene.box.command({"target", "resume", "hub"}).code, 0);
  ASSERT_TRUE(delivered(scene.box, 200));
  EXPECT_EQ(scene.box.command({"target", "hold", "nobody"}).code, 1);
}

TEST(Commands, KeygenNeverOverwrites) {
  Appliance box(HOLDFAST_BINARY, {nats_target("hub", "nats://127.0.0.1:1")});
  const std::string before = file_text(box.key_file());
  const ProgramAnswer again = run_program({box.program(), "keygen", box.key_file()});
  EXPECT_EQ(again.code, 1) << again.err;
  EXPECT_EQ(file_text(box.key_file()), before);
}

}  // namespace
}  // namespace holdfast
