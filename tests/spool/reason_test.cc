// Reasons are on disk by number and in --json by name: neither may change, neither may be missing.
#include "spool/reason.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace holdfast {
namespace {

// All numbers that a text is known for.
std::vector<Reason> every_reason() {
  std::vector<Reason> known;
  for (std::uint32_t number = 0; number <= 0xffff; ++number) {
    const auto reason = static_cast<Reason>(number);
    if (reason_text(reason) != "unknown") known.push_back(reason);
  }
  return known;
}

TEST(Reason, EveryOne_HasATextOfItsOwn_ThatLeadsBackToIt) {
  std::set<std::string> texts;
  for (const Reason reason : every_reason()) {
    const auto text = reason_text(reason);
    EXPECT_TRUE(texts.insert(std::string(text)).second) << text << " twice";
    EXPECT_EQ(reason_from_text(text), reason) << text;
  }
  EXPECT_EQ(texts.size(), 27U);
}

TEST(Reason, Texts_AreSnakeCase) {
  for (const Reason reason : every_reason()) {
    EXPECT_EQ(reason_text(reason).find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string_view::npos)
        << reason_text(reason);
  }
}

TEST(Reason, Numbers_StayWhatTheyWere) {
  const std::vector<std::pair<std::uint16_t, std::string_view>> on_disk{
      {0, "none"},
      {1, "no_identity"},
      {2, "no_route"},
      {3, "too_large"},
      {4, "undecodable_headers"},
      {5, "payload_omitted"},
      {6, "not_json"},
      {7, "field_missing"},
      {8, "field_null"},
      {9, "field_object"},
      {10, "field_array"},
      {11, "field_empty"},
      {12, "identity_too_long"},
      {13, "field_absurd_number"},
      {14, "field_repeated"},
      {20, "conflict"},
      {21, "duplicate_record"},
      {22, "damaged"},
      {23, "unopenable"},
      {24, "undecodable"},
      {40, "rejected"},
      {41, "oversize"},
      {42, "unencodable"},
      {43, "exists_otherwise"},
      {60, "discarded"},
      {61, "expired"},
  };
  for (const auto& [number, text] : on_disk) EXPECT_EQ(reason_text(static_cast<Reason>(number)), text);
}

TEST(Reason, ForeignTexts_AreNone) {
  for (const std::string_view text : {"", "unknown", "None", "conflict ", " conflict", "conflic", "conflicts"}) {
    EXPECT_EQ(reason_from_text(text), std::nullopt) << text;
  }
}

TEST(Reason, ANumberFromANewerRelease_ShowsAsUnknown) {
  EXPECT_EQ(reason_text(static_cast<Reason>(999)), "unknown");
}

}  // namespace
}  // namespace holdfast
