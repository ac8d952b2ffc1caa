#include "forwarder/http_client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "tests/support/http_stub.h"
#include "tests/support/nats_server.h"
#include "tests/support/odd_peer.h"
#include "tests/support/patience.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

HttpClientOptions plain(std::size_t window = 4) {
  HttpClientOptions options;
  options.window = window;
  options.https_only = false;
  options.deadline = 20s;
  return options;
}

HttpRequest post(const std::string& url, std::string_view body, std::size_t tag = 0) {
  HttpRequest request;
  request.tag = tag;
  request.method = "POST";
  request.url = url;
  request.body = as_bytes(body);
  return request;
}

HttpResponse one(HttpClient& client, HttpRequest request) {
  const auto response = client.exchange(std::move(request));
  EXPECT_TRUE(response.ok());
  return response.ok() ? *response : HttpResponse();
}

TEST(HttpClient, Request_ArrivesAsItIs_AndSoDoesTheResponse) {
  StubRequest seen;
  HttpStub stub([&](const StubRequest& request) {
    seen = request;
    return StubAnswer{202, {{"X-Two", " words here "}, {"Retry-After", "7"}}, "stored\n"};
  });
  HttpClient client(plain());
  const std::string body("\0\r\n\xff", 4);
  HttpRequest request = post(stub.url("/a/../b?c=%2F"), body);
  request.method = "PUT";
  request.headers = {{"Idempotency-Key", "msg:1"}, {"Empty", ""}};
  const HttpResponse response = one(client, request);
  EXPECT_EQ(response.fault, HttpFault::none);
  EXPECT_EQ(response.status, 202);
  EXPECT_EQ(response.body, "stored\n");
  EXPECT_EQ(response.header("x-two"), "words here");
  EXPECT_EQ(response.header("retry-after"), "7");
  EXPECT_EQ(seen.method, "PUT");
  EXPECT_EQ(seen.path, "/a/../b?c=%2F");
  EXPECT_EQ(seen.body, body);
  EXPECT_EQ(seen.header("idempotency-key"), "msg:1");
  EXPECT_EQ(seen.header("content-length"), "4");
  EXPECT_TRUE(seen.headers.contains("empty"));
  EXPECT_FALSE(seen.headers.contains("content-type"));
  EXPECT_FALSE(seen.headers.contains("expect"));
}

TEST(HttpClient, EmptyBody_AndMethodsInTurnOnOneConnection) {
  std::vector<std::string> seen;
  HttpStub stub([&](const StubRequest& request) {
    seen.push_back(request.method + request.header("content-length") + request.body);
    return StubAnswer{200, {}, request.method == "HEAD" ? "" : "body"};
  });
  HttpClient client(plain());
  for (const char* method : {"POST", "GET", "HEAD", "PATCH", "DELETE", "POST"}) {
    HttpRequest request = post(stub.url(), "");
    request.method = method;
    EXPECT_EQ(one(client, request).status, 200) << method;
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"POST0", "GET", "HEAD", "PATCH0", "DELETE", "POST0"}));
  EXPECT_EQ(stub.connections(), 1);
}

TEST(HttpClient, AWindow_IsNeverExceeded_AndEveryExchangeEndsOnce) {
  std::atomic<int> going{0};
  HttpStub stub([&](const StubRequest&) { return StubAnswer{204, {}, "", 2ms}; });
  HttpClient client(plain(8));
  std::vector<int> ends(300);
  std::size_t next = 0;
  int most = 0;
  const auto carried = client.carry(
      [&]() -> std::optional<HttpRequest> {
        if (next == ends.size()) return std::nullopt;
        most = std::max(most, ++going);
        return post(stub.url(), "x", next++);
      },
      [&](std::size_t tag, const HttpResponse& response) {
        --going;
        EXPECT_EQ(response.status, 204);
        ++ends[tag];
      });
  EXPECT_TRUE(carried.ok());
  EXPECT_EQ(ends, std::vector<int>(300, 1));
  EXPECT_EQ(most, 8);
  EXPECT_LE(stub.connections(), 8);
}

TEST(HttpClient, ARequestThatCannotBeSent_HarmsNoOther) {
  HttpStub stub;
  HttpClient client(plain());
  HttpRequest split = post(stub.url(), "x", 1);
  split.headers = {{"Name", "a\r\nOther: b"}};
  std::vector<HttpRequest> requests{post(stub.url(), "x", 0), split, post("ftp://127.0.0.1/", "x", 2),
                                    post("http://", "x", 3), post(stub.url(), "x", 4)};
  std::vector<HttpFault> faults(5, HttpFault::other);
  std::size_t next = 0;
  ASSERT_TRUE(client
                  .carry(
                      [&]() -> std::optional<HttpRequest> {
                        return next < requests.size() ? std::optional(requests[next++]) : std::nullopt;
                      },
                      [&](std::size_t tag, const HttpResponse& response) { faults[tag] = response.fault; })
                  .ok());
  const auto none = HttpFault::none, refused = HttpFault::refused;
  EXPECT_EQ(faults, (std::vector<HttpFault>{none, refused, refused, refused, none}));
}

TEST(HttpClient, HttpsOnly_SendsNothingInTheClear) {
  HttpStub stub;
  HttpClientOptions options = plain();
  options.https_only = true;
  HttpClient client(options);
  EXPECT_EQ(one(client, post(stub.url(), "x")).fault, HttpFault::refused);
  EXPECT_EQ(stub.connections(), 0);
}

TEST(HttpClient, ARedirect_IsAnAnswer) {
  HttpStub elsewhere;
  HttpStub stub([&](const StubRequest&) { return StubAnswer{307, {{"Location", elsewhere.url()}}, ""}; });
  HttpClient client(plain());
  EXPECT_EQ(one(client, post(stub.url(), "x")).status, 307);
  EXPECT_EQ(elsewhere.requests(), 0);
}

struct Bad {
  Manner manner;
  HttpFault fault;
  int status;
};

TEST(HttpClient, WhatIsNoWholeResponse_IsNeverTakenForOne_ButItsStatusIsTold) {
  HttpClientOptions options = plain();
  options.deadline = 1s;
  options.response_bytes = 4096;
  for (const Bad& bad :
       {Bad{Manner::close_unanswered, HttpFault::cut_off, 0}, Bad{Manner::cut_in_head, HttpFault::cut_off, 0},
        Bad{Manner::cut_in_body, HttpFault::cut_off, 200}, Bad{Manner::wrong_length, HttpFault::timeout, 200},
        Bad{Manner::hang, HttpFault::timeout, 0}, Bad{Manner::trickle, HttpFault::timeout, 200},
        Bad{Manner::endless, HttpFault::too_large, 200}, Bad{Manner::no_http, HttpFault::malformed, 0}}) {
    HttpStub stub([&](const StubRequest&) { return StubAnswer{200, {}, std::string(100, 'x'), 0ns, bad.manner}; });
    HttpClient client(options);
    const HttpResponse response = one(client, post(stub.url(), "x"));
    EXPECT_EQ(response.fault, bad.fault) << static_cast<int>(bad.manner);
    EXPECT_EQ(response.status, bad.status) << static_cast<int>(bad.manner);
    EXPECT_TRUE(response.may_have_arrived);
    stub.answer_with([](const StubRequest&) { return StubAnswer(); });
    EXPECT_EQ(one(client, post(stub.url(), "x")).status, 204) << "and the next one is well";
  }
}

TEST(HttpClient, NobodyThere_NothingArrived) {
  HttpStub stub;
  HttpClient client(plain());
  EXPECT_TRUE(one(client, post(stub.url(), "x")).may_have_arrived);
  HttpResponse response = one(client, post("http://127.0.0.1:" + std::to_string(free_port()) + "/", "x"));
  EXPECT_EQ(response.fault, HttpFault::connect);
  EXPECT_FALSE(response.may_have_arrived);
  response = one(client, post("http://nowhere.invalid/", "x"));
  EXPECT_EQ(response.fault, HttpFault::resolve);
  EXPECT_FALSE(response.may_have_arrived);
}

TEST(HttpClient, APeerThatDoesNotSpeakTls_IsATlsFault_AndNothingArrived) {
  const OddPeer silent("", OddPeer::Manner::hangs_up);
  HttpClient client(plain());
  const HttpResponse response = one(client, post(silent.url("https") + "/", "x"));
  EXPECT_EQ(response.fault, HttpFault::tls);
  EXPECT_FALSE(response.may_have_arrived);
}

TEST(HttpClient, AHandshakeThatHangs_EndsWithTheConnectLimit) {
  const OddPeer silent("");
  HttpClientOptions options = plain();
  options.connect_limit = 300ms;
  HttpClient client(options);
  const HttpResponse response = one(client, post(silent.url("https") + "/", "x"));
  EXPECT_EQ(response.fault, HttpFault::connect);
  EXPECT_FALSE(response.may_have_arrived);
}

TEST(HttpClient, Interrupted_ReturnsSoon_AndWorksAfter) {
  HttpStub stub([](const StubRequest&) { return StubAnswer{200, {}, "", 0ns, Manner::hang}; });
  HttpClientOptions options = plain();
  options.deadline = 10min;
  HttpClient client(options);
  std::atomic<bool> over = false;
  std::thread calling([&] {
    EXPECT_FALSE(client.exchange(post(stub.url(), "x")).ok());
    over = true;
  });
  EXPECT_TRUE(eventually([&] { return stub.requests() == 1; }));
  client.interrupt();
  EXPECT_TRUE(eventually([&] { return over.load(); }, 5s));
  calling.join();
  stub.answer_with([](const StubRequest&) { return StubAnswer(); });
  EXPECT_EQ(one(client, post(stub.url(), "x")).status, 204);
}

TEST(HttpClient, TheEnvironmentsProxy_HasNoSay) {
  HttpStub stub, proxy([](const StubRequest&) { return StubAnswer{407, {}, "no"}; });
  for (const char* name : {"http_proxy", "https_proxy", "all_proxy"}) ::setenv(name, proxy.url("").c_str(), 1);
  HttpClient client(plain());
  EXPECT_EQ(one(client, post(stub.url(), "x")).status, 204);
  for (const char* name : {"http_proxy", "https_proxy", "all_proxy"}) ::unsetenv(name);
  EXPECT_EQ(proxy.connections(), 0);
}

TEST(HttpClient, AProxyThatRefuses_IsNotThePeer) {
  HttpStub proxy([](const StubRequest& request) {
    EXPECT_EQ(request.method, "CONNECT");
    return StubAnswer{407, {{"Proxy-Authenticate", "Basic realm=\"x\""}}, "no"};
  });
  HttpClientOptions options = plain();
  options.proxy = proxy.url("");
  ::setenv("no_proxy", "*", 1);
  HttpClient client(options);
  const HttpResponse response = one(client, post("https://hub.example/", "x"));
  ::unsetenv("no_proxy");
  EXPECT_EQ(response.fault, HttpFault::proxy);
  EXPECT_EQ(response.proxy_status, 407);
  EXPECT_EQ(response.status, 0);
  EXPECT_FALSE(response.may_have_arrived);
}

TEST(HttpClient, ConnectTo_GoesElsewhere_UnderTheSameName) {
  std::string host;
  HttpStub stub([&](const StubRequest& request) {
    host = request.header("host");
    return StubAnswer();
  });
  HttpClientOptions options = plain();
  options.connect_to = {"hub.example:80:127.0.0.1:" + std::to_string(stub.port())};
  HttpClient client(options);
  EXPECT_EQ(one(client, post("http://hub.example/", "x")).status, 204);
  EXPECT_EQ(host, "hub.example");
}

TEST(HttpClient, ALargeBody_GoesWhole) {
  std::size_t size = 0;
  HttpStub stub([&](const StubRequest& request) {
    size = request.body.size();
    return StubAnswer();
  });
  HttpClient client(plain());
  EXPECT_EQ(one(client, post(stub.url(), std::string(8u << 20, 'x'))).status, 204);
  EXPECT_EQ(size, 8u << 20);
}

}  // namespace
}  // namespace holdfast
