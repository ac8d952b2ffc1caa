// Subjects and patterns mean here what they mean to the server.
#include "spool/subject.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace holdfast {
namespace {

using std::string_view_literals::operator""sv;

TEST(Subject, WhatTheServerTakes_IsValid) {
  for (const auto subject : {"a", "a.b.c", "telemetry.truck-07.temp", "$JS.API.INFO", "a*b", "a.b>c", "a>",
                             "caf\xc3\xa9.x", "a_b.c-d", "1.2.3"}) {
    EXPECT_TRUE(valid_subject(subject)) << subject;
  }
}

TEST(Subject, EmptyTokensWildcardsAndWhiteSpace_AreNot) {
  for (const auto subject : {""sv, "."sv, ".a"sv, "a."sv, "a..b"sv, "*"sv, ">"sv, "a.*"sv, "a.>"sv, "*.a"sv, "a b"sv,
                             "a\tb"sv, "a\r\nb"sv, "a.\0"sv, "a\x7f"sv, " a"sv, "a "sv, "\x1f"sv}) {
    EXPECT_FALSE(valid_subject(subject)) << subject;
  }
}

TEST(Pattern, WildcardsThatStandAlone_AreValid) {
  for (const auto pattern : {"a", "a.b", "*", ">", "*.*", "a.*", "a.>", "*.>", "a.*.c", "*.b.>", "$SYS.>"}) {
    EXPECT_TRUE(valid_pattern(pattern)) << pattern;
  }
}

TEST(Pattern, TailsThatAreNotLastAndHalfWildcards_AreNot) {
  for (const auto pattern : {""sv, "."sv, ">.a"sv, "a.>.b"sv, ">.>"sv, "temp*"sv, "*temp"sv, "a.b>"sv, ">a"sv, "a..>"sv,
                             "a.* "sv, "a.\0"sv, "a."sv, "**"sv}) {
    EXPECT_FALSE(valid_pattern(pattern)) << pattern;
  }
}

TEST(Pattern, Matches_TokenByToken) {
  EXPECT_TRUE(subject_matches("a.b", "a.b"));
  EXPECT_TRUE(subject_matches("a.*", "a.b"));
  EXPECT_TRUE(subject_matches("*.b", "a.b"));
  EXPECT_TRUE(subject_matches("a.>", "a.b"));
  EXPECT_TRUE(subject_matches("a.>", "a.b.c.d"));
  EXPECT_TRUE(subject_matches(">", "a"));
  EXPECT_TRUE(subject_matches("*.>", "a.b"));

  EXPECT_FALSE(subject_matches("a.>", "a"));  // a tail is one token or more
  EXPECT_FALSE(subject_matches("*.>", "a"));
  EXPECT_FALSE(subject_matches("a.*", "a"));
  EXPECT_FALSE(subject_matches("a.*", "a.b.c"));
  EXPECT_FALSE(subject_matches("a", "a.b"));
  EXPECT_FALSE(subject_matches("a.b", "a"));
  EXPECT_FALSE(subject_matches("a.b", "a.bc"));
  EXPECT_FALSE(subject_matches("a.b", "A.B"));  // subjects have case
  EXPECT_FALSE(subject_matches("a.b", "a*b"));
  EXPECT_FALSE(subject_matches(">.a", "b.c"));  // no pattern: what is not valid matches no more than it says
}

// All sequences of 1 to `length` tokens.
std::vector<std::string> all_of(const std::vector<std::string>& tokens, std::size_t length) {
  std::vector<std::string> all = tokens;
  std::vector<std::string> longest = tokens;
  for (std::size_t n = 1; n < length; ++n) {
    std::vector<std::string> longer;
    for (const auto& head : longest) {
      for (const auto& token : tokens) longer.push_back(head + "." + token);
    }
    all.insert(all.end(), longer.begin(), longer.end());
    longest = std::move(longer);
  }
  return all;
}

// Every pair of patterns of up to three tokens, against every subject that could tell them apart.
TEST(Pattern, Overlap_IsWhatSomeSubjectShows) {
  const auto subjects = all_of({"a", "b", "c"}, 4);
  std::vector<std::string> patterns;
  for (const auto& pattern : all_of({"a", "b", "*", ">"}, 3)) {
    if (valid_pattern(pattern)) patterns.push_back(pattern);
  }
  for (const auto& left : patterns) {
    for (const auto& right : patterns) {
      bool shown = false;
      for (const auto& subject : subjects) shown |= subject_matches(left, subject) && subject_matches(right, subject);
      ASSERT_EQ(patterns_overlap(left, right), shown) << left << " and " << right;
    }
  }
}

}  // namespace
}  // namespace holdfast
