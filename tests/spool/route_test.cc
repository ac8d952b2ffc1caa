// The bits over a route: who waits, who must have it, who may go without.
#include "spool/route.h"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

constexpr TargetNumber kHub{7}, kArchive{3}, kStranger{9};

const Route kHubThenArchive = {{kHub, true}, {kArchive, false}};

TEST(Route, EveryTarget_HasItsBit_AndStrangersNone) {
  EXPECT_EQ(bit_of(kHubThenArchive, kHub), 1u);
  EXPECT_EQ(bit_of(kHubThenArchive, kArchive), 2u);
  EXPECT_EQ(bit_of(kHubThenArchive, kStranger), 0u);
  EXPECT_EQ(all_bits(kHubThenArchive), 3u);
  EXPECT_EQ(required_bits(kHubThenArchive), 1u);
  EXPECT_EQ(targets_of(kHubThenArchive, 2), std::vector{kArchive});
  EXPECT_EQ(all_targets(kHubThenArchive), (std::vector{kHub, kArchive}));
}

TEST(Route, OfAsManyTargetsAsThereMayBe_UsesEveryBit) {
  const Route longest(kMaxRouteTargets, RouteTarget{kHub, true});
  EXPECT_EQ(all_bits(longest), ~TargetBits{0});
  EXPECT_EQ(all_bits(Route(longest.begin(), longest.end() - 1)), ~TargetBits{0} >> 1);
}

TEST(Route, ARecord_IsComplete_WithItsRequiredTargets_AndNeverWithoutAny) {
  EXPECT_FALSE(has_every_required(kHubThenArchive, 3));
  EXPECT_FALSE(has_every_required(kHubThenArchive, 1));
  EXPECT_TRUE(has_every_required(kHubThenArchive, 2));
  EXPECT_TRUE(has_every_required(kHubThenArchive, 0));
  EXPECT_FALSE(has_every_required({{kArchive, false}}, 0));
  EXPECT_FALSE(has_every_required({}, 0));
}

TEST(Route, OnlyItsOptionalTargets_AreNotWaitedFor) {
  EXPECT_TRUE(is_optional(kHubThenArchive, kArchive));
  EXPECT_FALSE(is_optional(kHubThenArchive, kHub));
  EXPECT_FALSE(is_optional(kHubThenArchive, kStranger));
}

TEST(Route, ANumberThatTheTableDoesNotHave_HasNoTargets) {
  Manifest manifest;
  manifest.routes = {kHubThenArchive};
  EXPECT_EQ(route_of(manifest, RouteNumber{1}), kHubThenArchive);
  EXPECT_TRUE(route_of(manifest, RouteNumber{0}).empty());
  EXPECT_TRUE(route_of(manifest, RouteNumber{2}).empty());
}

}  // namespace
}  // namespace holdfast
