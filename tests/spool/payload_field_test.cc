// One field of a payload: what is found, and every reason for which nothing is.
#include "spool/payload_field.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace holdfast {
namespace {

using std::string_literals::operator""s;
using Found = std::variant<FieldValue, Reason>;

Found find(const std::string& path, std::string_view payload) {
  const auto parsed = parse_field_path(path);
  EXPECT_TRUE(parsed.ok()) << path;
  return find_field(*parsed, as_bytes(payload));
}

Reason refusal(const std::string& path, std::string_view payload) {
  const Found found = find(path, payload);
  return std::holds_alternative<Reason>(found) ? std::get<Reason>(found) : Reason::none;
}

Found string(std::string text) {
  return FieldValue{FieldType::string, std::move(text)};
}
Found number(std::string text) {
  return FieldValue{FieldType::number, std::move(text)};
}
Found boolean(std::string text) {
  return FieldValue{FieldType::boolean, std::move(text)};
}

std::string repeated(const std::string& text, std::size_t count) {
  std::string all;
  all.reserve(text.size() * count);
  for (std::size_t n = 0; n < count; ++n) all += text;
  return all;
}

TEST(PayloadField, IsFoundWhereThePathLeads) {
  EXPECT_EQ(find("id", R"({"id":"a"})"), string("a"));
  EXPECT_EQ(find("id", " \t\r\n{ \"id\" : \"a\" }\n"), string("a"));
  EXPECT_EQ(find("order.id", R"({"x":1,"order":{"id":7,"y":[1]},"z":null})"), number("7"));
  EXPECT_EQ(find("a.b.c", R"({"a":{"b":{"c":true}}})"), boolean("true"));
  EXPECT_EQ(find("a.b.c", R"({"a":{"b":{"c":false}}})"), boolean("false"));
  EXPECT_EQ(find(R"(a\.b)", R"({"a":{"b":1},"a.b":2})"), number("2"));
  EXPECT_EQ(find(R"(a\\)", R"({"a\\":2})"), number("2"));
  EXPECT_EQ(find("a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a", repeated(R"({"a":)", 16) + "1" + repeated("}", 16)), number("1"));
}

TEST(PayloadField, IsNotMistakenForOneElsewhere) {
  EXPECT_EQ(find("id", R"({"order":{"id":1},"list":[{"id":2}],"id":3})"), number("3"));
  EXPECT_EQ(find("a.id", R"({"b":{"id":1},"a":{"c":{"id":2},"id":3},"id":4})"), number("3"));
  EXPECT_EQ(find("id", R"({"i":1,"idd":2,"ID":3,"":4,"id":5})"), number("5"));
  EXPECT_EQ(refusal("id", R"({"id2":1})"), Reason::field_missing);
  EXPECT_EQ(refusal("a.b", R"({"a.b":1})"), Reason::field_missing);
}

TEST(PayloadField, AKeyIsComparedAsItReads_HoweverItIsSpelled) {
  EXPECT_EQ(find("id", R"({"\u0069\u0064":1})"), number("1"));
  EXPECT_EQ(find("h\xc3\xb6he", R"({"h\u00f6he":1})"), number("1"));
  EXPECT_EQ(refusal("h\xc3\xb6he", "{\"ho\xcc\x88he\":1}"), Reason::field_missing) << "no normalisation";
  EXPECT_EQ(find("\xf0\x9f\x9a\x9a", R"({"\ud83d\ude9a":1})"), number("1"));
}

TEST(PayloadField, AString_IsItsBytes) {
  EXPECT_EQ(find("id", R"({"id":"\"\\\/\b\f\n\r\t"})"), string("\"\\/\b\f\n\r\t"));
  EXPECT_EQ(find("id", R"({"id":"a\u0000b"})"), string("a\0b"s));
  EXPECT_EQ(find("id", R"({"id":"\u00e9"})"), string("\xc3\xa9"));
  EXPECT_EQ(find("id", R"({"id":"e\u0301"})"), string("e\xcc\x81")) << "no normalisation";
  EXPECT_EQ(find("id", R"({"id":"\ud83d\ude9a"})"), string("\xf0\x9f\x9a\x9a"));
  EXPECT_EQ(find("id", "{\"id\":\"\x7f \xef\xbb\xbf\"}"), string("\x7f \xef\xbb\xbf"));
  EXPECT_EQ(find("id", R"({"id":" "})"), string(" "));
  EXPECT_EQ(find("id", R"({"id":"1"})"), string("1")) << "never the number";
  EXPECT_EQ(find("id", R"({"id":"true"})"), string("true"));
}

TEST(PayloadField, ANumber_IsItsPlainDecimal) {
  for (const char* one : {"1", "1.0", "1e0", "10e-1", "0.1E+1"})
    EXPECT_EQ(find("id", R"({"id":)"s + one + "}"), number("1")) << one;
  EXPECT_EQ(find("id", R"({"id":-0})"), number("0"));
  EXPECT_EQ(find("id", R"({"id":9007199254740993})"), number("9007199254740993"));
  EXPECT_EQ(find("id", R"({"id":18446744073709551617})"), number("18446744073709551617"));
  EXPECT_EQ(find("id", R"({"id":-9223372036854775809})"), number("-9223372036854775809"));
  EXPECT_EQ(find("id", R"({"id":0.30000000000000004441})"), number("0.30000000000000004441"));
  EXPECT_EQ(find("id", R"({"id":0e99999999999})"), number("0"));
}

struct Refused {
  const char* payload;
  Reason reason;
};

TEST(PayloadField, ThatCannotNameAMessage_IsRefusedWithItsReason) {
  const Refused all[] = {
      {R"({})", Reason::field_missing},
      {R"({"order":{}})", Reason::field_missing},
      {R"({"id":1})", Reason::field_missing},
      {R"({"order":null})", Reason::field_missing},
      {R"({"order":"id"})", Reason::field_missing},
      {R"({"order":7})", Reason::field_missing},
      {R"({"order":true})", Reason::field_missing},
      {R"({"order":[{"id":1}]})", Reason::field_missing},
      {R"([{"order":{"id":1}}])", Reason::field_missing},
      {R"("order")", Reason::field_missing},
      {R"(7)", Reason::field_missing},
      {R"(null)", Reason::field_missing},
      {R"({"order":{"id":null}})", Reason::field_null},
      {R"({"order":{"id":{}}})", Reason::field_object},
      {R"({"order":{"id":{"id":1}}})", Reason::field_object},
      {R"({"order":{"id":[]}})", Reason::field_array},
      {R"({"order":{"id":["a"]}})", Reason::field_array},
      {R"({"order":{"id":""}})", Reason::field_empty},
      {R"({"order":{"id":1e999}})", Reason::field_absurd_number},
      {R"({"order":{"id":-1e-999}})", Reason::field_absurd_number},
      {R"({"order":{"id":1e2147483647}})", Reason::field_absurd_number},
      {R"({"order":{"id":1e99999999999999999999}})", Reason::field_absurd_number},
      {R"({"order":{"id":1e-99999999999999999999}})", Reason::field_absurd_number},
      {R"({"order":{"id":1,"id":2}})", Reason::field_repeated},
      {R"({"order":{"id":1,"id":1}})", Reason::field_repeated},
      {R"({"order":{"id":1,"i\u0064":1}})", Reason::field_repeated},
      {R"({"order":{"id":null,"id":null}})", Reason::field_repeated},
      {R"({"order":{"id":1},"order":{"id":2}})", Reason::field_repeated},
      {R"({"order":{"id":1},"order":null})", Reason::field_repeated},
      {R"({"order":1,"order":{"id":1}})", Reason::field_repeated},
      {R"({"order":1,"order":2})", Reason::field_repeated},
  };
  for (const Refused& one : all) EXPECT_EQ(refusal("order.id", one.payload), one.reason) << one.payload;
}

TEST(PayloadField, KeysThatComeTwice_DoNotMatterOffThePath) {
  EXPECT_EQ(find("order.id", R"({"x":1,"x":2,"order":{"y":1,"y":1,"id":3},"z":{"id":1,"id":2}})"), number("3"));
  EXPECT_EQ(find("id", R"({"id":1,"list":[{"id":2},{"id":2,"id":3}],"":1,"":2})"), number("1"));
  EXPECT_EQ(refusal("id", R"({"id":{"id":1,"id":2}})"), Reason::field_object);
}

TEST(PayloadField, WhatIsNoJson_HasNone_WhereverItCeasesToBe) {
  const std::string whole = R"({"id":"a"})";
  const std::string all[] = {
      "",
      " ",
      "id",
      "\xef\xbb\xbf" + whole,
      whole + "x",
      whole + whole,
      whole + "\0"s,
      whole + ",",
      "\0"s + whole,
      "\xff\xfe{",
      R"({"id":"a",})",
      R"({"id":"a")",
      R"({"id":"a"]})",
      R"({"id":"a","x":[1,]})",
      R"({"id":"a","x":NaN})",
      R"({"id":NaN})",
      R"({"id":Infinity})",
      R"({"id":-Infinity})",
      R"({"id":nul})",
      R"({"id":True})",
      R"({"id":'a'})",
      R"({id:"a"})",
      R"({"id":"a"/**/})",
      "{\"id\":\"a\"}//",
      R"({"id":01})",
      R"({"id":+1})",
      R"({"id":.5})",
      R"({"id":5.})",
      R"({"id":1e})",
      R"({"id":0x1})",
      R"({"id":--1})",
      R"({"id":-})",
      R"({"id":1 2})",
      "{\"id\":\"a\nb\"}",
      "{\"id\":\"a\0b\"}"s,
      R"({"id":"\x41"})",
      R"({"id":"\u12"})",
      R"({"id":"\ud800"})",
      R"({"id":"\udc00"})",
      R"({"id":"\ud800x"})",
      R"({"id":"\ud800\u0041"})",
      R"({"id":"\udc00\ud800"})",
      R"({"id":"a","x":"\ud800"})",
      R"({"id":"a","\udfff":1})",
      "{\"id\":\"\xff\"}",
      "{\"id\":\"\xc0\xaf\"}",
      "{\"id\":\"\xed\xa0\x80\"}",
      "{\"id\":\"\xf4\x90\x80\x80\"}",
      "{\"id\":\"a\",\"\xc3\":1}",
      "{\"id\":\"a\",\"x\":\"\xe2\x82\"}",
  };
  for (const std::string& payload : all) EXPECT_EQ(refusal("id", payload), Reason::not_json) << payload;
}

TEST(PayloadField, NestedTooDeep_IsNoJson) {
  for (const std::size_t depth : {257u, 10'000u, 1'000'000u}) {
    const std::string nested = repeated("[", depth) + repeated("]", depth);
    EXPECT_EQ(refusal("id", nested), Reason::not_json);
    EXPECT_EQ(refusal("id", repeated("[", depth)), Reason::not_json);
    EXPECT_EQ(refusal("id", R"({"id":)" + nested + "}"), Reason::not_json);
    EXPECT_EQ(refusal("id", R"({"id":1,"x":)" + nested + "}"), Reason::not_json);
    EXPECT_EQ(refusal("id", repeated(R"({"id":)", depth) + "1" + repeated("}", depth)), Reason::not_json);
  }
  const std::string deepest = repeated("[", kMaxJsonDepth - 1) + repeated("]", kMaxJsonDepth - 1);
  EXPECT_EQ(find("id", R"({"x":)" + deepest + R"(,"id":1})"), number("1"));
  EXPECT_EQ(refusal("id", R"({"id":)" + deepest + "}"), Reason::field_array);
  EXPECT_EQ(refusal("id", R"({"x":[)" + deepest + R"(],"id":1})"), Reason::not_json);
}

TEST(PayloadField, NumbersOffThePath_MayBeAbsurd) {
  EXPECT_EQ(find("id", R"({"x":1e999,"id":"a"})"), string("a"));
  EXPECT_EQ(find("id", R"({"x":1e99999999999999999999,"id":"1e99999999999999999999"})"),
            string("1e99999999999999999999"));
  EXPECT_EQ(find("id", R"({"x":-0.5E-99999999999999999999,"y":"\"e99999999999","id":2e0000000000001})"), number("20"));
  EXPECT_EQ(find("id", R"({"id":"a","x":)" + std::string(10'000, '9') + "}"), string("a"));
  EXPECT_EQ(refusal("id", R"({"x":1e99999999999999999999,"id":1e5000000000})"), Reason::field_absurd_number);
  EXPECT_EQ(refusal("id", R"({"x":1e99999999999999999999,"id":"a"]})"), Reason::not_json);
  EXPECT_EQ(refusal("id", R"({"x":1e99999999999,"id":"\ud800"})"), Reason::not_json);
  EXPECT_EQ(refusal("id", R"(1e99999999999 ")"), Reason::not_json);
}

TEST(PayloadField, AString_IsTakenUpToItsBound) {
  const std::string longest(kMaxFieldText, 's');
  EXPECT_EQ(find("id", R"({"id":")" + longest + "\"}"), string(longest));
  EXPECT_EQ(refusal("id", R"({"id":"s)" + longest + "\"}"), Reason::field_too_long);
  EXPECT_EQ(find("id", R"({"x":"s)" + longest + R"(","id":1})"), number("1"));
  EXPECT_EQ(refusal("id", R"({"id":")" + longest + R"(\n"})"), Reason::field_too_long);
}

constexpr const char* kEnvelopePaths[] = {
    "payload",
    "_nats_sinks.payload_format",
    "_nats_sinks.payload_encoding",
    "_nats_sinks.sha256",
    "_nats_sinks.size_bytes",
    "_nats_sinks.payload_envelope_version",
};

TEST(PayloadField, OfTextThatIsNoJson_IsThatOfItsEnvelope) {
  const std::string text = "gr\xc3\xbc\xc3\x9f\x65\0"s;
  EXPECT_EQ(find("payload", text), string(text));
  EXPECT_EQ(find("_nats_sinks.payload_format", text), string("text"));
  EXPECT_EQ(find("_nats_sinks.payload_encoding", text), string("utf-8"));
  EXPECT_EQ(find("_nats_sinks.sha256", "abc"),
            string("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
  EXPECT_EQ(find("_nats_sinks.size_bytes", text), number("8"));
  EXPECT_EQ(find("_nats_sinks.payload_envelope_version", text), number("1"));
  EXPECT_EQ(find("payload", "\xef\xbb\xbf{}"), string("\xef\xbb\xbf{}"));
  EXPECT_EQ(find("payload", R"({"payload":1,})"), string(R"({"payload":1,})"));
  EXPECT_EQ(find("payload", repeated("[", 10'000)), string(repeated("[", 10'000)));
}

TEST(PayloadField, OfBytesThatAreNoText_IsThatOfTheirEnvelope) {
  EXPECT_EQ(find("payload", "\xff"), string("/w=="));
  EXPECT_EQ(find("payload", "\xff\xfe"), string("//4="));
  EXPECT_EQ(find("payload", "\xff\xfe\xfd"), string("//79"));
  EXPECT_EQ(find("_nats_sinks.payload_format", "\xff"), string("bytes"));
  EXPECT_EQ(find("_nats_sinks.payload_encoding", "\xff"), string("base64"));
  EXPECT_EQ(find("_nats_sinks.size_bytes", "\xff"), number("1"));
}

TEST(PayloadField, TheEnvelope_HasNothingElse_AndIsNotPutAroundJson) {
  for (const char* path : {"_nats_sinks", "_nats_sinks.x", "payload.x", "sha256", R"(_nats_sinks\.sha256)"})
    EXPECT_EQ(refusal(path, "text"), Reason::not_json) << path;
  for (const char* path : kEnvelopePaths) EXPECT_EQ(refusal(path, R"({"id":1})"), Reason::field_missing) << path;
  EXPECT_EQ(find("payload", R"({"payload":"p"})"), string("p"));
  EXPECT_EQ(find("_nats_sinks.size_bytes", R"({"_nats_sinks":{"size_bytes":5}})"), number("5"));
}

TEST(PayloadField, OfAnEnvelope_HasTheSameBounds) {
  EXPECT_EQ(refusal("payload", ""), Reason::field_empty);
  EXPECT_EQ(find("_nats_sinks.size_bytes", ""), number("0"));
  EXPECT_EQ(find("payload", std::string(kMaxFieldText, 'x')), string(std::string(kMaxFieldText, 'x')));
  EXPECT_EQ(refusal("payload", std::string(kMaxFieldText + 1, 'x')), Reason::field_too_long);
  const std::size_t most = kMaxFieldText / 4 * 3;
  EXPECT_EQ(std::get<FieldValue>(find("payload", std::string(most, '\xff'))).text.size(), kMaxFieldText);
  EXPECT_EQ(refusal("payload", std::string(most + 1, '\xff')), Reason::field_too_long);
}

// Half a minute is far above what any of them takes, sanitizers included, and far below what a payload costs that is
// read again for each of its parts.
TEST(PayloadField, OfAHugePayload_IsFoundInLinearTime) {
  constexpr std::size_t kHuge = 20'000'000;
  const std::pair<std::string, Found> all[] = {
      {R"({"id":1,"x":")" + std::string(3 * kHuge, 'x') + "\"}", number("1")},
      {R"({"id":")" + std::string(kHuge, 'x') + "\"}", Reason::field_too_long},
      {R"({"id":")" + repeated("\\n", kHuge / 2) + "\"}", Reason::field_too_long},
      {R"({")" + std::string(kHuge, 'x') + R"(":0,"id":1})", number("1")},
      {R"({"id":)" + std::string(kHuge, '9') + "}", Reason::field_absurd_number},
      {R"({"id":1e)" + std::string(kHuge, '0') + "}", number("1")},
      {R"({"id":1e)" + std::string(kHuge, '9') + "}", Reason::field_absurd_number},
      {R"({"x":[0)" + repeated(",1e9999999999", kHuge / 13) + R"(],"id":1})", number("1")},
      {R"({"x":0)" + repeated(R"(,"id":1)", kHuge / 7) + "}", Reason::field_repeated},
      {std::string(kHuge, '['), Reason::not_json},
      {std::string(kHuge, ' ') + R"({"id":1})", number("1")},
      {std::string(kHuge, '"'), Reason::not_json},
  };
  for (const auto& [payload, expected] : all) {
    const auto begun = std::chrono::steady_clock::now();
    EXPECT_EQ(find("id", payload), expected) << payload.substr(0, 20);
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(30)) << payload.substr(0, 20);
  }
}

}  // namespace
}  // namespace holdfast
