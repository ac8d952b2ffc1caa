// Header blocks as producers send them.
#include "forwarder/nats_headers.h"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

using Headers = std::vector<Header>;

Headers headers_of(std::string_view lines) {
  const auto head = parse_nats_head("NATS/1.0\r\n" + std::string(lines) + "\r\n");
  return head ? head->headers : Headers{{"", "unreadable"}};
}

TEST(NatsHeaders, ComeInTheirOrder_WithAllValues) {
  EXPECT_EQ(headers_of("B: 1\r\nA: 2\r\nB: 3\r\n"), (Headers{{"B", "1"}, {"A", "2"}, {"B", "3"}}));
  EXPECT_EQ(headers_of(""), Headers{});
  EXPECT_EQ(headers_of("A:b:c\r\n"), (Headers{{"A", "b:c"}}));
}

// What the client library reads as one header.
TEST(NatsHeaders, AnEmptyValue_IsAValue_AndTheNextLineIsTheNextHeader) {
  EXPECT_EQ(headers_of("X-Empty:\r\nX-B: c\r\n"), (Headers{{"X-Empty", ""}, {"X-B", "c"}}));
  EXPECT_EQ(headers_of("X-Empty: \t \r\nX-B: c\r\n"), (Headers{{"X-Empty", ""}, {"X-B", "c"}}));
  EXPECT_EQ(headers_of("X-B: c\r\nX-Empty:\r\n"), (Headers{{"X-B", "c"}, {"X-Empty", ""}}));
}

TEST(NatsHeaders, BlanksAroundAValue_AreNoPartOfIt) {
  EXPECT_EQ(headers_of("A:\t b c \t\r\nB :d\r\n"), (Headers{{"A", "b c"}, {"B ", "d"}}));
  EXPECT_EQ(headers_of("A: b\nc\r\n"), (Headers{{"A", "b\nc"}}));  // only both together end a line
}

TEST(NatsHeaders, ALineThatBeginsWithABlank_GoesOn) {
  EXPECT_EQ(headers_of("A: b\r\n  c\r\n\td\r\nE: f\r\n"), (Headers{{"A", "b c d"}, {"E", "f"}}));
}

TEST(NatsHeaders, StatusAndDescription_AreOfTheFirstLine) {
  auto head = parse_nats_head("NATS/1.0 100 Idle Heartbeat\r\nNats-Pending-Messages: 7\r\n\r\n");
  ASSERT_TRUE(head);
  EXPECT_EQ(head->status, 100);
  EXPECT_EQ(head->description, "Idle Heartbeat");
  EXPECT_EQ(head->value("Nats-Pending-Messages"), "7");
  EXPECT_EQ(head->value("nothing"), "");
  head = parse_nats_head("NATS/1.0 503\r\n\r\n");
  ASSERT_TRUE(head);
  EXPECT_EQ(head->status, 503);
  EXPECT_EQ(head->description, "");
  EXPECT_EQ(parse_nats_head("")->status, 0);
}

TEST(NatsHeaders, WhatIsNoBlock_IsRefused) {
  for (const char* block :
       {"NATS/1.0", "NATS/1.0\r\n", "NATS/1.0\r\nA: b\r\n", "NATS/1.0\r\nno colon\r\n\r\n",
        "NATS/1.0\r\n: no name\r\n\r\n", "NATS/1.0\r\n goes on with nothing\r\n\r\n", "NATS/2.0\r\n\r\n",
        "NATS/1.01\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n", "\r\n", "NATS/1.0\r\nA: b\r\n\r\nmore", "NATS/1.0\nA: b\n\n"}) {
    EXPECT_FALSE(parse_nats_head(block)) << block;
  }
}

}  // namespace
}  // namespace holdfast
