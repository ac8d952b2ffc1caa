#include "forwarder/nats_connection.h"

#include <gtest/gtest.h>
#include <sodium.h>

#include <atomic>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <thread>

#include "crypto/nkey.h"
#include "forwarder/nats_limits.h"
#include "tests/support/certificates.h"
#include "tests/support/jetstream_client.h"
#include "tests/support/nats_server.h"
#include "tests/support/odd_peer.h"
#include "tests/support/raw_publish.h"

namespace holdfast {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

NatsOptions options_for(const std::string& url, Nanoseconds limit = seconds(5)) {
  NatsOptions options;
  options.url = url;
  options.connect_limit = limit;
  return options;
}

std::string seed_text(std::uint8_t fill) {
  const std::array<std::uint8_t, 32> seed = [&] {
    std::array<std::uint8_t, 32> bytes{};
    bytes.fill(fill);
    return bytes;
  }();
  Bytes text;
  render_nkey_seed(seed, text);
  return std::string(as_text(text));
}

// Collects what a subscription brings.
class Pile {
 public:
  void add(const NatsMessage& message) {
    const std::lock_guard lock(mutex_);
    subjects_.emplace_back(message.subject());
    payloads_.emplace_back(as_text(message.payload()));
    headers_.push_back(message.headers());
    statuses_.push_back(message.status());
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return payloads_.size();
  }
  std::vector<std::string> payloads() const {
    const std::lock_guard lock(mutex_);
    return payloads_;
  }
  std::optional<std::vector<Header>> headers(std::size_t i) const {
    const std::lock_guard lock(mutex_);
    return headers_.at(i);
  }
  int status(std::size_t i) const {
    const std::lock_guard lock(mutex_);
    return statuses_.at(i);
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> subjects_, payloads_;
  std::vector<std::optional<std::vector<Header>>> headers_;
  std::vector<int> statuses_;
};

Nanoseconds time_of(const std::function<void()>& work) {
  const auto begin = steady_clock::now();
  work();
  return steady_clock::now() - begin;
}

TEST(NatsConnection, PublishThenSubscribe_BringsSubjectHeadersAndPayload) {
  NatsServer server;
  auto connection = NatsConnection::connect(options_for(server.url()));
  ASSERT_TRUE(connection.ok()) << connection.error().text;
  Pile pile;
  ASSERT_TRUE((*connection)->subscribe("a.>", [&](const NatsMessage& m) { pile.add(m); }).ok());
  const std::vector<Header> headers{{"X-One", "1"}, {"X-Two", "2"}, {"X-One", "one more"}};
  const std::string binary("a\0b\r\n", 5);
  ASSERT_TRUE((*connection)->publish("a.b", "", headers, as_bytes(binary)).ok());
  ASSERT_TRUE((*connection)->publish("a.c", "", {}, {}).ok());
  ASSERT_TRUE(eventually([&] { return pile.size() == 2; }));
  EXPECT_EQ(pile.payloads(), (std::vector<std::string>{binary, ""}));
  auto arrived = pile.headers(0).value_or(std::vector<Header>{});
  std::stable_sort(arrived.begin(), arrived.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  EXPECT_EQ(arrived, (std::vector<Header>{{"X-One", "1"}, {"X-One", "one more"}, {"X-Two", "2"}}));
  EXPECT_EQ(pile.headers(1), std::vector<Header>{});
  EXPECT_EQ(pile.status(0), 0);
  EXPECT_TRUE((*connection)->alive());
  EXPECT_EQ((*connection)->max_payload(), 1u << 20);
}

// The library has no call for the block, and reads it wrongly.
TEST(NatsConnection, TheHeaderBlock_IsFoundAsItWasSent) {
  NatsServer server;
  auto connection = NatsConnection::connect(options_for(server.url()));
  ASSERT_TRUE(connection.ok()) << connection.error().text;
  std::mutex mutex;
  std::vector<std::string> heads;
  ASSERT_TRUE((*connection)
                  ->subscribe("a.>",
                              [&](const NatsMessage& message) {
                                const std::lock_guard lock(mutex);
                                heads.emplace_back(message.head_bytes());
                              })
                  .ok());
  ASSERT_TRUE((*connection)->flush(seconds(5)).ok());
  const std::vector<std::string> sent{"NATS/1.0\r\nX-Empty:\r\nX-B: c\r\n\r\n", "NATS/1.0\r\n\r\n",
                                      "NATS/1.0\r\nnothing that is a header\r\n\r\n",
                                      "NATS/1.0\r\nX: " + std::string(60'000, 'x') + "\r\n\r\n"};
  for (const std::string& head : sent) {
    for (const char* subject : {"a.b", "a.b reply.to"}) {
      publish_raw(server.port(), subject, head, "");
      publish_raw(server.port(), subject, head, "payload");
    }
  }
  std::vector<std::string> expected;
  for (const std::string& head : sent) expected.insert(expected.end(), 4, head);
  EXPECT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return heads.size() == expected.size();
  }));
  const std::lock_guard lock(mutex);
  EXPECT_EQ(heads, expected);
}

TEST(NatsConnection, Request_WhereNobodyAnswers_SaysSoAtOnce) {
  NatsServer server;
  auto connection = NatsConnection::connect(options_for(server.url()));
  ASSERT_TRUE(connection.ok());
  const auto reply = (*connection)->request("nobody.there", "?", seconds(5));
  ASSERT_TRUE(reply.ok());
  EXPECT_EQ(reply->status, 503);
}

TEST(NatsConnection, Request_WithoutAnswer_EndsAtItsLimit) {
  NatsServer server;
  auto connection = NatsConnection::connect(options_for(server.url()));
  ASSERT_TRUE(connection.ok());
  ASSERT_TRUE((*connection)->subscribe("silent", [](const NatsMessage&) {}).ok());
  const Nanoseconds took = time_of([&] {
    const auto reply = (*connection)->request("silent", "?", milliseconds(300));
    ASSERT_FALSE(reply.ok());
    EXPECT_EQ(reply.error().kind, ErrorKind::unavailable);
  });
  EXPECT_GE(took, milliseconds(300));
  EXPECT_LT(took, seconds(2));
  EXPECT_TRUE((*connection)->alive());
}

TEST(NatsConnection, ServerKilled_IsToldOnceAndEveryCallFails) {
  NatsServer server;
  std::atomic<int> lost{0};
  NatsEvents events;
  events.lost = [&] { ++lost; };
  auto connection = NatsConnection::connect(options_for(server.url()), events);
  ASSERT_TRUE(connection.ok());
  ASSERT_TRUE((*connection)->subscribe("silent", [](const NatsMessage&) {}).ok());
  std::thread killer([&] { server.kill(); });
  const auto reply = (*connection)->request("silent", "?", seconds(20));
  killer.join();
  EXPECT_FALSE(reply.ok());
  ASSERT_TRUE(eventually([&] { return lost == 1; }));
  EXPECT_FALSE((*connection)->alive());
  EXPECT_FALSE((*connection)->publish("a", "", {}, {}).ok());
  EXPECT_FALSE((*connection)->flush(seconds(1)).ok());
  connection = Error{ErrorKind::unavailable, ""};
  EXPECT_EQ(lost, 1);
}

TEST(NatsConnection, NobodyListens_FailsAtOnce) {
  const Nanoseconds took = time_of([&] {
    const auto connection = NatsConnection::connect(options_for("nats://127.0.0.1:" + std::to_string(free_port())));
    ASSERT_FALSE(connection.ok());
    EXPECT_EQ(connection.error().kind, ErrorKind::unavailable);
    EXPECT_FALSE(credentials_refused(connection.error()));
  });
  EXPECT_LT(took, seconds(2));
}

TEST(NatsConnection, UnknownName_Fails) {
  const auto connection = NatsConnection::connect(options_for("nats://no-such-host.invalid:4222", seconds(2)));
  ASSERT_FALSE(connection.ok());
  EXPECT_EQ(connection.error().kind, ErrorKind::unavailable);
}

TEST(NatsConnection, UrlThatIsNone_IsInvalid) {
  for (const char* url :
       {"", "127.0.0.1:4222", "http://a", "nats://", "nats://a:0", "nats://a:99999", "nats://a,b", "nats://[::1"}) {
    const auto connection = NatsConnection::connect(options_for(url));
    ASSERT_FALSE(connection.ok()) << url;
    EXPECT_EQ(connection.error().kind, ErrorKind::invalid) << url;
  }
}

// Peers on which the library's own connect hangs for ever.
struct Silence {
  const char* name;
  std::string greeting;
  const char* scheme;
};
class SilentPeer : public ::testing::TestWithParam<Silence> {};

TEST_P(SilentPeer, Connect_EndsAtItsLimit) {
  OddPeer peer(GetParam().greeting);
  for (int i = 0; i < 2; ++i) {  // twice: nothing stays behind that is in the way of the next
    const Nanoseconds took = time_of([&] {
      const auto connection = NatsConnection::connect(options_for(peer.url(GetParam().scheme), milliseconds(700)));
      ASSERT_FALSE(connection.ok());
      EXPECT_EQ(connection.error().kind, ErrorKind::unavailable);
    });
    EXPECT_LT(took, milliseconds(700) + seconds(3));  // on a busy machine
  }
  EXPECT_EQ(peer.accepted(), 2);
}

TEST_P(SilentPeer, Connect_EndsWhenAStopIsRequested) {
  OddPeer peer(GetParam().greeting);
  std::stop_source stop;
  std::thread stopper([&] {
    ASSERT_TRUE(eventually([&] { return peer.accepted() > 0; }));
    stop.request_stop();
  });
  const Nanoseconds took = time_of([&] {
    const auto connection =
        NatsConnection::connect(options_for(peer.url(GetParam().scheme), seconds(30)), {}, stop.get_token());
    EXPECT_FALSE(connection.ok());
  });
  stopper.join();
  EXPECT_LT(took, seconds(5));
}

INSTANTIATE_TEST_SUITE_P(
    Peers, SilentPeer,
    ::testing::Values(Silence{"nothing", "", "nats"}, Silence{"info_and_no_pong", info_line(), "nats"},
                      Silence{"tls_required_then_nothing", info_line("\"tls_required\":true,"), "tls"},
                      Silence{"half_an_info", "INFO {\"server_id\":", "nats"}),
    [](const auto& peer) { return peer.param.name; });

TEST(NatsConnection, SilentPeer_HoldsNoOtherConnection) {
  NatsServer server;
  OddPeer peer(info_line());
  std::thread hanging([&] { EXPECT_FALSE(NatsConnection::connect(options_for(peer.url(), seconds(4))).ok()); });
  ASSERT_TRUE(eventually([&] { return peer.accepted() == 1; }));
  const Nanoseconds took = time_of([&] { EXPECT_TRUE(NatsConnection::connect(options_for(server.url())).ok()); });
  EXPECT_LT(took, seconds(2));
  hanging.join();
}

TEST(NatsConnection, FirstOfTwoUrlsHangs_TheSecondIsUsed) {
  NatsServer server;
  OddPeer peer(info_line());
  const auto connection = NatsConnection::connect(options_for(peer.url() + "," + server.url(), seconds(4)));
  ASSERT_TRUE(connection.ok()) << connection.error().text;
  EXPECT_TRUE((*connection)->alive());
}

TEST(NatsConnection, PeerThatHangsUp_IsUnavailable) {
  OddPeer peer(info_line(), OddPeer::Manner::hangs_up);
  const auto connection = NatsConnection::connect(options_for(peer.url()));
  ASSERT_FALSE(connection.ok());
  EXPECT_EQ(connection.error().kind, ErrorKind::unavailable);
}

TEST(NatsConnection, ServerFrozenAtConnect_EndsAtTheLimit) {
  NatsServer server;
  server.freeze();
  const Nanoseconds took =
      time_of([&] { EXPECT_FALSE(NatsConnection::connect(options_for(server.url(), milliseconds(500))).ok()); });
  EXPECT_LT(took, seconds(3));
  server.thaw();
  EXPECT_TRUE(NatsConnection::connect(options_for(server.url())).ok());
}

TEST(NatsConnection, ServerFrozenInUse_NoCallOutlastsItsLimit) {
  NatsServer server;
  auto connection = NatsConnection::connect(options_for(server.url()));
  ASSERT_TRUE(connection.ok());
  server.freeze();
  EXPECT_LT(time_of([&] { EXPECT_FALSE((*connection)->request("a", "", milliseconds(300)).ok()); }), seconds(2));
  // Until the socket's buffers are full and the library's write waits.
  const Bytes block(512 * 1024);
  const Nanoseconds publishing = time_of([&] {
    for (int i = 0; i < 200; ++i) {
      if (!(*connection)->publish("a", "", {}, block).ok()) break;
    }
  });
  EXPECT_LT(publishing, seconds(15));
  EXPECT_LT(time_of([&] { EXPECT_FALSE((*connection)->flush(milliseconds(300)).ok()); }), seconds(5));
  EXPECT_LT(time_of([&] { connection = Error{ErrorKind::unavailable, ""}; }), seconds(6));
  server.thaw();
}

TEST(NatsConnection, Abort_EndsAPublishThatWaits) {
  NatsServer server;
  auto connection = NatsConnection::connect(options_for(server.url()));
  ASSERT_TRUE(connection.ok());
  server.freeze();
  std::atomic<int> published{0};
  std::thread publisher([&] {
    const Bytes block(512 * 1024);
    while ((*connection)->publish("a", "", {}, block).ok()) ++published;
  });
  // It stands still: it waits.
  ASSERT_TRUE(
      eventually([&] { return stays([&, now = published.load()] { return published == now; }, milliseconds(400)); }));
  EXPECT_LT(time_of([&] {
              (*connection)->abort();
              publisher.join();
            }),
            seconds(5));
  server.thaw();
}

TEST(NatsConnection, Flush_ReachesTheServer) {
  NatsServer server;
  JetStreamClient client(server.url());
  client.make_stream("S", {"s.>"});
  auto connection = NatsConnection::connect(options_for(server.url()));
  ASSERT_TRUE(connection.ok());
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE((*connection)->publish("s.a", "", {}, as_bytes("x")).ok());
  ASSERT_TRUE((*connection)->flush(seconds(5)).ok());
  connection = Error{ErrorKind::unavailable, ""};
  EXPECT_TRUE(eventually([&] { return client.stream("S").messages == 1000; }));
}

TEST(NatsConnection, DestroyedWhileMessagesArrive_NoCallbackRunsAfter) {
  NatsServer server;
  JetStreamClient client(server.url());
  for (int round = 0; round < 10; ++round) {
    auto connection = NatsConnection::connect(options_for(server.url()));
    ASSERT_TRUE(connection.ok());
    auto calls = std::make_unique<std::atomic<int>>(0);
    ASSERT_TRUE((*connection)->subscribe("flood", [at = calls.get()](const NatsMessage&) { ++*at; }).ok());
    ASSERT_TRUE((*connection)->flush(seconds(5)).ok());
    for (int i = 0; i < 2000; ++i) ASSERT_TRUE(client.connection().publish("flood", "", {}, as_bytes("x")).ok());
    ASSERT_TRUE(eventually([&] { return *calls > 0; }));
    connection = Error{ErrorKind::unavailable, ""};
    calls.reset();  // a callback now would be seen by the address sanitizer
  }
}

TEST(NatsConnection, MaxPayload_OneOverIsRefusedAndTheConnectionLives) {
  NatsServer server({.max_payload = 4096});
  auto connection = NatsConnection::connect(options_for(server.url()));
  ASSERT_TRUE(connection.ok());
  Pile pile;
  ASSERT_TRUE((*connection)->subscribe("a", [&](const NatsMessage& m) { pile.add(m); }).ok());
  const std::vector<Header> headers{{"X", "y"}, {"Longer-Name", ""}};
  const std::size_t room = 4096 - header_bytes(headers);
  ASSERT_TRUE((*connection)->publish("a", "", headers, Bytes(room)).ok());
  ASSERT_TRUE((*connection)->publish("a", "", {}, Bytes(4096)).ok());
  const auto over = (*connection)->publish("a", "", headers, Bytes(room + 1));
  ASSERT_FALSE(over.ok());
  EXPECT_EQ(over.error().kind, ErrorKind::invalid);
  ASSERT_FALSE((*connection)->publish("a", "", {}, Bytes(4097)).ok());
  ASSERT_TRUE((*connection)->publish("a", "", {}, as_bytes("last")).ok());
  ASSERT_TRUE(eventually([&] { return pile.size() == 3; }));
  EXPECT_TRUE((*connection)->alive());
}

TEST(NatsConnection, Nkey_IsTakenAndAForeignOneIsRefused) {
  const std::string good = seed_text(7);
  const std::string bad = seed_text(8);
  NatsServer server({.nkeys = {*nkey_public(good)}});
  TemporaryDirectory directory;
  std::ofstream(directory / "good.nk") << good << "\n";
  std::ofstream(directory / "bad.nk") << "# a comment\n" << bad << "\n";
  std::ofstream(directory / "none.nk") << "not a seed\n";

  NatsOptions options = options_for(server.url());
  options.nkey_file = directory / "good.nk";
  // Many times: the library leaves a greeting in some hundred unsigned.
  for (int i = 0; i < 200; ++i) {
    const auto connection = NatsConnection::connect(options);
    ASSERT_TRUE(connection.ok()) << connection.error().text;
  }

  options.nkey_file = directory / "bad.nk";
  const auto refused = NatsConnection::connect(options);
  ASSERT_FALSE(refused.ok());
  EXPECT_TRUE(credentials_refused(refused.error())) << refused.error().text;

  for (const char* file : {"none.nk", "absent.nk"}) {
    options.nkey_file = directory / file;
    const auto unusable = NatsConnection::connect(options);
    ASSERT_FALSE(unusable.ok());
    EXPECT_TRUE(unusable.error().text.starts_with("file_unusable: " + (directory / file))) << unusable.error().text;
  }
  EXPECT_TRUE(credentials_refused(NatsConnection::connect(options_for(server.url())).error()));
}

TEST(NatsConnection, FileThatCannotBeUsed_IsNamed) {
  NatsServer server;
  TemporaryDirectory directory;
  std::ofstream(directory / "garbage") << "not what it should be\n";
  for (std::string NatsOptions::*which : {&NatsOptions::creds_file, &NatsOptions::nkey_file, &NatsOptions::tls_ca,
                                          &NatsOptions::tls_cert, &NatsOptions::tls_key}) {
    NatsOptions options = options_for(server.url());
    options.*which = directory / "absent";
    const auto absent = NatsConnection::connect(options);
    ASSERT_FALSE(absent.ok());
    EXPECT_EQ(absent.error().kind, ErrorKind::unavailable);
    EXPECT_TRUE(absent.error().text.starts_with("file_unusable: " + (directory / "absent"))) << absent.error().text;
  }
  NatsOptions options = options_for(server.url());
  options.creds_file = directory / "garbage";
  EXPECT_EQ(NatsConnection::connect(options).error().text,
            "file_unusable: " + (directory / "garbage") + " holds no user's credentials");
}

TEST(NatsConnection, LoginInUrl_IsUsedAndNeverTold) {
  NatsServer server({.extra = "authorization { user: mule, password: hush }"});
  const std::string place = server.url().substr(7);
  EXPECT_TRUE(NatsConnection::connect(options_for("nats://mule:hush@" + place)).ok());
  const auto refused = NatsConnection::connect(options_for("nats://mule:wrong@" + place));
  ASSERT_FALSE(refused.ok());
  EXPECT_TRUE(credentials_refused(refused.error()));
  EXPECT_EQ(refused.error().text.find("wrong"), std::string::npos);
  EXPECT_EQ(refused.error().text.find("mule"), std::string::npos);
}

TEST(NatsConnection, PublishThatIsNotPermitted_IsToldBySubject) {
  NatsServer server({.extra = R"(authorization { users = [ { user: a, password: b,
      permissions: { publish: { deny: "secret.>" } } } ] })"});
  std::mutex mutex;
  std::vector<std::string> refused;
  NatsEvents events;
  events.publish_refused = [&](std::string subject) {
    const std::lock_guard lock(mutex);
    refused.push_back(std::move(subject));
  };
  auto connection = NatsConnection::connect(options_for("nats://a:b@" + server.url().substr(7)), events);
  ASSERT_TRUE(connection.ok()) << connection.error().text;
  ASSERT_TRUE((*connection)->publish("secret.x", "", {}, {}).ok());
  EXPECT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return refused == std::vector<std::string>{"secret.x"};
  }));
  EXPECT_TRUE((*connection)->alive());
}

class NatsTls : public ::testing::Test {
 protected:
  static NatsServerOptions serving(const CertificateAuthority::Pair& pair) {
    NatsServerOptions options;
    options.jetstream = false;
    options.tls_cert = pair.certificate;
    options.tls_key = pair.key;
    return options;
  }
  NatsOptions trusting(const std::string& url) const {
    NatsOptions options = options_for(url);
    options.tls_ca = ca_.ca();
    return options;
  }
  CertificateAuthority ca_;
};

TEST_F(NatsTls, GoodCertificate_IsTaken) {
  NatsServer server(serving(ca_.issue("server", "DNS:localhost")));
  const auto connection = NatsConnection::connect(trusting(server.url()));
  ASSERT_TRUE(connection.ok()) << connection.error().text;
  EXPECT_EQ((*connection)->request("nobody", "", seconds(5))->status, 503);
}

TEST_F(NatsTls, CertificateOfAnotherCa_IsRefused) {
  CertificateAuthority stranger;
  NatsServer server(serving(stranger.issue("server", "DNS:localhost")));
  EXPECT_FALSE(NatsConnection::connect(trusting(server.url())).ok());
  EXPECT_FALSE(NatsConnection::connect(options_for(server.url())).ok());  // nor does the system trust it
}

TEST_F(NatsTls, CertificateForAnotherName_IsRefused) {
  NatsServer server(serving(ca_.issue("server", "DNS:elsewhere.example")));
  EXPECT_FALSE(NatsConnection::connect(trusting(server.url())).ok());
}

TEST_F(NatsTls, Address_IsCheckedAgainstTheCertificate) {
  const auto by_address = [](const NatsServer& server) { return "tls://127.0.0.1:" + std::to_string(server.port()); };
  NatsServer good(serving(ca_.issue("good", "IP:127.0.0.1")));
  const auto connection = NatsConnection::connect(trusting(by_address(good)));
  EXPECT_TRUE(connection.ok()) << connection.error().text;
  NatsServer bad(serving(ca_.issue("bad", "DNS:localhost,IP:10.1.2.3")));
  EXPECT_FALSE(NatsConnection::connect(trusting(by_address(bad))).ok());
}

TEST_F(NatsTls, MissingCaFile_IsSaidAndNotIgnored) {
  NatsServer server(serving(ca_.issue("server", "DNS:localhost")));
  NatsOptions options = options_for(server.url());
  options.tls_ca = "/nonexistent/ca.pem";
  const auto connection = NatsConnection::connect(options);
  ASSERT_FALSE(connection.ok());
  EXPECT_NE(connection.error().text.find("tls_ca"), std::string::npos) << connection.error().text;
}

TEST_F(NatsTls, PlainServer_IsNotTalkedToInTheClear) {
  NatsServer server({.jetstream = false});
  EXPECT_FALSE(NatsConnection::connect(trusting("tls://localhost:" + std::to_string(server.port()))).ok());
}

TEST_F(NatsTls, TlsServer_IsNotReachedWithoutTls) {
  NatsServer server(serving(ca_.issue("server", "DNS:localhost")));
  const auto connection = NatsConnection::connect(options_for("nats://localhost:" + std::to_string(server.port())));
  ASSERT_FALSE(connection.ok());
  EXPECT_NE(connection.error().text.find("TLS"), std::string::npos) << connection.error().text;
}

TEST_F(NatsTls, ClientCertificate_IsShownWhenAsked) {
  NatsServerOptions serving_mutual = serving(ca_.issue("server", "DNS:localhost"));
  serving_mutual.tls_ca = ca_.ca();
  NatsServer server(serving_mutual);
  NatsOptions options = trusting(server.url());
  EXPECT_FALSE(NatsConnection::connect(options).ok());
  const auto client = ca_.issue("client", "DNS:client");
  options.tls_cert = client.certificate;
  options.tls_key = client.key;
  const auto connection = NatsConnection::connect(options);
  EXPECT_TRUE(connection.ok()) << connection.error().text;
}

}  // namespace
}  // namespace holdfast
