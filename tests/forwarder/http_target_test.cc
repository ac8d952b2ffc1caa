#include "forwarder/http_target.h"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "tests/forwarder/delivered.h"
#include "tests/forwarder/worlds_http.h"
#include "tests/support/patience.h"
#include "tests/support/temporary_directory.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using Takes = HttpInbox::Takes;

std::vector<DueRecord> records(std::uint64_t count) {
  std::vector<DueRecord> made;
  for (std::uint64_t n = 1; n <= count; ++n) made.push_back(made_record(n, "payload " + std::to_string(n)));
  return made;
}

StubAnswer said(int status, std::vector<std::pair<std::string, std::string>> headers = {}, std::string body = "") {
  return {status, std::move(headers), std::move(body)};
}

StubAnswer badly(Manner manner, int status = 200) {
  return {status, {}, std::string(100, 'x'), 0ns, manner};
}

void write(const std::string& path, const std::string& text) {
  std::ofstream(path + ".new") << text;
  ASSERT_EQ(std::rename((path + ".new").c_str(), path.c_str()), 0);
}

// All were reported with this code, or nothing is known of them and the error says this one.
std::set<std::string> states(const Delivered& delivered) {
  std::set<std::string> found;
  for (const auto& outcome : delivered.outcomes) {
    if (outcome) found.insert(outcome->state);
  }
  return found;
}

TEST(HttpTarget, ARawRequest_IsThePayload_AndAllElseIsInHeaders) {
  StubRequest seen;
  HttpStub stub([&](const StubRequest& request) {
    seen = request;
    return said(204);
  });
  HttpTargetOptions options = http_options(stub.url("/v1/events"));
  options.method = "PUT";
  options.key_header = "X-Key";
  options.content_type = "application/x-thing";
  options.headers = {{"X-Fleet", "west"}};
  DueRecord record = made_record(7, std::string("\0\r\n\xff", 4), "telemetry.caf\xc3\xa9 %");
  record.envelope.headers = {{"Trace", "a b"}, {"Odd name", "x\r\nInjected: y"}};
  record.accepted_wall_ns = 1'700'000'000'000'000'000;
  HttpTarget target(options);
  EXPECT_EQ(deliver(target, {record}).kinds(), (Kinds{OutcomeKind::delivered}));
  EXPECT_EQ(seen.method, "PUT");
  EXPECT_EQ(seen.path, "/v1/events");
  EXPECT_EQ(seen.body, std::string("\0\r\n\xff", 4));
  const std::map<std::string, std::string> wanted = {
      {"x-key", "msg:7"},
      {"content-type", "application/x-thing"},
      {"x-fleet", "west"},
      {"holdfast-site", "truck-07"},
      {"holdfast-subject", "telemetry.caf%C3%A9%20%25"},
      {"holdfast-stream", "TELEMETRY"},
      {"holdfast-sequence", "7"},
      {"holdfast-timestamp", "7"},
      {"holdfast-spool-sequence", "7"},
      {"holdfast-accepted-at", "2023-11-14T22:13:20.000000000Z"},
      {"holdfast-clock", "untrusted"},
      {"holdfast-header-trace", "a%20b"},
      {"holdfast-header-odd%20name", "x%0D%0AInjected:%20y"},
  };
  for (const auto& [name, value] : wanted) EXPECT_EQ(seen.header(name), value) << name;
  EXPECT_FALSE(seen.headers.contains("injected"));
}

TEST(HttpTarget, AnEnvelope_IsALineOfJson) {
  StubRequest seen;
  HttpStub stub([&](const StubRequest& request) {
    seen = request;
    return said(204);
  });
  HttpTarget target(http_options(stub.url(), Takes::envelope));
  deliver(target, {made_record(1, "hi")});
  EXPECT_EQ(seen.header("content-type"), "application/json");
  EXPECT_EQ(seen.header("idempotency-key"), "msg:1");
  EXPECT_EQ(seen.body,
            "{\"key\":\"msg:1\",\"subject\":\"telemetry.a\",\"payload\":\"aGk=\",\"headers\":[],"
            "\"stream\":\"TELEMETRY\",\"sequence\":1,\"timestamp_ns\":1}\n");
}

// Each answer that is no acceptance: nothing is delivered, nothing is rejected but what the table says, and when the
// endpoint is well again everything arrives, once.
TEST(HttpTarget, WhateverGoesWrong_NothingIsLost_NothingFalselyDelivered_AndItRecovers) {
  const std::vector<StubAnswer> faults = {
      said(500),
      said(503, {{"Retry-After", "1"}}),
      said(429),
      said(401),
      said(403),
      said(404),
      said(302, {{"Location", "http://portal.example/login"}}, "<html>"),
      said(200, {{"Location", "http://portal.example/login"}}, "<html>Please log in</html>"),
      badly(Manner::close_unanswered),
      badly(Manner::cut_in_head),
      badly(Manner::cut_in_body),
      badly(Manner::wrong_length),
      badly(Manner::hang),
      badly(Manner::trickle),
      badly(Manner::endless),
      badly(Manner::no_http),
  };
  for (std::size_t at = 0; at < faults.size(); ++at) {
    HttpInbox inbox(Takes::raw);
    HttpTargetOptions options = http_options(inbox.url());
    options.client.deadline = 1s;
    options.expect.body = "stored";  // a portal says 200, too
    HttpTarget target(options);
    EXPECT_EQ(deliver(target, records(5)).count(OutcomeKind::delivered), 5u);
    inbox.answer_all(faults[at]);
    const Delivered broken = deliver(target, records(40));
    EXPECT_EQ(broken.count(OutcomeKind::delivered) + broken.count(OutcomeKind::duplicate), 0u) << at;
    EXPECT_EQ(broken.count(OutcomeKind::rejected), 0u) << at;
    EXPECT_TRUE(!broken.result.ok() || broken.kinds().size() == 40) << at;
    inbox.well();
    const Delivered after = deliver(target, records(40));
    EXPECT_EQ(after.count(OutcomeKind::duplicate), 5u) << at;
    EXPECT_EQ(after.count(OutcomeKind::delivered), 35u) << at;
    EXPECT_EQ(inbox.held().size(), 40u);
  }
}

TEST(HttpTarget, ARefusalThatIsNotTheRecords_EndsTheDelivery) {
  for (const int status : {401, 404, 407, 429, 301}) {
    HttpStub stub([&](const StubRequest&) { return said(status); });
    HttpTargetOptions options = http_options(stub.url());
    HttpTarget target(options);
    const Delivered delivered = deliver(target, records(500));
    EXPECT_TRUE(delivered.result.ok());
    EXPECT_EQ(delivered.kinds().size(), 500u);
    EXPECT_LE(stub.requests(), static_cast<int>(2 * options.client.window)) << status;
    EXPECT_GT(delivered.count(OutcomeKind::hold_target), 400u) << status;
    EXPECT_EQ(states(delivered).size(), 1u) << status;
  }
}

TEST(HttpTarget, RetryAfter_HoldsWhatWasNotSentAsLong) {
  HttpStub stub([&](const StubRequest&) {
    return said(503, {{"Date", "Sun, 06 Nov 1994 08:49:37 GMT"}, {"Retry-After", "Sun, 06 Nov 1994 08:51:37 GMT"}});
  });
  HttpTarget target(http_options(stub.url()));
  const Delivered delivered = deliver(target, records(100));
  for (const auto& outcome : delivered.outcomes) {
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->retry_after, 120s);
  }
}

TEST(HttpTarget, OnePoisonAmongAThousand_IsRejectedAlone) {
  for (const Takes takes : {Takes::raw, Takes::envelope, Takes::batch}) {
    HttpInbox inbox(takes);
    inbox.refuse("poison");
    inbox.refuse("base64:cG9pc29u");
    HttpTargetOptions options = http_options(inbox.url(), takes);
    if (takes == Takes::batch) options.batch = 64;
    HttpTarget target(options);
    std::vector<DueRecord> made = records(1000);
    made[617] = made_record(618, "poison");
    const Delivered delivered = deliver(target, made);
    ASSERT_TRUE(delivered.result.ok()) << delivered.result.error().text;
    EXPECT_EQ(delivered.count(OutcomeKind::delivered) + delivered.count(OutcomeKind::duplicate), 999u);
    ASSERT_EQ(delivered.outcomes[617]->kind, OutcomeKind::rejected);
    EXPECT_EQ(delivered.outcomes[617]->words,
              takes == Takes::batch ? "one of them is not in this shape" : "not in this shape");
    EXPECT_EQ(inbox.held().size(), 999u);
  }
}

TEST(HttpTarget, AnEndpointThatHangsOverOneRecord_TakesTheOthers) {
  for (const Manner manner : {Manner::hang, Manner::close_unanswered}) {
    HttpStub stub([&](const StubRequest& request) { return request.body == "bad" ? badly(manner) : said(204); });
    HttpTargetOptions options = http_options(stub.url());
    options.client.deadline = 1s;
    HttpTarget target(options);
    std::vector<DueRecord> made = records(200);
    made[3] = made_record(4, "bad");
    std::size_t accepted = 0;
    Delivered delivered;
    // One that fails before any other is answered ends the delivery; the next one knows more.
    for (int tries = 0; tries < 3 && accepted < 199; ++tries) {
      delivered = deliver(target, made);
      accepted = delivered.count(OutcomeKind::delivered);
    }
    EXPECT_EQ(accepted, 199u);
    EXPECT_STREQ(delivered.outcomes[3]->state, "no_answer");
    const Delivered alone = deliver(target, {made[3]});
    EXPECT_TRUE(alone.result.ok()) << "alone it says nothing of the target";
    EXPECT_EQ(alone.kinds(), (Kinds{OutcomeKind::retry}));
  }
}

TEST(HttpTarget, AnEndpointThatVanishes_IsNotAskedForEachRecord) {
  HttpStub stub([](const StubRequest&) { return badly(Manner::hang); });
  HttpTargetOptions options = http_options(stub.url());
  options.client.deadline = 1s;
  HttpTarget target(options);
  const Delivered delivered = deliver(target, records(500));
  EXPECT_FALSE(delivered.result.ok());
  EXPECT_LE(stub.requests(), static_cast<int>(2 * options.client.window));
  EXPECT_LE(delivered.kinds().size(), 2 * options.client.window);
}

TEST(HttpTarget, Batches_AreSettledItemByItem) {
  HttpStub stub([](const StubRequest& request) {
    EXPECT_EQ(request.header("content-type"), "application/x-ndjson");
    EXPECT_EQ(request.header("idempotency-key"), "") << "each line has its own";
    return said(207, {{"Content-Type", "application/json"}},
                R"({"verdicts":[{"key":"msg:6","verdict":"conflict"},{"key":"msg:1","verdict":"accepted"},
                    {"key":"msg:2","verdict":"duplicate"},{"key":"msg:3","verdict":"rejected"},
                    {"key":"msg:4","verdict":"retry","retry_after":3},{"key":"msg:99","verdict":"accepted"},
                    {"key":"msg:3","verdict":"accepted"}]})");
  });
  HttpTarget target(http_options(stub.url(), Takes::batch));
  const Delivered delivered = deliver(target, records(6));
  ASSERT_TRUE(delivered.result.ok());
  EXPECT_EQ(delivered.kinds(), (Kinds{OutcomeKind::delivered, OutcomeKind::duplicate, OutcomeKind::rejected,
                                      OutcomeKind::retry, OutcomeKind::retry, OutcomeKind::rejected}));
  EXPECT_EQ(delivered.outcomes[3]->retry_after, 3s);
  EXPECT_STREQ(delivered.outcomes[4]->state, "no_verdict");
  EXPECT_EQ(delivered.outcomes[5]->reason, Reason::exists_otherwise);
}

TEST(HttpTarget, ABatchWithoutVerdicts_IsSettledAsAWhole_ByItsStatus) {
  StubAnswer answer = said(202, {}, "ok");
  HttpStub stub([&](const StubRequest&) { return answer; });
  HttpTarget target(http_options(stub.url(), Takes::batch));
  EXPECT_EQ(deliver(target, records(6)).count(OutcomeKind::delivered), 6u);
  answer = said(207, {}, "ok");
  EXPECT_EQ(states(deliver(target, records(6))), (std::set<std::string>{"unexpected_answer"}));
  answer = said(500);
  EXPECT_EQ(states(deliver(target, records(6))), (std::set<std::string>{"server_error"}));
  answer = said(200, {{"Content-Type", "application/json"}}, "{\"verdicts\":[{\"key\":\"msg:1\",");
  EXPECT_EQ(states(deliver(target, records(6))), (std::set<std::string>{"no_verdict"}));
  answer = said(400);
  EXPECT_EQ(deliver(target, records(6)).count(OutcomeKind::rejected), 6u) << "each, after it was sent alone";
}

TEST(HttpTarget, Credentials_AreReadAgainWhenTheyWereRenewed) {
  const TemporaryDirectory directory;
  const std::string path = directory / "token";
  HttpStub stub(
      [](const StubRequest& request) { return said(request.header("authorization") == "Bearer second" ? 204 : 401); });
  HttpTargetOptions options = http_options(stub.url());
  options.bearer_file = path;
  HttpTarget target(options);
  EXPECT_EQ(states(deliver(target, records(3))), (std::set<std::string>{"file_unusable"}));
  EXPECT_EQ(stub.requests(), 0) << "without credentials nothing is sent";
  write(path, "first\n");
  EXPECT_EQ(states(deliver(target, records(3))), (std::set<std::string>{"credentials_refused"}));
  write(path, "second\n");
  EXPECT_EQ(deliver(target, records(3)).count(OutcomeKind::delivered), 3u);
  write(path, "two\nlines\n");
  EXPECT_EQ(states(deliver(target, records(3))), (std::set<std::string>{"file_unusable"}));
}

TEST(HttpTarget, BasicCredentials) {
  const TemporaryDirectory directory;
  write(directory / "login", "fleet:s3cret\n");
  std::string seen;
  HttpStub stub([&](const StubRequest& request) {
    seen = request.header("authorization");
    return said(204);
  });
  HttpTargetOptions options = http_options(stub.url());
  options.basic_file = directory / "login";
  HttpTarget target(options);
  deliver(target, records(1));
  EXPECT_EQ(seen, "Basic ZmxlZXQ6czNjcmV0");
}

TEST(HttpTarget, TheHttpsRule_IsTheClients_AndHoldsTheTarget) {
  HttpStub stub;
  HttpTargetOptions options = http_options(stub.url());
  options.client.https_only = true;
  HttpTarget target(options);
  EXPECT_EQ(states(deliver(target, records(3))), (std::set<std::string>{"not_sendable"}));
  EXPECT_EQ(stub.connections(), 0);
}

TEST(HttpTarget, AnUnknownName_IsNothingKnown) {
  HttpTarget target(http_options("http://nowhere.invalid/in"));
  const Delivered delivered = deliver(target, records(30));
  ASSERT_FALSE(delivered.result.ok());
  EXPECT_EQ(delivered.result.error().kind, ErrorKind::unavailable);
  EXPECT_TRUE(delivered.kinds().empty());
}

}  // namespace
}  // namespace holdfast
