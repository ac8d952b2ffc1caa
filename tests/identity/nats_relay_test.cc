#include "tests/support/nats_relay.h"

#include <gtest/gtest.h>

#include "spool/check.h"
#include "tests/support/jetstream_client.h"
#include "tests/support/nats_server.h"
#include "tests/support/patience.h"

namespace holdfast {
namespace {

std::vector<std::string> verbs(NatsFrames& frames) {
  std::vector<std::string> verbs;
  while (const auto frame = frames.first()) {
    verbs.emplace_back(frame->verb);
    frames.drop_first();
  }
  return verbs;
}

TEST(NatsFrames, AreFoundWhereverTheBytesAreCut) {
  const std::string ack = "$JS.ACK.S.c.1.2.3.4.5";
  const std::string all = "CONNECT {\"verbose\":false}\r\nPUB a 0\r\n\r\nPUB " + ack +
                          " 4\r\n+ACK\r\nHPUB b r 12 15\r\n" + "NATS/1.0\r\n\r\nPUB\r\nMSG s 7 " + ack +
                          " 5\r\n+ACK \r\nHMSG s 7 12 14\r\nNATS/1.0\r\n\r\n\r\n\r\nPING\r\n";
  const std::vector<std::string> wanted{"CONNECT", "PUB", "PUB", "HPUB", "MSG", "HMSG", "PING"};
  for (std::size_t cut = 0; cut <= all.size(); ++cut) {
    NatsFrames frames;
    frames.add(all.substr(0, cut));
    std::vector<std::string> found = verbs(frames);
    frames.add(all.substr(cut));
    for (std::string& verb : verbs(frames)) found.push_back(std::move(verb));
    EXPECT_EQ(found, wanted) << "cut at " << cut;
  }
}

TEST(NatsFrames, TellDeliveriesAndAcknowledgementsApart) {
  NatsFrames frames;
  frames.add(
      "PUB $JS.ACK.S.c.1.2.3.4.5 4\r\n+ACK\r\nPUB $JS.ACK.S.c.1.2.3.4.5 4\r\n+WPI\r\n"
      "HMSG s 7 $JS.ACK.S.c.1.2.3.4.5 12 16\r\nNATS/1.0\r\n\r\n+ACK\r\nMSG s 7 _INBOX.a 0\r\n\r\n");
  std::string seen;
  while (const auto frame = frames.first()) {
    seen += frame->is_ack() ? 'a' : frame->is_delivery() ? 'd' : '-';
    frames.drop_first();
  }
  EXPECT_EQ(seen, "a-d-");
}

// A client that takes messages through the relay and acknowledges each at once.
class Reader {
 public:
  explicit Reader(const NatsRelay& relay) : client_(relay.url()) {
    const std::string inbox = client_.connection().new_inbox();
    CHECK(client_.connection()
              .subscribe(inbox,
                         [this](const NatsMessage& message) {
                           (void)client_.connection().publish(std::string(message.reply()), {}, {}, as_bytes("+ACK"));
                         })
              .ok());
    CHECK(client_.connection().publish(pull_subject("S", "c"), inbox, {}, as_bytes(R"({"batch":10})")).ok());
  }

 private:
  JetStreamClient client_;
};

struct Stage {
  NatsServer server;
  NatsRelay relay{server.port()};
  Stage() {
    JetStreamClient client(server.url());
    client.make_stream("S", {"s"});
    ConsumerConfig config;
    config.name = "c";
    config.ack_wait = std::chrono::minutes(1);
    client.make_consumer("S", config);
    client.publish_many("s", 1, 10);
  }
  std::uint64_t floor() { return JetStreamClient(server.url()).consumer("S", "c")->floor_sequence; }
};

TEST(NatsRelay, PassesEverything) {
  Stage stage;
  Reader reader(stage.relay);
  EXPECT_TRUE(eventually([&] { return stage.floor() == 10; }));
  EXPECT_EQ(stage.relay.counts().delivered, 10u);
  EXPECT_EQ(stage.relay.counts().acks_passed, 10u);
  EXPECT_EQ(stage.relay.counts().acks_dropped, 0u);
}

TEST(NatsRelay, LosesAcknowledgementsAndNothingElse) {
  Stage stage;
  stage.relay.drop_acks(true);
  Reader reader(stage.relay);
  EXPECT_TRUE(eventually([&] { return stage.relay.counts().acks_dropped == 10; }));
  stage.relay.drop_acks(false);
  EXPECT_TRUE(JetStreamClient(stage.relay.url()).consumer("S", "c").has_value());
  EXPECT_EQ(stage.relay.counts().delivered, 10u);
  EXPECT_EQ(stage.floor(), 0u);
}

TEST(NatsRelay, HoldsTheFirstAcknowledgementUntilItIsCut) {
  Stage stage;
  stage.relay.hold_at_ack();
  {
    Reader reader(stage.relay);
    EXPECT_TRUE(eventually([&] { return stage.relay.holding(); }));
    EXPECT_EQ(stage.relay.counts().acks_passed, 0u);
    stage.relay.cut();
  }
  EXPECT_FALSE(stage.relay.holding());
  EXPECT_EQ(stage.floor(), 0u);
  EXPECT_TRUE(JetStreamClient(stage.relay.url()).consumer("S", "c").has_value());
}

}  // namespace
}  // namespace holdfast
