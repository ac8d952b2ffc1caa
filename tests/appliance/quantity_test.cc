#include "appliance/quantity.h"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

using namespace std::chrono_literals;

TEST(Quantity, Bytes_AreANumberAndItsUnit) {
  EXPECT_EQ(parse_bytes("0B"), 0u);
  EXPECT_EQ(parse_bytes("512B"), 512u);
  EXPECT_EQ(parse_bytes("64KiB"), 65536u);
  EXPECT_EQ(parse_bytes("256MiB"), 256ull << 20);
  EXPECT_EQ(parse_bytes("10GiB"), 10ull << 30);
  EXPECT_EQ(parse_bytes("2TiB"), 2ull << 40);
}

TEST(Quantity, Bytes_NothingElseIsTaken) {
  for (const char* text : {"", "10", "GiB", "10 GiB", " 10GiB", "10GiB ", "-1GiB", "+1GiB", "1.5GiB", "10GB", "10gib",
                           "10G", "0x10B", "99999999999999999999B", "9223372036854775807KiB", "8388608TiB"})
    EXPECT_FALSE(parse_bytes(text)) << text;
}

TEST(Quantity, Duration_IsANumberAndItsUnit) {
  EXPECT_EQ(parse_duration("0s"), 0ns);
  EXPECT_EQ(parse_duration("500ms"), 500ms);
  EXPECT_EQ(parse_duration("1s"), 1s);
  EXPECT_EQ(parse_duration("90m"), 90min);
  EXPECT_EQ(parse_duration("2h"), 2h);
  EXPECT_EQ(parse_duration("7d"), 168h);
}

TEST(Quantity, Duration_NothingElseIsTaken) {
  for (const char* text : {"", "5", "s", "1 s", "1h30m", "-1s", "1.5s", "1w", "1S", "9223372036854775807s", "106752d"})
    EXPECT_FALSE(parse_duration(text)) << text;
}

TEST(Quantity, Percent_IsAShareOfAHundred) {
  EXPECT_EQ(parse_percent("0%"), 0.0);
  EXPECT_EQ(parse_percent("1%"), 1.0);
  EXPECT_DOUBLE_EQ(*parse_percent("0.5%"), 0.5);
  EXPECT_DOUBLE_EQ(*parse_percent("12.125%"), 12.125);
  EXPECT_EQ(parse_percent("100%"), 100.0);
  for (const char* text : {"", "%", "1", "101%", "100.001%", "-1%", ".5%", "1.%", "1.0000%", "nan%", "1e1%", "1 %"})
    EXPECT_FALSE(parse_percent(text)) << text;
}

TEST(Quantity, Texts_AreWhatOneWouldSay) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1024), "1.0 KiB");
  EXPECT_EQ(bytes_text(3435973837), "3.2 GiB");
  EXPECT_EQ(bytes_text(256ull << 20), "256 MiB");
  EXPECT_EQ(count_text(0), "0");
  EXPECT_EQ(count_text(999), "999");
  EXPECT_EQ(count_text(1000), "1,000");
  EXPECT_EQ(count_text(1234567), "1,234,567");
  EXPECT_EQ(count_text(18446744073709551615u), "18,446,744,073,709,551,615");
  EXPECT_EQ(duration_text(-5s), "0 s");
  EXPECT_EQ(duration_text(59s), "59 s");
  EXPECT_EQ(duration_text(303s), "5 min 3 s");
  EXPECT_EQ(duration_text(130min), "2 h 10 min");
  EXPECT_EQ(duration_text(148h), "6 d 4 h");
  EXPECT_EQ(wall_text(0), "1970-01-01 00:00:00Z");
  EXPECT_EQ(wall_text(1'700'000'000'999'999'999), "2023-11-14 22:13:20Z");
}

}  // namespace
}  // namespace holdfast
