#include "forwarder/http_verdict.h"

#include <gtest/gtest.h>

#include "forwarder/retry_after.h"
#include "forwarder/wildcard.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

HttpResponse answer(int status, std::vector<Header> headers = {}, std::string body = {}) {
  HttpResponse response;
  response.status = status;
  response.headers = std::move(headers);
  response.body = std::move(body);
  response.may_have_arrived = true;
  return response;
}

struct Row {
  int status;
  OutcomeKind kind;
  const char* code;  // of a rejection: the reason
};

// docs/targets.md, "http"; a status that is not in it is retried.
const std::vector<Row> kTable = {
    {200, OutcomeKind::delivered, ""},
    {201, OutcomeKind::delivered, ""},
    {202, OutcomeKind::delivered, ""},
    {204, OutcomeKind::delivered, ""},
    {203, OutcomeKind::hold_lane, "unexpected_answer"},
    {206, OutcomeKind::hold_lane, "unexpected_answer"},
    {207, OutcomeKind::hold_lane, "unexpected_answer"},
    {300, OutcomeKind::hold_target, "redirected"},
    {301, OutcomeKind::hold_target, "redirected"},
    {302, OutcomeKind::hold_target, "redirected"},
    {304, OutcomeKind::hold_target, "redirected"},
    {307, OutcomeKind::hold_target, "redirected"},
    {308, OutcomeKind::hold_target, "redirected"},
    {400, OutcomeKind::rejected, "rejected"},
    {422, OutcomeKind::rejected, "rejected"},
    {413, OutcomeKind::rejected, "oversize"},
    {401, OutcomeKind::hold_target, "credentials_refused"},
    {403, OutcomeKind::hold_lane, "forbidden"},
    {404, OutcomeKind::hold_target, "no_endpoint"},
    {405, OutcomeKind::hold_target, "no_endpoint"},
    {410, OutcomeKind::hold_target, "no_endpoint"},
    {415, OutcomeKind::hold_target, "no_endpoint"},
    {407, OutcomeKind::hold_target, "proxy_refused"},
    {408, OutcomeKind::retry, "request_timeout"},
    {409, OutcomeKind::retry, "in_progress"},
    {425, OutcomeKind::retry, "too_early"},
    {429, OutcomeKind::retry, "throttled"},
    {500, OutcomeKind::retry, "server_error"},
    {501, OutcomeKind::retry, "server_error"},
    {503, OutcomeKind::retry, "server_error"},
    {511, OutcomeKind::retry, "server_error"},
    {599, OutcomeKind::retry, "server_error"},
    {402, OutcomeKind::retry, "unknown_status"},
    {406, OutcomeKind::retry, "unknown_status"},
    {411, OutcomeKind::retry, "unknown_status"},
    {412, OutcomeKind::retry, "unknown_status"},
    {414, OutcomeKind::retry, "unknown_status"},
    {418, OutcomeKind::retry, "unknown_status"},
    {421, OutcomeKind::retry, "unknown_status"},
    {431, OutcomeKind::retry, "unknown_status"},
    {451, OutcomeKind::retry, "unknown_status"},
    {499, OutcomeKind::retry, "unknown_status"},
    {600, OutcomeKind::retry, "unknown_status"},
    {999, OutcomeKind::retry, "unknown_status"},
};

TEST(HttpVerdict, EachStatus_IsWhatTheTableSays) {
  for (const Row& row : kTable) {
    const Outcome outcome = outcome_of_response(answer(row.status), {});
    EXPECT_EQ(outcome.kind, row.kind) << row.status;
    if (outcome.kind == OutcomeKind::rejected) {
      EXPECT_EQ(reason_text(outcome.reason), row.code) << row.status;
    } else {
      EXPECT_STREQ(outcome.state, row.code) << row.status;
    }
  }
}

TEST(HttpVerdict, NothingUnlisted_IsARejection_OrASuccess) {
  for (int status = 200; status < 1000; ++status) {
    const Outcome outcome = outcome_of_response(answer(status), {});
    const bool listed = std::ranges::any_of(kTable, [&](const Row& row) { return row.status == status; });
    if (listed) continue;
    EXPECT_NE(outcome.kind, OutcomeKind::rejected) << status;
    EXPECT_NE(outcome.kind, OutcomeKind::delivered) << status;
    EXPECT_STRNE(outcome.state, "") << status;
  }
}

// A status that refuses says so whatever became of its body; one that accepts needs all of it.
TEST(HttpVerdict, ABodyThatDidNotComeWhole_IsNoSuccess_ButMayBeARefusal) {
  for (const HttpFault fault : {HttpFault::cut_off, HttpFault::timeout, HttpFault::malformed, HttpFault::too_large}) {
    HttpResponse response = answer(200);
    response.fault = fault;
    EXPECT_EQ(outcome_of_response(response, {}).kind, OutcomeKind::retry);
    response.status = 401;
    EXPECT_EQ(outcome_of_response(response, {}).kind, OutcomeKind::hold_target);
    response.status = 400;
    EXPECT_EQ(outcome_of_response(response, {}).kind, OutcomeKind::rejected);
    response.status = 503;
    EXPECT_EQ(outcome_of_response(response, {}).kind, OutcomeKind::retry);
  }
}

TEST(HttpVerdict, AReplay_IsADuplicate) {
  EXPECT_EQ(outcome_of_response(answer(201, {{"idempotent-replayed", "true"}}), {}).kind, OutcomeKind::duplicate);
  EXPECT_EQ(outcome_of_response(answer(201, {{"Idempotent-Replayed", "false"}}), {}).kind, OutcomeKind::delivered);
}

TEST(HttpVerdict, WhatIsExpected_MustBeThere) {
  HttpExpect expect;
  expect.statuses = {202};
  expect.header = "X-Ingest";
  expect.header_value = "fleet-*";
  expect.body = "*\"stored\":true*";
  const auto kind = [&](const HttpResponse& response) { return outcome_of_response(response, expect).kind; };
  const std::string body = "{\"stored\":true}";
  EXPECT_EQ(kind(answer(202, {{"x-ingest", "fleet-7"}}, body)), OutcomeKind::delivered);
  EXPECT_EQ(kind(answer(200, {{"x-ingest", "fleet-7"}}, body)), OutcomeKind::hold_lane);
  EXPECT_EQ(kind(answer(202, {{"x-ingest", "other"}}, body)), OutcomeKind::hold_lane);
  EXPECT_EQ(kind(answer(202, {}, body)), OutcomeKind::hold_lane);
  EXPECT_EQ(kind(answer(202, {{"x-ingest", "fleet-7"}}, "<html>Please log in</html>")), OutcomeKind::hold_lane);
  expect.header_value.clear();
  EXPECT_EQ(kind(answer(202, {{"x-ingest", "other"}}, body)), OutcomeKind::delivered);
}

TEST(HttpVerdict, WordsOfARejection_AreKept_AndBounded) {
  const Outcome outcome = outcome_of_response(answer(422, {}, std::string(5000, 'w')), {});
  EXPECT_EQ(outcome.words.size(), 1024u);
}

TEST(HttpVerdict, Faults_ThatCannotDependOnTheRecord_HoldTheTarget) {
  const auto code = [](HttpFault fault) {
    HttpResponse response;
    response.fault = fault;
    const auto outcome = outcome_of_fault(response);
    if (!outcome) return "";
    EXPECT_EQ(outcome->kind, OutcomeKind::hold_target);
    return outcome->state;
  };
  EXPECT_STREQ(code(HttpFault::certificate), "certificate_refused");
  EXPECT_STREQ(code(HttpFault::own_identity), "credentials_refused");
  EXPECT_STREQ(code(HttpFault::file_unusable), "file_unusable");
  EXPECT_STREQ(code(HttpFault::proxy), "proxy_refused");
  EXPECT_STREQ(code(HttpFault::refused), "not_sendable");
  for (const HttpFault fault : {HttpFault::resolve, HttpFault::connect, HttpFault::tls, HttpFault::timeout,
                                HttpFault::cut_off, HttpFault::malformed, HttpFault::other}) {
    EXPECT_STREQ(code(fault), "");
  }
}

TEST(HttpVerdict, RetryAfter_InSecondsAndAsADate) {
  const std::string now = "Sun, 06 Nov 1994 08:49:37 GMT";
  const auto asked = [&](const std::string& value, const std::string& date = "") {
    std::vector<Header> headers{{"Retry-After", value}};
    if (!date.empty()) headers.push_back({"Date", date});
    return retry_after(answer(503, headers));
  };
  EXPECT_EQ(asked("7"), 7s);
  EXPECT_EQ(asked("0"), 0s);
  EXPECT_EQ(asked("99999999999999999999999"), 24h);
  EXPECT_EQ(asked("-1"), std::nullopt);
  EXPECT_EQ(asked("soon"), std::nullopt);
  EXPECT_EQ(asked(""), std::nullopt);
  EXPECT_EQ(asked("Sun, 06 Nov 1994 08:50:37 GMT", now), 60s);
  EXPECT_EQ(asked("Sunday, 06-Nov-94 08:50:07 GMT", now), 30s);
  EXPECT_EQ(asked("Sun Nov  6 08:49:47 1994", now), 10s);
  EXPECT_EQ(asked("Sun, 06 Nov 1994 08:00:00 GMT", now), 0s) << "it has passed";
  EXPECT_EQ(asked("Sun, 06 Nov 1994 08:50:37 GMT"), std::nullopt) << "the box's own clock is not asked";
  EXPECT_EQ(asked("Sun, 32 Nov 1994 08:50:37 GMT", now), std::nullopt);
  EXPECT_EQ(retry_after(answer(503)), std::nullopt);
  EXPECT_EQ(outcome_of_response(answer(429, {{"Retry-After", "7"}}), {}).retry_after, 7s);
  EXPECT_TRUE(asks_for_less(answer(429)));
  EXPECT_TRUE(asks_for_less(answer(503, {{"Retry-After", "1"}})));
  EXPECT_FALSE(asks_for_less(answer(503)));
}

TEST(HttpVerdict, HttpDates) {
  EXPECT_EQ(parse_http_date("Thu, 01 Jan 1970 00:00:00 GMT"), 0);
  EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), 784111777);
  EXPECT_EQ(parse_http_date("Tue, 29 Feb 2028 12:00:00 GMT"), 1835438400);
  for (const char* wrong : {"", "now", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 8:49:37 GMT",
                            "Sun, 06 Nov 1994 24:00:00 GMT", "Mon, 29 Feb 2027 12:00:00 GMT"}) {
    EXPECT_EQ(parse_http_date(wrong), std::nullopt) << wrong;
  }
}

TEST(HttpVerdict, VerdictsOfABatch_AreReadByKey) {
  const HttpVerdicts said =
      parse_http_verdicts(answer(200, {},
                                 R"({"verdicts":[{"key":"a","verdict":"accepted"},{"key":"b","verdict":"duplicate"},
                 {"key":"c","verdict":"conflict"},{"key":"d","verdict":"rejected"},{"key":"e","verdict":"too_large"},
                 {"key":"f","verdict":"retry","retry_after":2.5},{"key":"g","verdict":"perhaps"},{"key":"h"},7]})"));
  ASSERT_TRUE(said.present);
  ASSERT_EQ(said.verdicts.size(), 8u);
  const auto outcome = [&](std::size_t at) { return said.verdicts[at].outcome; };
  EXPECT_EQ(outcome(0).kind, OutcomeKind::delivered);
  EXPECT_EQ(outcome(1).kind, OutcomeKind::duplicate);
  EXPECT_EQ(outcome(2).reason, Reason::exists_otherwise);
  EXPECT_EQ(outcome(3).reason, Reason::rejected);
  EXPECT_EQ(outcome(4).reason, Reason::oversize);
  EXPECT_EQ(outcome(5).kind, OutcomeKind::retry);
  EXPECT_EQ(outcome(5).retry_after, 2500ms);
  EXPECT_STREQ(outcome(6).state, "unknown_verdict");
  EXPECT_STREQ(outcome(7).state, "unknown_verdict");
}

TEST(HttpVerdict, ABodyThatIsNoVerdict_IsNotTakenForOne) {
  EXPECT_FALSE(parse_http_verdicts(answer(200)).present);
  EXPECT_FALSE(parse_http_verdicts(answer(200, {}, "ok")).present);
  EXPECT_FALSE(parse_http_verdicts(answer(200, {}, "{\"stored\":7}")).present);
  const HttpVerdicts broken = parse_http_verdicts(answer(200, {{"Content-Type", "application/JSON"}}, "{\"verdi"));
  EXPECT_TRUE(broken.present) << "it meant to say something of each: nothing is known";
  EXPECT_TRUE(broken.verdicts.empty());
  EXPECT_TRUE(parse_http_verdicts(answer(200, {}, "{\"verdicts\":7}")).present);
}

TEST(Wildcard, StarsStandForAnything) {
  EXPECT_TRUE(matches_wildcard("", ""));
  EXPECT_TRUE(matches_wildcard("*", ""));
  EXPECT_TRUE(matches_wildcard("a*c", "abc"));
  EXPECT_TRUE(matches_wildcard("*b*b*", "abcb"));
  EXPECT_TRUE(matches_wildcard("a*", "a"));
  EXPECT_FALSE(matches_wildcard("a*b", "abc"));
  EXPECT_FALSE(matches_wildcard("", "a"));
  EXPECT_FALSE(matches_wildcard("a", ""));
  EXPECT_FALSE(matches_wildcard(std::string(100, '*') + "b", std::string(10'000, 'a')));
}

}  // namespace
}  // namespace holdfast
