#include "appliance/json.h"

#include <gtest/gtest.h>

#include <limits>

namespace holdfast {
namespace {

TEST(Json, WhatIsSet_IsWrittenInItsOrder) {
  Json json;
  json.set("b", 1);
  json.set("a", Json::List{Json("x\n\"y"), Json(true), Json()});
  json.set("b", std::uint64_t{18446744073709551615u});
  json.set("c", Json::Fields());
  EXPECT_EQ(json_text(json), R"({"b":18446744073709551615,"a":["x\n\"y",true,null],"c":{}})");
  EXPECT_EQ(
      pretty_json_text(json),
      "{\n  \"b\": 18446744073709551615,\n  \"a\": [\n    \"x\\n\\\"y\",\n    true,\n    null\n  ],\n  \"c\": {}\n}");
}

TEST(Json, WhatIsWritten_IsReadBack) {
  const std::string text = R"({"a":[1,-2,"x",{"b":null}],"t":true,"u":18446744073709551615})";
  const auto json = parse_json(text);
  ASSERT_TRUE(json);
  EXPECT_EQ(json_text(*json), text);
  EXPECT_EQ((*json)["a"].list()[0].count(), 1u);
  EXPECT_EQ((*json)["a"].list()[2].text(), "x");
  EXPECT_EQ((*json)["u"].count(), 18446744073709551615u);
  EXPECT_TRUE((*json)["t"].flag());
}

TEST(Json, WhatIsNotThere_IsNothing) {
  const auto json = parse_json(R"({"a":-1,"b":"1"})");
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["a"].count(), 0u);
  EXPECT_EQ((*json)["b"].count(), 0u);
  EXPECT_EQ((*json)["c"]["d"]["e"].text(), "");
  EXPECT_TRUE((*json)["c"].is_null());
  EXPECT_TRUE((*json)["a"].list().empty());
  EXPECT_FALSE((*json)["b"].flag());
  EXPECT_EQ((*json)["a"].number(), -1.0);
}

TEST(Json, NumbersThatJsonHasNot_AreNull) {
  EXPECT_EQ(json_text(Json(std::numeric_limits<double>::infinity())), "null");
  EXPECT_EQ(json_text(Json(std::numeric_limits<double>::quiet_NaN())), "null");
}

TEST(Json, WhatIsNoJson_IsRefused) {
  for (const char* text : {"", "{", "{\"a\":}", "[1,]", "{} x", "'a'", "{\"a\":1,}", "nul", "\"\xff\""})
    EXPECT_FALSE(parse_json(text)) << text;
  EXPECT_FALSE(parse_json(std::string(1000, '[') + std::string(1000, ']')));
}

TEST(Json, BytesThatAreNoText_BecomeReplacementCharacters) {
  EXPECT_EQ(json_text(Json("a\xff\xc3(\xed\xa0\x80\xf0\x9f\x98\x80")),
            "\"a\xef\xbf\xbd\xef\xbf\xbd(\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xf0\x9f\x98\x80\"");
}

}  // namespace
}  // namespace holdfast
