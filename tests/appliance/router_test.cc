#include "appliance/router.h"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

Envelope message(std::string subject, std::vector<Header> headers = {}) {
  Envelope envelope;
  envelope.subject = std::move(subject);
  envelope.headers = std::move(headers);
  return envelope;
}

const Router kRouter({
    {{"alarm.>", "fire"}, RouteNumber{1}, 0},
    {{"telemetry.*.engine"}, RouteNumber{2}, 3},
    {{"telemetry.>"}, RouteNumber{3}, kNormalPriority},
});

Routed way_of(const Envelope& envelope) {
  const auto routed = kRouter.route(envelope);
  EXPECT_TRUE(std::holds_alternative<Routed>(routed));
  return std::holds_alternative<Routed>(routed) ? std::get<Routed>(routed) : Routed{};
}

TEST(Router, FirstMatch_Decides) {
  EXPECT_EQ(way_of(message("alarm.a.b")), (Routed{RouteNumber{1}, 0}));
  EXPECT_EQ(way_of(message("fire")), (Routed{RouteNumber{1}, 0}));
  EXPECT_EQ(way_of(message("telemetry.left.engine")), (Routed{RouteNumber{2}, 3}));
  EXPECT_EQ(way_of(message("telemetry.left.door")), (Routed{RouteNumber{3}, kNormalPriority}));
}

TEST(Router, NoMatch_IsAReason) {
  for (const char* subject : {"alarm", "telemetry", "log.x", ""}) {
    const auto routed = kRouter.route(message(subject));
    ASSERT_TRUE(std::holds_alternative<Reason>(routed)) << subject;
    EXPECT_EQ(std::get<Reason>(routed), Reason::no_route);
  }
}

TEST(Router, AKnownPriorityHeader_OverridesTheRoute) {
  EXPECT_EQ(way_of(message("telemetry.x", {{"Holdfast-Priority", "flash"}})).priority, 0);
  EXPECT_EQ(way_of(message("telemetry.x", {{"Nats-Sinks-Priority", "deferred"}})).priority, 9);
  EXPECT_EQ(way_of(message("telemetry.x", {{"holdfast-PRIORITY", "urgent"}})).priority, 2);
  EXPECT_EQ(way_of(message("alarm.x", {{"Holdfast-Priority", "low"}})).priority, 7);
}

TEST(Router, AnUnknownWord_IsUnknownPriority) {
  EXPECT_EQ(way_of(message("alarm.x", {{"Holdfast-Priority", "asap"}})).priority, kUnknownPriority);
  EXPECT_EQ(way_of(message("alarm.x", {{"Nats-Sinks-Priority", ""}})).priority, kUnknownPriority);
}

TEST(Router, OurOwnHeader_ComesFirst) {
  EXPECT_EQ(way_of(message("telemetry.x", {{"Nats-Sinks-Priority", "low"}, {"Holdfast-Priority", "high"}})).priority,
            3);
}

TEST(Router, AnIdentityOfTheRoute_IsThatOfTheRuleThatTook) {
  const Router router({
      {{"orders.>"}, RouteNumber{1}, kNormalPriority, IdentityRule{Strategy::payload_hash}},
      {{"orders.>", "log"}, RouteNumber{2}, kNormalPriority, std::nullopt},
  });
  const auto own = router.route(message("orders.new"));
  ASSERT_NE(std::get<Routed>(own).identity, nullptr);
  EXPECT_EQ(*std::get<Routed>(own).identity, IdentityRule{Strategy::payload_hash});
  EXPECT_EQ(std::get<Routed>(router.route(message("log"))).identity, nullptr);
}

TEST(Router, NoRules_MeanNoRoute) {
  EXPECT_TRUE(std::holds_alternative<Reason>(Router({}).route(message("a"))));
}

}  // namespace
}  // namespace holdfast
