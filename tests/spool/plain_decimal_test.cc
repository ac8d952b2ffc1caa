// All spellings of one number have one text, and no two numbers share it.
#include "spool/plain_decimal.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/simulated_loss.h"

namespace holdfast {
namespace {

struct Spelling {
  const char* written;
  const char* plain;
};

const Spelling kSpellings[] = {
    {"0", "0"},
    {"-0", "0"},
    {"0.0", "0"},
    {"-0.000e5", "0"},
    {"0e999999999999999999999999", "0"},
    {"1", "1"},
    {"1.0", "1"},
    {"1e0", "1"},
    {"1E+0", "1"},
    {"10e-1", "1"},
    {"0.1e1", "1"},
    {"0.001e3", "1"},
    {"1e0000000000000000000000000", "1"},
    {"-1", "-1"},
    {"-10e-1", "-1"},
    {"1e3", "1000"},
    {"1.5e3", "1500"},
    {"1.2345e2", "123.45"},
    {"0.50", "0.5"},
    {"5e-1", "0.5"},
    {"50e-2", "0.5"},
    {"-0.05", "-0.05"},
    {"1e-3", "0.001"},
    {"100", "100"},
    {"100.0010", "100.001"},
    {"100.100", "100.1"},
    {"10.01e1", "100.1"},
    {"9007199254740993", "9007199254740993"},
    {"9007199254740993.0", "9007199254740993"},
    {"18446744073709551616", "18446744073709551616"},
    {"-9223372036854775809", "-9223372036854775809"},
    {"0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827"},
};

TEST(PlainDecimal, IsOneTextForAllSpellings) {
  for (const Spelling& one : kSpellings) EXPECT_EQ(plain_decimal(one.written), one.plain) << one.written;
}

TEST(PlainDecimal, OfAHundredCharacters_IsTheLongest) {
  const std::string nines(100, '9');
  EXPECT_EQ(plain_decimal(nines), nines);
  EXPECT_EQ(plain_decimal(nines + ".0"), nines);
  EXPECT_EQ(plain_decimal(nines + "9"), std::nullopt);
  EXPECT_EQ(plain_decimal("-" + nines), std::nullopt);
  EXPECT_EQ(plain_decimal("-" + nines.substr(1)), "-" + nines.substr(1));
  EXPECT_EQ(plain_decimal("1e99"), "1" + std::string(99, '0'));
  EXPECT_EQ(plain_decimal("1e100"), std::nullopt);
  EXPECT_EQ(plain_decimal("1e-98"), "0." + std::string(97, '0') + "1");
  EXPECT_EQ(plain_decimal("1e-99"), std::nullopt);
  EXPECT_EQ(plain_decimal("-1e-98"), std::nullopt);
  EXPECT_EQ(plain_decimal(nines.substr(2) + ".5"), nines.substr(2) + ".5");
  EXPECT_EQ(plain_decimal(nines.substr(1) + ".5"), std::nullopt);
}

TEST(PlainDecimal, IsNotMadeOfWhatNobodyCouldWriteOut) {
  for (const char* absurd : {"1e999", "-1e999", "1e-999", "1e2147483648", "1e99999999999999999999999999999999",
                             "1e-99999999999999999999999999999999", "0.1e9223372036854775807"})
    EXPECT_EQ(plain_decimal(absurd), std::nullopt) << absurd;
}

TEST(PlainDecimal, OfManyDigits_IsOneWhereTheyCancelOut) {
  EXPECT_EQ(plain_decimal("1" + std::string(5000, '0') + "e-5000"), "1");
  EXPECT_EQ(plain_decimal("0." + std::string(4999, '0') + "1e5000"), "1");
  EXPECT_EQ(plain_decimal("1." + std::string(5000, '0')), "1");
}

// A number is digits and an exponent: shifting the point and taking it back in the exponent changes nothing.
TEST(PlainDecimal, DoesNotDependOnWhereThePointWasWritten) {
  Dice dice(0x646563);
  for (int round = 0; round < 20'000; ++round) {
    const std::uint64_t digits = 1 + dice.below(1'000'000'000);
    const int exponent = static_cast<int>(dice.below(40)) - 20;
    const auto expected = plain_decimal(fmt::format("{}e{}", digits, exponent));
    const int zeros = static_cast<int>(dice.below(20));
    const std::string text = fmt::format("{}{:0>{}}", digits, "", zeros);
    const auto places = dice.below(text.size());
    std::string shifted = text.substr(0, text.size() - places);
    if (places > 0) shifted += "." + text.substr(text.size() - places);
    shifted += fmt::format("e{}", exponent - zeros + static_cast<int>(places));
    ASSERT_EQ(plain_decimal(shifted), expected) << "seed 0x646563, round " << round << ": " << shifted;
  }
}

}  // namespace
}  // namespace holdfast
