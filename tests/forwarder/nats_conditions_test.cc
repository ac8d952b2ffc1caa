// What a stream's own description says about its safety, and how a server's words about streams are read.
#include "forwarder/nats_conditions.h"

#include <gtest/gtest.h>

#include <set>

namespace holdfast {
namespace {

using std::chrono::hours;

std::set<std::string> names(const StreamKeeping& stream) {
  std::set<std::string> found;
  for (const Condition& condition : conditions_of(stream)) found.insert(condition.name);
  return found;
}

StreamKeeping good_stream() {
  StreamKeeping stream;
  stream.replicas = 3;
  stream.duplicate_window = hours(24 * 7);
  return stream;
}

TEST(NatsConditions, AReplicatedStreamThatKnowsKeysForAWeek_HasNone) {
  EXPECT_EQ(names(good_stream()), std::set<std::string>{});
}

TEST(NatsConditions, EachWeakness_IsOne) {
  StreamKeeping stream = good_stream();
  stream.replicas = 1;
  EXPECT_EQ(names(stream), std::set<std::string>{"replicas"});
  stream = good_stream();
  stream.duplicate_window = hours(24 * 7) - std::chrono::seconds(1);
  EXPECT_EQ(names(stream), std::set<std::string>{"duplicate_window"});
  stream = good_stream();
  stream.in_memory = true;
  EXPECT_EQ(names(stream), std::set<std::string>{"storage"});
}

TEST(NatsConditions, TheWindow_IsNamedAsAnOperatorHasIt) {
  StreamKeeping stream = good_stream();
  stream.duplicate_window = std::chrono::minutes(2);
  EXPECT_NE(conditions_of(stream).front().text.find("for 2 min"), std::string::npos);
  stream.duplicate_window = std::chrono::milliseconds(100);
  EXPECT_NE(conditions_of(stream).front().text.find("for 0.1 s"), std::string::npos);
}

TEST(NatsConditions, WhatTheServerSaysOfAStream_IsRead) {
  const auto info = parse_stream_keeping(
      R"({"config":{"num_replicas":3,"duplicate_window":120000000000,"storage":"memory"},"state":{}})");
  const auto* stream = std::get_if<StreamKeeping>(&info);
  ASSERT_NE(stream, nullptr);
  EXPECT_EQ(stream->replicas, 3u);
  EXPECT_EQ(stream->duplicate_window, Nanoseconds(std::chrono::minutes(2)));
  EXPECT_TRUE(stream->in_memory);
  for (const char* odd : {"", "{}", R"({"config":[]})", R"({"config":{"duplicate_window":"2m"}})"})
    EXPECT_TRUE(std::holds_alternative<ApiError>(parse_stream_keeping(odd))) << odd;
}

TEST(NatsConditions, NamesOfStreams_AreRead_AndNothingElseIsTakenForThem) {
  const auto names = parse_stream_names(R"({"total":2,"streams":["A","B"]})");
  EXPECT_EQ(std::get<std::vector<std::string>>(names), (std::vector<std::string>{"A", "B"}));
  EXPECT_TRUE(std::get<std::vector<std::string>>(parse_stream_names(R"({"streams":null})")).empty());
  for (const char* odd : {"", "[]", R"({"streams":"A"})", R"({"streams":[1]})"})
    EXPECT_TRUE(std::holds_alternative<ApiError>(parse_stream_names(odd))) << odd;
  EXPECT_EQ(stream_names_request("a.b"), R"({"subject":"a.b"})");
  EXPECT_EQ(delete_message_request(7), R"({"seq":7})");
  EXPECT_EQ(delete_message_subject("HUB"), "$JS.API.STREAM.MSG.DELETE.HUB");
}

}  // namespace
}  // namespace holdfast
