// A path is read as it was meant, or refused with what is wrong.
#include "spool/field_path.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace holdfast {
namespace {

using std::string_literals::operator""s;

TEST(FieldPath, IsKeysWithDotsBetweenThem) {
  const std::pair<const char*, std::vector<std::string>> paths[] = {
      {"id", {"id"}},
      {"order.id", {"order", "id"}},
      {R"(order\.id)", {"order.id"}},
      {R"(a\\.b)", {"a\\", "b"}},
      {R"(a\\\.b)", {"a\\.b"}},
      {R"(\..\\)", {".", "\\"}},
      {"a b.c:%", {"a b", "c:%"}},
      {" .x", {" ", "x"}},
      {"gr\xc3\xb6\xc3\x9f"
       "e",
       {"gr\xc3\xb6\xc3\x9f"
        "e"}},
  };
  for (const auto& [text, keys] : paths) {
    const auto path = parse_field_path(text);
    ASSERT_TRUE(path.ok()) << text << ": " << path.error().text;
    EXPECT_EQ(path->keys, keys) << text;
    EXPECT_EQ(path->text, text);
  }
}

TEST(FieldPath, ThatCannotBeMeant_IsRefusedWithWhatIsWrong) {
  const std::pair<std::string, std::string> paths[] = {
      {"", "is blank; must name a field, like \"order.id\""},
      {"   ", "is blank; must name a field, like \"order.id\""},
      {"a\tb", "has a control character in it"},
      {"a\nb", "has a control character in it"},
      {"a\0b"s, "has a control character in it"},
      {"a\x7f", "has a control character in it"},
      {"a\xc2\x85", "has a control character in it"},
      {"\xff", "is not UTF-8"},
      {"\xed\xa0\x80", "is not UTF-8"},
      {".", "has an empty key; each dot stands between two keys, \\. is a dot in one"},
      {".a", "has an empty key; each dot stands between two keys, \\. is a dot in one"},
      {"a.", "has an empty key; each dot stands between two keys, \\. is a dot in one"},
      {"a..b", "has an empty key; each dot stands between two keys, \\. is a dot in one"},
      {"a\\", "has a backslash that escapes nothing; \\. is a dot in a key, \\\\ a backslash"},
      {"a\\b", "has a backslash that escapes nothing; \\. is a dot in a key, \\\\ a backslash"},
      {"a\\u0041", "has a backslash that escapes nothing; \\. is a dot in a key, \\\\ a backslash"},
      {std::string(257, 'a'), "has more than 256 bytes"},
      {"a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a", "has more than 16 keys"},
  };
  for (const auto& [text, wrong] : paths) {
    const auto path = parse_field_path(text);
    ASSERT_FALSE(path.ok()) << text;
    EXPECT_EQ(path.error().kind, ErrorKind::invalid);
    EXPECT_EQ(path.error().text, wrong) << text;
  }
}

TEST(FieldPath, AtItsBounds_IsRead) {
  EXPECT_TRUE(parse_field_path(std::string(kMaxFieldPath, 'a')).ok());
  EXPECT_EQ(parse_field_path("a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a")->keys.size(), kMaxFieldKeys);
}

}  // namespace
}  // namespace holdfast
