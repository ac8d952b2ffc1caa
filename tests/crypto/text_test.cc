// Texts that cross a border.
#include "crypto/text.h"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

TEST(Base64, IsThatOfTheStandard) {
  // RFC 4648, section 10.
  const std::pair<const char*, const char*> known[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, coded] : known) EXPECT_EQ(to_base64(as_bytes(plain)), coded);
}

TEST(Base64, ReadsBack_AndNothingElse) {
  for (const std::string_view text : {"", "f", "fo", "foo", "foob"}) {
    const auto bytes = from_base64(to_base64(as_bytes(text)));
    ASSERT_TRUE(bytes) << text;
    EXPECT_EQ(as_text(*bytes), text);
  }
  for (const std::string_view text : {"Zg", "Zg=", "Zg==Zg==", "Zg== ", " Zg==", "Z===", "Zh==", "Z-==", "Zm9v\n"})
    EXPECT_FALSE(from_base64(text)) << text;
}

TEST(Utf8, IsToldFromWhatOnlyLooksLikeIt) {
  EXPECT_TRUE(is_utf8("plain \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80"));
  EXPECT_TRUE(is_utf8(std::string_view("a\0b", 3)));
  for (const char* text :
       {"\x80", "\xc0\x80", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80"})
    EXPECT_FALSE(is_utf8(text));
  EXPECT_EQ(utf8_length(""), 0u);
}

TEST(ParseDecimal, TakesTheWholeTextOrNothing) {
  EXPECT_EQ(parse_decimal<std::uint64_t>("18446744073709551615"), 18446744073709551615u);
  EXPECT_EQ(parse_decimal<int>("-7"), -7);
  for (const char* text : {"", " 1", "1 ", "+1", "-1", "1x", "0x1", "65536"})
    EXPECT_FALSE(parse_decimal<std::uint16_t>(text)) << text;
}

}  // namespace
}  // namespace holdfast
