#include "forwarder/nats_messages.h"

#include <gtest/gtest.h>

#include <random>

#include "crypto/text.h"
#include "forwarder/nats_limits.h"
#include "forwarder/nats_url.h"

namespace holdfast {
namespace {

template <typename T>
const T* good(const ApiReply<T>& reply) {
  return std::get_if<T>(&reply);
}
template <typename T>
bool malformed(const ApiReply<T>& reply) {
  const auto* error = std::get_if<ApiError>(&reply);
  return error != nullptr && error->code == 0 && error->err_code == 0;
}

TEST(AckSubject, BothFormsAndATrailingToken_AreRead) {
  for (const char* text : {
           "$JS.ACK.STREAM.durable.3.17.5.1714564800123456789.42",
           "$JS.ACK.STREAM.durable.3.17.5.1714564800123456789.42.tail",
           "$JS.ACK.hub.AHASH.STREAM.durable.3.17.5.1714564800123456789.42",
           "$JS.ACK._.AHASH.STREAM.durable.3.17.5.1714564800123456789.42.tail",
       }) {
    const auto ack = parse_ack_subject(text);
    ASSERT_TRUE(ack) << text;
    EXPECT_EQ(ack->stream, "STREAM");
    EXPECT_EQ(ack->consumer, "durable");
    EXPECT_EQ(ack->deliveries, 3u);
    EXPECT_EQ(ack->stream_sequence, 17u);
    EXPECT_EQ(ack->consumer_sequence, 5u);
    EXPECT_EQ(ack->timestamp_ns, 1714564800123456789);
    EXPECT_EQ(ack->pending, 42u);
  }
}

TEST(AckSubject, TimeBefore1970_IsRead) {
  const auto ack = parse_ack_subject("$JS.ACK.S.c.1.1.1.-5.0");
  ASSERT_TRUE(ack);
  EXPECT_EQ(ack->timestamp_ns, -5);
}

TEST(AckSubject, AnythingElse_IsRefused) {
  for (const char* text : {
           "",
           "$JS.ACK.",
           "_INBOX.abc.1",
           "$JS.ACK.STREAM.durable.3.17.5.1714564800123456789",
           "$JS.ACK.STREAM.durable.x.17.5.1714564800123456789.42",
           "$JS.ACK.STREAM.durable.3.-17.5.1714564800123456789.42",
           "$JS.ACK.STREAM.durable.3.17.5.99999999999999999999.42",
           "$JS.ACK.STREAM.durable.3.18446744073709551616.5.1.42",
           "$JS.ACK.STREAM..3.17.5.1714564800123456789.42",
           "$JS.ACK..durable.3.17.5.1714564800123456789.42",
           "$JS.ACK.STREAM.durable.3.17.5.1714564800123456789.42 ",
           "$JS.ACK.a.b.c.d.1.2.3.4.5.6.7",
           "$js.ack.STREAM.durable.3.17.5.1714564800123456789.42",
       }) {
    EXPECT_FALSE(parse_ack_subject(text)) << text;
  }
}

TEST(PubAck, Stored_GivesItsSequence) {
  const auto reply = parse_pub_ack(R"({"stream":"S","seq":7})");
  ASSERT_NE(good(reply), nullptr);
  EXPECT_EQ(good(reply)->sequence, 7u);
  EXPECT_FALSE(good(reply)->duplicate);
  EXPECT_EQ(good(parse_pub_ack(R"({"stream":"S","domain":"hub","seq":18446744073709551615})"))->sequence, UINT64_MAX);
}

TEST(PubAck, Duplicate_IsTold) {
  const auto reply = parse_pub_ack(R"({"stream":"S","seq":7,"duplicate": true})");
  ASSERT_NE(good(reply), nullptr);
  EXPECT_TRUE(good(reply)->duplicate);
}

TEST(PubAck, DuplicateThatIsNotStoredYet_IsNoAcknowledgement) {
  const auto reply = parse_pub_ack(R"({"stream":"S","seq":0,"duplicate": true})");
  ASSERT_EQ(good(reply), nullptr);
  EXPECT_TRUE(std::get<ApiError>(reply).is(ApiCode::duplicate_in_progress));
}

TEST(PubAck, ErrorWithSequenceZero_IsAnError) {
  const auto reply = parse_pub_ack(
      R"({"error":{"code":503,"err_code":10077,"description":"maximum messages exceeded"},"stream":"S","seq":0})");
  ASSERT_EQ(good(reply), nullptr);
  const auto& error = std::get<ApiError>(reply);
  EXPECT_TRUE(error.is(ApiCode::store_failed));
  EXPECT_EQ(error.words, "maximum messages exceeded");
  EXPECT_EQ(error_name(error), "error 10077");
}

TEST(PubAck, ErrorBesideAGoodSequence_IsAnError) {
  EXPECT_EQ(good(parse_pub_ack(R"({"stream":"S","seq":9,"error":{"code":400,"err_code":10054}})")), nullptr);
  EXPECT_EQ(good(parse_pub_ack(R"({"stream":"S","seq":9,"error":{}})")), nullptr);
  EXPECT_EQ(good(parse_pub_ack(R"({"stream":"S","seq":9,"error":"no"})")), nullptr);
}

TEST(PubAck, NoneOfJetStreams_IsMalformed) {
  for (const char* text :
       {"", "OK", "{}", "[]", "null", "17", "{\"seq\":1}", "{\"stream\":\"\",\"seq\":1}", "{\"stream\":\"S\"}",
        "{\"stream\":\"S\",\"seq\":0}", "{\"stream\":\"S\",\"seq\":-1}", "{\"stream\":\"S\",\"seq\":1.0}",
        "{\"stream\":\"S\",\"seq\":\"1\"}", "{\"stream\":\"S\",\"seq\":18446744073709551616}",
        "{\"stream\":7,\"seq\":1}", "{\"stream\":\"S\",\"seq\":1,\"duplicate\":1}", "{\"stream\":\"S\",\"seq\":1",
        "{\"stream\":\"S\",\"seq\":1}x"}) {
    EXPECT_TRUE(malformed(parse_pub_ack(text))) << text;
  }
}

TEST(PubAck, WordsOfAnError_AreCut) {
  const auto reply = parse_pub_ack(R"({"error":{"code":400,"description":")" + std::string(100'000, 'x') + R"("}})");
  EXPECT_EQ(std::get<ApiError>(reply).words.size(), 1024u);
}

TEST(PubAck, DeepNesting_IsRefused) {
  EXPECT_TRUE(malformed(parse_pub_ack(std::string(100'000, '['))));
  std::string deep = R"({"stream":"S","seq":1,"x":)";
  for (int i = 0; i < 1000; ++i) deep += "{\"a\":";
  EXPECT_TRUE(malformed(parse_pub_ack(deep)));
}

constexpr const char* kStream = R"({"type":"io.nats.jetstream.api.v1.stream_info_response","config":{"name":"S",
  "subjects":["a.>","b"],"retention":"workqueue","max_consumers":-1},"created":"2024-05-01T12:00:00Z",
  "state":{"messages":3,"bytes":120,"first_seq":5,"first_ts":"2024-05-01T12:00:00Z","last_seq":9,"consumer_count":1}})";

TEST(StreamInfo, IsRead) {
  const auto reply = parse_stream_info(kStream);
  const StreamInfo* info = good(reply);
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->created, "2024-05-01T12:00:00Z");
  EXPECT_EQ(info->subjects, (std::vector<std::string>{"a.>", "b"}));
  EXPECT_TRUE(info->work_queue);
  EXPECT_TRUE(info->only_subjects);
  EXPECT_EQ(info->messages, 3u);
  EXPECT_EQ(info->first_sequence, 5u);
  EXPECT_EQ(info->last_sequence, 9u);
}

TEST(StreamInfo, NotFound_IsAnError) {
  const auto reply = parse_stream_info(R"({"error":{"code":404,"err_code":10059,"description":"stream not found"}})");
  ASSERT_EQ(good(reply), nullptr);
  EXPECT_TRUE(std::get<ApiError>(reply).is(ApiCode::stream_not_found));
}

TEST(StreamInfo, PartsMissingOrOfAnotherKind_AreMalformed) {
  for (const char* text :
       {"{}", R"({"created":"x"})", R"({"created":"x","config":{}})", R"({"created":"x","config":{},"state":[]})",
        R"({"config":{},"state":{}})", R"({"created":"x","config":{"subjects":"a"},"state":{}})",
        R"({"created":"x","config":{"subjects":[1]},"state":{}})",
        R"({"created":"x","config":{},"state":{"last_seq":-1}})"}) {
    EXPECT_TRUE(malformed(parse_stream_info(text))) << text;
  }
}

TEST(ConsumerInfo, IsRead) {
  const auto reply = parse_consumer_info(R"({"stream_name":"S","name":"c","created":"2024-05-01T12:00:00.5Z",
    "config":{"durable_name":"c","description":"d","deliver_policy":"by_start_sequence","opt_start_seq":12,
    "ack_policy":"explicit",
    "ack_wait":30000000000,"max_deliver":-1,"filter_subject":"a.>","replay_policy":"instant",
    "max_ack_pending":20000,"headers_only":true},
    "delivered":{"consumer_seq":4,"stream_seq":19},"ack_floor":{"consumer_seq":2,"stream_seq":17},
    "num_ack_pending":2,"num_pending":8})");
  const ConsumerInfo* info = good(reply);
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->config.name, "c");
  EXPECT_EQ(info->config.filters, std::vector<std::string>{"a.>"});
  EXPECT_EQ(info->config.deliver_policy, "by_start_sequence");
  EXPECT_EQ(info->config.start_sequence, 12u);
  EXPECT_EQ(info->config.ack_wait, std::chrono::seconds(30));
  EXPECT_EQ(info->config.max_deliver, -1);
  EXPECT_EQ(info->config.max_ack_pending, 20000);
  EXPECT_TRUE(info->config.headers_only);
  EXPECT_FALSE(info->config.push);
  EXPECT_EQ(info->delivered_sequence, 19u);
  EXPECT_EQ(info->floor_sequence, 17u);
  EXPECT_EQ(info->pending, 8u);
  EXPECT_EQ(info->unacknowledged, 2u);
}

TEST(StoredMessage, IsReadWithItsTimeToTheNanosecond) {
  const auto reply = parse_stored_message(R"({"message":{"subject":"a.b","seq":7,"hdrs":"TkFUUw==","data":"eA==",)"
                                          R"("time":"2024-05-01T12:00:00.123456789Z"}})");
  ASSERT_NE(good(reply), nullptr);
  EXPECT_EQ(good(reply)->subject, "a.b");
  EXPECT_EQ(good(reply)->sequence, 7u);
  EXPECT_EQ(good(reply)->timestamp_ns, 1714564800123456789);
  EXPECT_TRUE(malformed(parse_stored_message(R"({"message":{"subject":"a","seq":7,"time":"yesterday"}})")));
  EXPECT_TRUE(malformed(parse_stored_message(R"({"message":{"subject":"a","seq":0,"time":"2024-05-01T12:00:00Z"}})")));
}

TEST(StoredContent, IsReadToItsLastByte) {
  const auto with = [](const std::string& fields) {
    return parse_stored_content(R"({"message":{"subject":"a.b","seq":7,"time":"2024-05-01T12:00:00Z")" + fields + "}}");
  };
  const auto full = with(R"(,"hdrs":")" + to_base64(as_bytes("NATS/1.0\r\nA: 1\r\nB:x:y\r\nE:\r\n\r\n")) +
                         R"(","data":")" + to_base64(as_bytes(std::string_view("\0x", 2))) + '"');
  ASSERT_TRUE(std::holds_alternative<StoredContent>(full));
  EXPECT_EQ(std::get<StoredContent>(full).place.sequence, 7u);
  EXPECT_EQ(std::get<StoredContent>(full).headers, (std::vector<Header>{{"A", "1"}, {"B", "x:y"}, {"E", ""}}));
  EXPECT_EQ(std::get<StoredContent>(full).payload, (Bytes{0, 'x'}));
  const auto empty = with("");
  ASSERT_TRUE(std::holds_alternative<StoredContent>(empty));
  EXPECT_TRUE(std::get<StoredContent>(empty).payload.empty());
  EXPECT_TRUE(malformed(with(R"(,"data":"not base64")")));
  EXPECT_TRUE(malformed(with(R"(,"data":"eA")")));
  EXPECT_TRUE(malformed(with(R"(,"hdrs":"eA==")")));
  EXPECT_TRUE(malformed(with(R"(,"data":7)")));
}

TEST(Time, TextAndNanoseconds_AreTheSame) {
  const std::vector<std::pair<const char*, std::int64_t>> known = {
      {"1970-01-01T00:00:00.000000000Z", 0},
      {"1969-12-31T23:59:59.999999999Z", -1},
      {"2000-02-29T00:00:00.000000001Z", 951782400000000001},
      {"2024-12-31T23:59:59.500000000Z", 1735689599500000000},
      {"2261-01-01T00:00:00.000000000Z", 9183110400000000000},
      {"1678-01-01T00:00:00.000000000Z", -9214560000000000000},
  };
  for (const auto& [text, ns] : known) {
    EXPECT_EQ(parse_time(text), ns) << text;
    EXPECT_EQ(format_time(ns), text);
  }
  EXPECT_EQ(parse_time("2024-05-01T12:00:00Z"), parse_time("2024-05-01T14:30:00.0+02:30"));
  EXPECT_EQ(parse_time("2024-05-01T12:00:00.5Z"), parse_time("2024-05-01T12:00:00.500Z"));
  std::mt19937_64 random(7);
  for (int i = 0; i < 10'000; ++i) {
    const std::int64_t ns =
        std::uniform_int_distribution<std::int64_t>(-9'000'000'000'000'000'000, 9'000'000'000'000'000'000)(random);
    EXPECT_EQ(parse_time(format_time(ns)), ns);
  }
}

TEST(Time, WhatIsNone_IsRefused) {
  for (const char* text :
       {"", "2024", "2024-05-01", "2024-05-01T12:00:00", "2024-13-01T12:00:00Z", "2024-02-30T12:00:00Z",
        "2023-02-29T12:00:00Z", "2024-05-01T24:00:00Z", "2024-05-01T12:60:00Z", "2024-05-01T12:00:00.Z",
        "2024-05-01T12:00:00.1234567890Z", "2024-05-01 12:00:00Z", "2024-05-01T12:00:00Zx", "+024-05-01T12:00:00Z",
        "9999-05-01T12:00:00Z", "2024-05-01T12:00:00+2Z"}) {
    EXPECT_FALSE(parse_time(text)) << text;
  }
}

TEST(Requests, AreWhatTheServerReads) {
  ConsumerConfig config;
  config.name = "holdfast";
  config.filters = {"a.>"};
  config.ack_wait = std::chrono::seconds(30);
  config.max_ack_pending = 20000;
  const std::string one = create_consumer_request("S", config);
  EXPECT_NE(one.find(R"("filter_subject":"a.>")"), std::string::npos) << one;
  EXPECT_NE(one.find(R"("ack_wait":30000000000)"), std::string::npos) << one;
  EXPECT_EQ(one.find("opt_start_seq"), std::string::npos) << one;
  config.filters = {"a.>", "b"};
  config.deliver_policy = "by_start_sequence";
  config.start_sequence = 7;
  const std::string two = create_consumer_request("S", config);
  EXPECT_NE(two.find(R"("filter_subjects":["a.>","b"])"), std::string::npos) << two;
  EXPECT_NE(two.find(R"("opt_start_seq":7)"), std::string::npos) << two;
  EXPECT_EQ(pull_request({256, 0, std::chrono::seconds(5), std::chrono::seconds(1)}),
            R"({"batch":256,"expires":5000000000,"idle_heartbeat":1000000000})");
  EXPECT_EQ(next_message_request(3, "a.\">"), R"({"seq":3,"next_by_subj":"a.\">"})");
}

TEST(Requests, GoToAnotherDomain) {
  EXPECT_EQ(in_domain(stream_info_subject("S"), "edge"), "$JS.edge.API.STREAM.INFO.S");
  EXPECT_EQ(in_domain(stream_info_subject("S"), ""), "$JS.API.STREAM.INFO.S");
  EXPECT_EQ(in_domain("$JS.ACK.S.c.1.1.1.1.1", "edge"), "$JS.ACK.S.c.1.1.1.1.1");
}

// What the server says of a consumer is what it was asked for.
TEST(Requests, EveryWishForAConsumer_IsReadBack) {
  ConsumerConfig config;
  config.name = "c";
  config.deliver_policy = "by_start_time";
  config.start_time = "2026-01-31T12:00:00Z";
  config.headers_only = true;
  config.backoff = {std::chrono::seconds(1), std::chrono::seconds(5)};
  const std::string request = create_consumer_request("S", config);
  const std::string start = R"("config":)";
  std::string written = request.substr(request.find(start) + start.size());
  written.resize(written.find(R"(,"action")"));
  const auto info = parse_consumer_info(R"({"created":"t","config":)" + written + "}");
  const auto* read = std::get_if<ConsumerInfo>(&info);
  ASSERT_NE(read, nullptr) << request;
  EXPECT_EQ(read->config.start_time, config.start_time);
  EXPECT_EQ(read->config.backoff, config.backoff);
  EXPECT_TRUE(read->config.headers_only);
  EXPECT_EQ(read->config.deliver_policy, "by_start_time");
}

TEST(Limits, NamesThatWouldChangeAnApiSubject_AreRefused) {
  for (const char* name : {"S", "TELEMETRY", "a-b_c", "stream1"}) EXPECT_TRUE(valid_api_name(name)) << name;
  for (const char* name : {"", "a.b", "a*", ">", "a b", "a\tb", "a/b", "a\\b", "a\x7f"})
    EXPECT_FALSE(valid_api_name(name)) << name;
  EXPECT_FALSE(valid_api_name(std::string(256, 'a')));
}

TEST(Limits, HeadersThatTheLibraryWouldChange_AreRefused) {
  EXPECT_TRUE(header_fits_wire({"X-Trace", "a b"}));
  EXPECT_TRUE(header_fits_wire({"X", ""}));
  EXPECT_TRUE(header_fits_wire({"\xc3\xa9", "\xc3\xa9"}));
  for (const auto& header : std::vector<Header>{
           {"", "v"}, {"a:b", "v"}, {"a\n", "v"}, {"a", "v\r\nb: c"}, {" a", "v"}, {"a", std::string("v\0w", 3)}}) {
    EXPECT_FALSE(header_fits_wire(header)) << header.name;
  }
  EXPECT_EQ(header_bytes({}), 0u);
  const std::vector<Header> one{{"A", "b"}};
  EXPECT_EQ(header_bytes(one), std::string("NATS/1.0\r\nA: b\r\n\r\n").size());
}

TEST(Url, IsReadStrictly) {
  const auto two = parse_nats_url("nats://mule:hush@box.example,tls://[::1]:14222/");
  ASSERT_TRUE(two);
  ASSERT_EQ(two->size(), 2u);
  EXPECT_EQ((*two)[0], (NatsEndpoint{false, "mule:hush", "box.example", 4222}));
  EXPECT_EQ((*two)[1], (NatsEndpoint{true, "", "::1", 14222}));
  EXPECT_EQ(place_of((*two)[0]), "nats://box.example:4222");
  EXPECT_EQ(place_of((*two)[1]), "tls://[::1]:14222");
  for (const char* url : {"", ",", "nats://a,", "nats:/a", "ws://a", "nats://a:", "nats://a:b", "nats://a:65536",
                          "nats://[::1", "nats://a/b", "nats://a b", "nats://@", "nats://a@"}) {
    EXPECT_FALSE(parse_nats_url(url)) << url;
  }
}

// Damaged documents: whatever comes out is a refusal or a value, never a crash (the sanitizers look on).
TEST(Hostile, FlippedAndCutDocuments_NeverDoHarm) {
  std::mt19937 random(20240501);
  for (int i = 0; i < 20'000; ++i) {
    std::string text = kStream;
    for (unsigned flips = random() % 4; flips > 0; --flips) text[random() % text.size()] = static_cast<char>(random());
    if (random() % 2 == 0) text.resize(random() % text.size());
    (void)parse_stream_info(text);
    (void)parse_consumer_info(text);
    (void)parse_stored_message(text);
    (void)parse_stored_content(text);
    (void)parse_pub_ack(text);
    (void)parse_api_error(text);
  }
}

}  // namespace
}  // namespace holdfast
