// When the intake must pause, and when it may go on.
#include "spool/pressure_gauge.h"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

constexpr Nanoseconds kStart = std::chrono::hours(1);

class PressureGaugeTest : public testing::Test {
 protected:
  PressureGaugeTest() {
    space_.free_bytes = 100'000'000;
    space_.free_inodes = 1000;
    space_.total_inodes = 10'000;
  }

  PressureKind read(std::uint64_t bytes, std::uint64_t records = 0, Nanoseconds now = kStart) {
    gauge_.read(space_, {bytes, records, false}, now);
    return gauge_.pressure().kind;
  }

  SpaceInfo space_;
  PressureGauge gauge_{{.max_bytes = 1000, .max_records = 100, .min_free_bytes = 10'000}};
};

TEST_F(PressureGaugeTest, ALimitThatIsReached_IsReleasedOnlyWhenALittleIsFree) {
  EXPECT_EQ(read(999), PressureKind::none);
  EXPECT_EQ(read(1000), PressureKind::max_bytes);
  EXPECT_EQ(read(960), PressureKind::max_bytes) << "it would flutter";
  EXPECT_EQ(read(949), PressureKind::none);
  EXPECT_EQ(read(960), PressureKind::none);
  EXPECT_EQ(read(0, 100), PressureKind::max_records);
}

TEST_F(PressureGaugeTest, ADiskThatIsNearlyFull_Pauses) {
  space_.free_bytes = 9'999;
  EXPECT_EQ(read(0), PressureKind::disk_bytes);
  space_.free_bytes = 100'000'000;
  space_.free_inodes = 99;
  EXPECT_EQ(read(0), PressureKind::disk_inodes);
  space_.total_inodes = 0;
  EXPECT_EQ(read(0), PressureKind::none) << "made as they are needed";
  gauge_.read(space_, {0, 0, true}, kStart);
  EXPECT_EQ(gauge_.pressure().kind, PressureKind::disk_bytes) << "the reserve is spent";
}

TEST_F(PressureGaugeTest, ACommitThatFoundNoRoom_TriesAgainWhenThereIsSome_OrAfterAWhile) {
  EXPECT_EQ(read(0), PressureKind::none);
  gauge_.note_no_room(kStart);
  EXPECT_EQ(read(0), PressureKind::disk_full);
  space_.free_bytes += 1u << 20;
  EXPECT_EQ(read(0), PressureKind::none);
  gauge_.note_no_room(kStart);
  EXPECT_EQ(read(0, 0, kStart + std::chrono::milliseconds(999)), PressureKind::disk_full);
  EXPECT_EQ(read(0, 0, kStart + std::chrono::seconds(1)), PressureKind::none);
}

TEST_F(PressureGaugeTest, AFullQuarantine_IsShown_AndPausesNobodyElse) {
  EXPECT_EQ(read(0), PressureKind::none);
  gauge_.note_full_quarantine(kStart);
  EXPECT_FALSE(gauge_.pressure().paused());
  EXPECT_EQ(gauge_.shown(kStart).kind, PressureKind::quarantine);
  EXPECT_EQ(gauge_.shown(kStart + std::chrono::seconds(2)).kind, PressureKind::none);
}

}  // namespace
}  // namespace holdfast
