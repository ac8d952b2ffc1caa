#include "forwarder/nats_target.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <thread>

#include "forwarder/nats_limits.h"
#include "forwarder/nats_wire.h"
#include "spool/identity.h"
#include "tests/support/jetstream_client.h"
#include "tests/support/nats_server.h"
#include "tests/support/odd_peer.h"

namespace holdfast {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

DueRecord record_for(Sequence sequence, const std::string& subject, const std::string& payload) {
  DueRecord record;
  record.sequence = sequence;
  record.key = "seq:truck:S:" + std::to_string(sequence) + ":1714564800123456789";
  record.envelope.subject = subject;
  record.envelope.payload.assign(payload.begin(), payload.end());
  record.envelope.origin = {"S", sequence, 1714564800123456789};
  record.accepted_wall_ns = 1714564800000000001;
  record.clock_trusted = true;
  return record;
}

// A window of records, and what was reported of them.
class Sending {
 public:
  void add(DueRecord record) { records_.push_back(std::move(record)); }
  Result<void> to(NatsTarget& target) {
    deliveries_.clear();
    outcomes_.clear();
    for (const DueRecord& record : records_) deliveries_.push_back({&record, wire_key(record.key)});
    const auto caller = std::this_thread::get_id();
    return target.deliver(deliveries_, [&](std::size_t place, Outcome outcome) {
      EXPECT_EQ(std::this_thread::get_id(), caller);
      EXPECT_LT(place, records_.size());
      EXPECT_TRUE(outcomes_.emplace(place, std::move(outcome)).second) << "reported twice";
    });
  }
  std::size_t reported() const { return outcomes_.size(); }
  OutcomeKind kind(std::size_t place) const { return outcomes_.at(place).kind; }
  const Outcome& outcome(std::size_t place) const { return outcomes_.at(place); }
  std::size_t count(OutcomeKind kind) const {
    std::size_t count = 0;
    for (const auto& [place, outcome] : outcomes_) count += outcome.kind == kind ? 1 : 0;
    return count;
  }

 private:
  std::vector<DueRecord> records_;
  std::vector<Delivery> deliveries_;
  std::map<std::size_t, Outcome> outcomes_;
};

class NatsTargetTest : public ::testing::Test {
 protected:
  static NatsTargetOptions options_for(const std::string& url) {
    NatsTargetOptions options;
    options.site = "truck";
    options.nats.url = url;
    options.nats.connect_limit = seconds(3);
    options.progress_limit = seconds(2);
    return options;
  }
};

TEST_F(NatsTargetTest, Records_ArriveAsTheWireContractSays) {
  NatsServer server;
  JetStreamClient client(server.url());
  client.make_stream("HUB", {"s.>"});
  NatsTarget target(options_for(server.url()));
  Sending sending;
  DueRecord record = record_for(5, "s.a", std::string("bin\0ary\r\n", 9));
  record.envelope.headers = {{"X-Trace", "1"},
                             {"X-Trace", "2"},
                             {"Nats-Msg-Id", "producer's"},
                             {"Nats-Expected-Stream", "S"},
                             {"Nats-Rollup", "all"}};
  sending.add(record);
  DueRecord plain = record_for(6, "s.b", "");
  plain.clock_trusted = false;
  sending.add(plain);
  ASSERT_TRUE(sending.to(target).ok());
  EXPECT_EQ(sending.count(OutcomeKind::delivered), 2u);

  const auto seen = client.read_all("HUB");
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].subject, "s.a");
  EXPECT_EQ(seen[0].payload, std::string("bin\0ary\r\n", 9));
  EXPECT_EQ(seen[0].header("Nats-Msg-Id"), "seq:truck:S:5:1714564800123456789");
  EXPECT_EQ(seen[0].header("Holdfast-Site"), "truck");
  EXPECT_EQ(seen[0].header("Holdfast-Stream"), "S");
  EXPECT_EQ(seen[0].header("Holdfast-Sequence"), "5");
  EXPECT_EQ(seen[0].header("Holdfast-Spool-Sequence"), "5");
  EXPECT_EQ(seen[0].header("Holdfast-Accepted-At"), "2024-05-01T12:00:00.000000001Z");
  EXPECT_EQ(seen[0].header("Holdfast-Clock"), "trusted");
  EXPECT_EQ(seen[0].header("Holdfast-Msg-Id"), "producer's");
  EXPECT_EQ(seen[0].header("Holdfast-Expected-Stream"), "S");
  EXPECT_EQ(seen[0].header("Holdfast-Rollup"), "all");
  EXPECT_EQ(seen[0].header("Nats-Rollup"), "");
  EXPECT_EQ(std::count(seen[0].headers.begin(), seen[0].headers.end(), Header{"X-Trace", "2"}), 1);
  EXPECT_EQ(seen[1].subject, "s.b");
  EXPECT_EQ(seen[1].payload, "");
  EXPECT_EQ(seen[1].header("Holdfast-Clock"), "untrusted");
}

TEST_F(NatsTargetTest, AnIdThatIsTheKey_IsNotKeptTwice) {
  DueRecord record = record_for(1, "s.a", "x");
  record.envelope.headers = {{"nats-msg-id", record.key}, {"Holdfast-Site", "an earlier hop"}};
  const auto headers = wire_headers({&record, record.key}, "truck", {.subject = "s.a"});
  EXPECT_EQ(std::count_if(headers.begin(), headers.end(), [](const Header& h) { return h.name == "Holdfast-Msg-Id"; }),
            0);
  EXPECT_EQ(std::count_if(headers.begin(), headers.end(), [](const Header& h) { return h.name == "Nats-Msg-Id"; }), 1);
  // What an earlier hop said comes behind what we say.
  std::vector<std::string> sites;
  for (const Header& header : headers) {
    if (header.name == "Holdfast-Site") sites.push_back(header.value);
  }
  EXPECT_EQ(sites, (std::vector<std::string>{"truck", "an earlier hop"}));
}

TEST_F(NatsTargetTest, AWindow_IsDeliveredOnceEach) {
  NatsServer server;
  JetStreamClient client(server.url());
  client.make_stream("HUB", {"s.>"});
  NatsTarget target(options_for(server.url()));
  for (Sequence round = 0; round < 5; ++round) {
    Sending sending;
    for (Sequence i = 0; i < 1000; ++i) sending.add(record_for(1 + round * 1000 + i, "s.a", std::string(300, 'x')));
    ASSERT_TRUE(sending.to(target).ok());
    EXPECT_EQ(sending.count(OutcomeKind::delivered), 1000u);
  }
  const auto seen = client.read_all("HUB");
  ASSERT_EQ(seen.size(), 5000u);
  for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i].header("Holdfast-Sequence"), std::to_string(i + 1));
}

TEST_F(NatsTargetTest, SentAgain_IsADuplicate) {
  NatsServer server;
  JetStreamClient client(server.url());
  client.make_stream("HUB", {"s.>"});
  Sending sending;
  for (Sequence i = 1; i <= 3; ++i) sending.add(record_for(i, "s.a", "x"));
  {
    NatsTarget target(options_for(server.url()));
    ASSERT_TRUE(sending.to(target).ok());
  }
  NatsTarget target(options_for(server.url()));
  ASSERT_TRUE(sending.to(target).ok());
  EXPECT_EQ(sending.count(OutcomeKind::duplicate), 3u);
  EXPECT_EQ(client.stream("HUB").messages, 3u);
}

TEST_F(NatsTargetTest, NoStream_HoldsTheLaneAndTheOthersGo) {
  NatsServer server;
  JetStreamClient client(server.url());
  client.make_stream("HUB", {"s.>"});
  NatsTarget target(options_for(server.url()));
  Sending sending;
  sending.add(record_for(1, "elsewhere.a", "x"));
  sending.add(record_for(2, "s.a", "x"));
  sending.add(record_for(3, "elsewhere.b", "x"));
  const auto begin = steady_clock::now();
  ASSERT_TRUE(sending.to(target).ok());
  EXPECT_LT(steady_clock::now() - begin, seconds(2));
  EXPECT_EQ(sending.kind(0), OutcomeKind::hold_lane);
  EXPECT_STREQ(sending.outcome(0).state, "no_stream");
  EXPECT_EQ(sending.kind(1), OutcomeKind::delivered);
  EXPECT_EQ(sending.kind(2), OutcomeKind::hold_lane);
  client.make_stream("MORE", {"elsewhere.>"});
  ASSERT_TRUE(sending.to(target).ok());
  EXPECT_EQ(sending.count(OutcomeKind::delivered), 2u);
  EXPECT_EQ(sending.kind(1), OutcomeKind::duplicate);
}

TEST_F(NatsTargetTest, StreamFull_HoldsTheLane) {
  NatsServer server;
  JetStreamClient client(server.url());
  StreamRequest small;
  small.name = "HUB";
  small.subjects = {"s.>"};
  small.max_messages = 2;
  small.discard_new = true;
  client.make_stream(small);
  NatsTarget target(options_for(server.url()));
  Sending sending;
  for (Sequence i = 1; i <= 3; ++i) sending.add(record_for(i, "s.a", "x"));
  ASSERT_TRUE(sending.to(target).ok());
  EXPECT_EQ(sending.count(OutcomeKind::delivered), 2u);
  EXPECT_EQ(sending.kind(2), OutcomeKind::hold_lane);
  EXPECT_STREQ(sending.outcome(2).state, "stream_full");
}

TEST_F(NatsTargetTest, LargerThanTheStreamTakes_IsRejectedAlone) {
  NatsServer server;
  JetStreamClient client(server.url());
  StreamRequest small;
  small.name = "HUB";
  small.subjects = {"s.>"};
  small.max_message_bytes = 1000;
  client.make_stream(small);
  NatsTarget target(options_for(server.url()));
  Sending sending;
  sending.add(record_for(1, "s.a", "x"));
  sending.add(record_for(2, "s.a", std::string(2000, 'x')));
  sending.add(record_for(3, "s.a", "x"));
  ASSERT_TRUE(sending.to(target).ok());
  EXPECT_EQ(sending.count(OutcomeKind::delivered), 2u);
  EXPECT_EQ(sending.kind(1), OutcomeKind::rejected);
  EXPECT_EQ(sending.outcome(1).reason, Reason::oversize);
  EXPECT_NE(sending.outcome(1).words, "");
}

TEST_F(NatsTargetTest, AtTheServersLimit_OneByteDecidesAndNothingElseSuffers) {
  constexpr std::size_t kMost = 8192;
  NatsServer server({.max_payload = kMost});
  JetStreamClient client(server.url());
  client.make_stream("HUB", {"s.>"});
  NatsTarget target(options_for(server.url()));
  // For both forms: with a producer's headers and without.
  for (const std::vector<Header>& own : {std::vector<Header>{}, std::vector<Header>{{"X-Trace", "0123456789"}}}) {
    Sending sending;
    const Sequence base = own.empty() ? 10 : 20;
    for (const int over : {-1, 0, 1}) {
      DueRecord record = record_for(base + static_cast<Sequence>(over + 1), "s.a", "");
      record.envelope.headers = own;
      const std::size_t headers =
          header_bytes(wire_headers({&record, record.key}, "truck", {.subject = record.envelope.subject}));
      record.envelope.payload.resize(kMost - headers + static_cast<std::size_t>(over + 1) - 1);
      sending.add(record);
    }
    sending.add(record_for(base + 3, "s.a", "after"));
    ASSERT_TRUE(sending.to(target).ok());
    EXPECT_EQ(sending.kind(0), OutcomeKind::delivered);
    EXPECT_EQ(sending.kind(1), OutcomeKind::delivered);
    EXPECT_EQ(sending.kind(2), OutcomeKind::rejected);
    EXPECT_EQ(sending.outcome(2).reason, Reason::oversize);
    EXPECT_EQ(sending.kind(3), OutcomeKind::delivered);
  }
}

TEST_F(NatsTargetTest, WhatTheProtocolCannotCarry_IsRejectedAloneAndUnsent) {
  NatsServer server;
  JetStreamClient client(server.url());
  client.make_stream("HUB", {"s.>"});
  NatsTarget target(options_for(server.url()));
  Sending sending;
  DueRecord header = record_for(1, "s.a", "x");
  header.envelope.headers = {{"X", "line\r\nNats-Rollup: all"}};
  sending.add(header);
  sending.add(record_for(2, "s." + std::string(5000, 'y'), "x"));  // costs the connection of who sends it
  sending.add(record_for(3, "s.white space", "x"));
  sending.add(record_for(4, "s.a", "x"));
  ASSERT_TRUE(sending.to(target).ok());
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(sending.kind(i), OutcomeKind::rejected) << i;
    EXPECT_EQ(sending.outcome(i).reason, Reason::unencodable) << i;
  }
  EXPECT_EQ(sending.kind(3), OutcomeKind::delivered);
  EXPECT_EQ(client.stream("HUB").messages, 1u);
}

TEST_F(NatsTargetTest, LongestSubjectThatIsSent_KeepsTheConnection) {
  NatsServer server;
  JetStreamClient client(server.url());
  client.make_stream("HUB", {"s.>"});
  NatsTarget target(options_for(server.url()));
  Sending sending;
  std::string subject = "s.";
  subject.append(3900 - subject.size(), 'y');
  sending.add(record_for(1, subject, "x"));
  sending.add(record_for(2, "s.a", "x"));
  ASSERT_TRUE(sending.to(target).ok());
  EXPECT_EQ(sending.count(OutcomeKind::delivered), 2u);
}

TEST_F(NatsTargetTest, NotPermitted_HoldsThatLane) {
  NatsServer server({.extra = R"(authorization { users = [ { user: all, password: p },
      { user: edge, password: p, permissions: { publish: { deny: "s.secret.>" } } } ] })"});
  const std::string place = server.url().substr(7);
  JetStreamClient client("nats://all:p@" + place);
  client.make_stream("HUB", {"s.>"});
  NatsTarget target(options_for("nats://edge:p@" + place));
  Sending sending;
  sending.add(record_for(1, "s.secret.a", "x"));
  sending.add(record_for(2, "s.open.a", "x"));
  ASSERT_TRUE(sending.to(target).ok());
  EXPECT_EQ(sending.kind(0), OutcomeKind::hold_lane);
  EXPECT_STREQ(sending.outcome(0).state, "not_permitted");
  EXPECT_EQ(sending.kind(1), OutcomeKind::delivered);
}

TEST_F(NatsTargetTest, SomethingElseAnswers_IsNotTakenForAStream) {
  NatsServer server;
  JetStreamClient client(server.url());
  client.make_stream("HUB", {"s.>"});
  // A service that answers everything, on subjects with a stream and without.
  auto service = NatsConnection::connect(options_for(server.url()).nats);
  ASSERT_TRUE(service.ok());
  for (const char* subject : {"s.>", "other.>"}) {
    ASSERT_TRUE((*service)
                    ->subscribe(subject,
                                [&](const NatsMessage& message) {
                                  (void)(*service)->publish(std::string(message.reply()), "", {}, as_bytes("OK"));
                                })
                    .ok());
  }
  ASSERT_TRUE((*service)->flush(seconds(5)).ok());
  NatsTarget target(options_for(server.url()));
  Sending sending;
  sending.add(record_for(1, "s.a", "x"));
  sending.add(record_for(2, "other.a", "x"));
  ASSERT_TRUE(sending.to(target).ok());
  EXPECT_EQ(sending.kind(0), OutcomeKind::delivered);
  EXPECT_EQ(sending.kind(1), OutcomeKind::hold_lane);
  EXPECT_STREQ(sending.outcome(1).state, "not_a_stream");
}

TEST_F(NatsTargetTest, ServerDown_IsUnavailableAndComesBack) {
  NatsServer server;
  std::make_unique<JetStreamClient>(server.url())->make_stream("HUB", {"s.>"});
  NatsTarget target(options_for(server.url()));
  Sending sending;
  for (Sequence i = 1; i <= 100; ++i) sending.add(record_for(i, "s.a", "x"));
  ASSERT_TRUE(sending.to(target).ok());
  server.kill();
  const auto down = sending.to(target);
  ASSERT_FALSE(down.ok());
  EXPECT_EQ(down.error().kind, ErrorKind::unavailable);
  EXPECT_FALSE(target.probe().ok());
  server.start();
  ASSERT_TRUE(eventually([&] { return target.probe().ok(); }));
  ASSERT_TRUE(eventually([&] { return sending.to(target).ok() && sending.count(OutcomeKind::hold_lane) == 0; }));
  EXPECT_EQ(sending.reported(), 100u);
}

TEST_F(NatsTargetTest, ServerFrozen_IsUnavailableAtTheLimitAndNoAnswerIsTakenForAnother) {
  NatsServer server;
  JetStreamClient client(server.url());
  client.make_stream("HUB", {"s.>"});
  NatsTarget target(options_for(server.url()));
  Sending sending;
  for (Sequence i = 1; i <= 50; ++i) sending.add(record_for(i, "s.a", "x"));
  ASSERT_TRUE(target.probe().ok());
  server.freeze();
  const auto begin = steady_clock::now();
  const auto frozen = sending.to(target);
  const auto took = steady_clock::now() - begin;
  ASSERT_FALSE(frozen.ok());
  EXPECT_EQ(frozen.error().kind, ErrorKind::unavailable);
  EXPECT_GE(took, seconds(2));
  EXPECT_LT(took, seconds(6));
  EXPECT_EQ(sending.reported(), 0u);
  server.thaw();
  // The first try reached the server: now they are duplicates, or new; each is told of itself.
  ASSERT_TRUE(eventually([&] { return sending.to(target).ok(); }));
  EXPECT_EQ(sending.count(OutcomeKind::delivered) + sending.count(OutcomeKind::duplicate), 50u);
  EXPECT_TRUE(eventually([&] { return client.stream("HUB").messages == 50; }));
}

TEST_F(NatsTargetTest, KilledInTheMiddle_WhatWasReportedIsThere) {
  NatsServer server;
  auto client = std::make_unique<JetStreamClient>(server.url());
  client->make_stream("HUB", {"s.>"});
  NatsTarget target(options_for(server.url()));
  Sending sending;
  for (Sequence i = 1; i <= 20'000; ++i) sending.add(record_for(i, "s.a", std::string(500, 'x')));
  std::thread killer([&] {
    eventually([&] { return client->stream("HUB").messages > 1000; });
    server.kill();
  });
  const auto result = sending.to(target);
  killer.join();
  const std::size_t reported = sending.reported();
  client.reset();
  server.start();
  client = std::make_unique<JetStreamClient>(server.url());
  EXPECT_GE(client->stream("HUB").messages, reported);
  EXPECT_TRUE(result.ok() || reported < 20'000u);
}

TEST_F(NatsTargetTest, SilentPeer_IsUnavailableAtTheConnectLimit) {
  OddPeer peer(info_line());
  NatsTarget target(options_for(peer.url()));
  Sending sending;
  sending.add(record_for(1, "s.a", "x"));
  const auto begin = steady_clock::now();
  EXPECT_FALSE(sending.to(target).ok());
  EXPECT_LT(steady_clock::now() - begin, seconds(7));
}

TEST_F(NatsTargetTest, CredentialsRefused_IsSaid) {
  NatsServer server({.extra = "authorization { user: a, password: b }"});
  NatsTarget target(options_for(server.url()));
  Sending sending;
  sending.add(record_for(1, "s.a", "x"));
  const auto refused = sending.to(target);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::unavailable);
  EXPECT_TRUE(refused.error().text.starts_with("credentials_refused")) << refused.error().text;
}

TEST_F(NatsTargetTest, Interrupt_EndsEveryWait) {
  NatsServer server;
  JetStreamClient client(server.url());
  client.make_stream("HUB", {"s.>"});
  OddPeer silent(info_line());
  const auto interrupted_deliver = [](NatsTarget& target, std::size_t size) {
    Sending sending;
    for (Sequence i = 1; i <= 64; ++i) sending.add(record_for(i, "s.a", std::string(size, 'x')));
    std::thread interrupter([&] {
      EXPECT_TRUE(stays([] { return true; }, milliseconds(300)));
      target.interrupt();
    });
    const auto begin = steady_clock::now();
    EXPECT_FALSE(sending.to(target).ok());
    interrupter.join();
    return steady_clock::now() - begin;
  };
  NatsTargetOptions slow = options_for(silent.url());
  slow.nats.connect_limit = seconds(60);
  NatsTarget connecting(slow);
  EXPECT_LT(interrupted_deliver(connecting, 10), seconds(5));

  slow = options_for(server.url());
  slow.progress_limit = seconds(60);
  NatsTarget waiting(slow), publishing(slow);
  ASSERT_TRUE(waiting.probe().ok());
  ASSERT_TRUE(publishing.probe().ok());
  server.freeze();
  EXPECT_LT(interrupted_deliver(waiting, 10), seconds(5));
  EXPECT_LT(interrupted_deliver(publishing, 1'000'000), seconds(5));
  server.thaw();

  // Without a call in progress the next one returns at once, and the one after it works.
  NatsTarget idle(options_for(server.url()));
  idle.interrupt();
  Sending sending;
  sending.add(record_for(1, "s.other", "x"));
  EXPECT_FALSE(sending.to(idle).ok());
  EXPECT_TRUE(sending.to(idle).ok());
}

TEST_F(NatsTargetTest, Answers_AreJudgedByWhatCouldMakeThemSucceed) {
  const auto of = [](int code) {
    return outcome_of_answer(0, R"({"error":{"code":400,"err_code":)" + std::to_string(code) +
                                    R"(,"description":"d"},"stream":"S","seq":0})");
  };
  EXPECT_EQ(of(10054)->kind, OutcomeKind::rejected);
  EXPECT_EQ(of(10097)->kind, OutcomeKind::rejected);
  EXPECT_EQ(of(10060)->kind, OutcomeKind::hold_lane);
  EXPECT_STREQ(of(10060)->state, "wrong_stream");
  EXPECT_EQ(of(10077)->kind, OutcomeKind::hold_lane);
  EXPECT_EQ(of(10158)->kind, OutcomeKind::retry);
  EXPECT_EQ(of(12345)->kind, OutcomeKind::retry);
  EXPECT_STREQ(of(12345)->state, "unknown_error");
  EXPECT_EQ(outcome_of_answer(503, "")->kind, OutcomeKind::hold_lane);
  EXPECT_EQ(outcome_of_answer(0, R"({"stream":"S","seq":0,"duplicate":true})")->kind, OutcomeKind::retry);
  EXPECT_FALSE(outcome_of_answer(0, "OK"));
  EXPECT_FALSE(outcome_of_answer(0, ""));
}

}  // namespace
}  // namespace holdfast
