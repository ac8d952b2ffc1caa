// Priorities: the words that producers and routes use, and the ranks that frame headers hold.
#include "spool/priority.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace holdfast {
namespace {

TEST(Priority, EveryWord_HasItsRank) {
  const std::vector<std::pair<std::string_view, Priority>> words{
      {"flash", 0},   {"immediate", 1}, {"urgent", 2}, {"high", 3}, {"normal", 5},
      {"routine", 5}, {"medium", 5},    {"none", 6},   {"low", 7},  {"deferred", 9},
  };
  for (const auto& [word, rank] : words) EXPECT_EQ(priority_from_text(word), rank) << word;
}

TEST(Priority, Case_DoesNotMatter) {
  EXPECT_EQ(priority_from_text("FLASH"), Priority{0});
  EXPECT_EQ(priority_from_text("Immediate"), Priority{1});
}

TEST(Priority, OtherWords_HaveNone) {
  for (const std::string_view word : {"", "flas", "flashy", " flash", "flash ", "0", "unknown", "benchmark"}) {
    EXPECT_EQ(priority_from_text(word), std::nullopt) << word;
  }
}

TEST(Priority, EveryRank_HasATextOfItsOwn) {
  std::set<std::string> texts;
  for (Priority rank = 0; rank < kPriorities; ++rank)
    EXPECT_TRUE(texts.insert(std::string(priority_text(rank))).second);
}

TEST(Priority, TextOfARankThatAWordNames_LeadsBackToIt) {
  for (const Priority rank : {0, 1, 2, 3, 5, 6, 7, 9}) EXPECT_EQ(priority_from_text(priority_text(rank)), rank);
}

TEST(Priority, TheNamedConstants_AreTheRanksOfTheirWords) {
  EXPECT_EQ(priority_text(kNormalPriority), "normal");
  EXPECT_EQ(priority_text(kUnknownPriority), "none");
}

TEST(PriorityDeathTest, ARankAboveTheLast_IsABug) {
  EXPECT_DEATH(priority_text(kPriorities), "must be true");
}

}  // namespace
}  // namespace holdfast
