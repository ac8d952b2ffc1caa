// The HTTP target against a real nginx: TLS, HTTP/2, certificates that expire and are renewed, a proxy in the way.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "tests/forwarder/delivered.h"
#include "tests/forwarder/worlds_http.h"
#include "tests/support/certificates.h"
#include "tests/support/connect_proxy.h"
#include "tests/support/nginx_server.h"
#include "tests/support/temporary_directory.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

class HttpTls : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!why_no_nginx().empty()) GTEST_SKIP() << why_no_nginx();
    pair = authority.issue("server", "DNS:localhost,IP:127.0.0.1");
  }

  NginxOptions server() const {
    NginxOptions options;
    options.certificate = pair.certificate;
    options.key = pair.key;
    return options;
  }
  HttpTargetOptions options(const std::string& url) const {
    HttpTargetOptions made = http_options(url);
    made.client.https_only = true;
    made.client.tls_ca = authority.ca();
    return made;
  }
  static std::vector<DueRecord> records(std::uint64_t count) {
    std::vector<DueRecord> made;
    for (std::uint64_t n = 1; n <= count; ++n) made.push_back(made_record(n, "payload"));
    return made;
  }
  // Of all, the one kind and code; "" for accepted.
  static std::string what(HttpTarget& target) {
    const Delivered delivered = deliver(target, records(3));
    if (!delivered.result.ok()) return "error";
    std::set<std::string> found;
    for (const auto& outcome : delivered.outcomes) {
      found.insert(outcome->kind == OutcomeKind::rejected ? "rejected" : outcome->state);
    }
    return found.size() == 1 ? *found.begin() : "several";
  }
  // In place of what was there, as a renewal does it.
  static void put(const std::string& from, const std::string& to) {
    std::filesystem::copy_file(from, to + ".new", std::filesystem::copy_options::overwrite_existing);
    std::filesystem::rename(to + ".new", to);
  }

  CertificateAuthority authority;
  CertificateAuthority::Pair pair;
  const TemporaryDirectory directory;
};

TEST_F(HttpTls, Http2_IsUsedWhereItIsOffered_OnOneConnection) {
  NginxServer nginx(server());
  HttpTarget target(options(nginx.url()));
  const Delivered delivered = deliver(target, records(200));
  EXPECT_EQ(delivered.count(OutcomeKind::delivered), 200u);
  std::set<std::string> connections, keys;
  for (const NginxRequest& request : nginx.requests()) {
    EXPECT_EQ(request.protocol, "HTTP/2.0");
    connections.insert(request.connection);
    keys.insert(request.key);
  }
  EXPECT_EQ(connections.size(), 1u);
  EXPECT_EQ(keys.size(), 200u);
}

TEST_F(HttpTls, Http1_WhereItIsNot_OnConnectionsThatAreKept) {
  NginxOptions plain = server();
  plain.http2 = false;
  NginxServer nginx(plain);
  HttpTarget target(options(nginx.url()));
  EXPECT_EQ(deliver(target, records(200)).count(OutcomeKind::delivered), 200u);
  EXPECT_EQ(deliver(target, records(200)).count(OutcomeKind::delivered), 200u);
  std::set<std::string> connections;
  for (const NginxRequest& request : nginx.requests()) {
    EXPECT_EQ(request.protocol, "HTTP/1.1");
    connections.insert(request.connection);
  }
  EXPECT_LE(connections.size(), HttpClientOptions().window);
}

TEST_F(HttpTls, ACertificateThatCannotBeBelieved_HoldsTheTarget_AndNothingIsSent) {
  CertificateAuthority other;
  const auto expired = authority.issue("expired", "DNS:localhost,IP:127.0.0.1", -1);
  const auto of_another = authority.issue("another", "DNS:hub.example");
  const auto of_nobody = other.issue("nobody", "DNS:localhost,IP:127.0.0.1");
  NginxServer nginx(server());
  HttpTarget target(options(nginx.url("localhost")));
  EXPECT_EQ(what(target), "");
  for (const auto& bad : {expired, of_another, of_nobody}) {
    const std::size_t before = nginx.requests().size();
    nginx.stop();
    nginx.options().certificate = bad.certificate;
    nginx.options().key = bad.key;
    nginx.start();
    EXPECT_EQ(what(target), "certificate_refused") << bad.certificate;
    EXPECT_EQ(nginx.requests().size(), before);
  }
  nginx.stop();
  nginx.options().certificate = pair.certificate;
  nginx.options().key = pair.key;
  nginx.start();
  EXPECT_EQ(what(target), "") << "the server's certificate was renewed";
}

TEST_F(HttpTls, ACaThatIsReplaced_IsUsedWithoutARestart) {
  CertificateAuthority other;
  NginxServer nginx(server());
  HttpTargetOptions made = options(nginx.url());
  made.client.tls_ca = directory / "ca.pem";
  HttpTarget target(made);
  EXPECT_EQ(what(target), "file_unusable");
  put(other.ca(), made.client.tls_ca);
  EXPECT_EQ(what(target), "certificate_refused");
  put(authority.ca(), made.client.tls_ca);
  EXPECT_EQ(what(target), "");
  put(other.ca(), made.client.tls_ca);
  EXPECT_EQ(what(target), "certificate_refused") << "no connection outlives what it was believed by";
}

TEST_F(HttpTls, AClientCertificateThatIsRenewed_IsUsedWithoutARestart) {
  CertificateAuthority other;
  const auto stranger = other.issue("stranger", "DNS:truck-07.example");
  const auto known = authority.issue("known", "DNS:truck-07.example");
  NginxOptions strict = server();
  strict.client_ca = authority.ca();
  NginxServer nginx(strict);
  HttpTargetOptions made = options(nginx.url());
  made.client.tls_cert = directory / "box.pem";
  made.client.tls_key = directory / "box.key";
  HttpTarget target(made);
  EXPECT_EQ(what(target), "file_unusable");
  put(stranger.certificate, made.client.tls_cert);
  put(stranger.key, made.client.tls_key);
  EXPECT_EQ(what(target), "rejected") << "nginx says 400 to it, and has accepted nothing yet";
  put(known.certificate, made.client.tls_cert);
  EXPECT_EQ(what(target), "file_unusable") << "half renewed: the key is another's";
  put(known.key, made.client.tls_key);
  EXPECT_EQ(what(target), "");
  put(stranger.certificate, made.client.tls_cert);
  put(stranger.key, made.client.tls_key);
  EXPECT_EQ(what(target), "rejected");
}

TEST_F(HttpTls, AProxy_IsGoneThrough_WithItsLogin_WhichMayBeRenewed) {
  NginxServer nginx(server());
  ConnectProxy proxy(nginx.port(), "box:s3cret");
  HttpTargetOptions made = options("https://localhost:" + std::to_string(nginx.port()) + "/in");
  made.client.proxy = proxy.url();
  made.proxy_login_file = directory / "login";
  std::ofstream(made.proxy_login_file) << "box:wrong\n";
  HttpTarget target(made);
  EXPECT_EQ(what(target), "proxy_refused");
  std::ofstream(directory / "new") << "box:s3cret\n";
  put(directory / "new", made.proxy_login_file);
  EXPECT_EQ(what(target), "");
  EXPECT_GE(proxy.tunnels(), 1);
  nginx.stop();
  EXPECT_NE(what(target), "") << "the proxy reaches nobody";
  nginx.start();
  EXPECT_EQ(what(target), "");
}

// Nothing arrives and nobody says so: the link of the box went away in the middle.
TEST_F(HttpTls, ABlackHoleInTheMiddle_EndsWithTheDeadline_AndItsConnectionIsNotUsedAgain) {
  for (const bool http2 : {true, false}) {
    NginxOptions upstream = server();
    upstream.http2 = http2;
    NginxServer nginx(upstream);
    ConnectProxy link(nginx.port());
    HttpTargetOptions made = options(nginx.url("localhost"));
    made.client.proxy = link.url();
    made.client.deadline = 1s;
    HttpTarget target(made);
    EXPECT_EQ(what(target), "");
    link.swallow(true);
    EXPECT_NE(what(target), "");
    EXPECT_FALSE(deliver(target, records(100)).result.ok());
    link.swallow(false);
    EXPECT_EQ(what(target), "") << "a new connection, while the old one is still open";
  }
}

}  // namespace
}  // namespace holdfast
