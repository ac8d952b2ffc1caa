#include "appliance/commands.h"

#include <gtest/gtest.h>

#include "appliance/report.h"
#include "tests/support/spool_world.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

class Commands : public ::testing::Test {
 protected:
  void SetUp() override {
    world_.two_targets = true;
    ASSERT_TRUE(world_.open()) << world_.last_error;
    router_.emplace(std::vector<RouteRule>{{{"telemetry.>"}, world_.route, kNormalPriority}});
  }

  Result<Json> ask(const std::string& command, const std::string& arguments = "{}") {
    const Premises premises{*world_.spool, *router_, [this] { return status(); },
                            [this](const std::string& target, TargetOrder order) -> Result<void> {
                              if (target != "hub") return Error{ErrorKind::not_found, "no such target"};
                              orders_.push_back(order);
                              return {};
                            }};
    const auto parsed = parse_json(arguments);
    EXPECT_TRUE(parsed) << arguments;
    return run_command(premises, command, parsed.value_or(Json()));
  }

  Json good(const std::string& command, const std::string& arguments = "{}") {
    const auto answer = ask(command, arguments);
    EXPECT_TRUE(answer.ok()) << command << ' ' << arguments << ": " << answer.error().text;
    return answer.ok() ? *answer : Json();
  }

  Error bad(const std::string& command, const std::string& arguments = "{}") {
    const auto answer = ask(command, arguments);
    EXPECT_FALSE(answer.ok()) << command << ' ' << arguments;
    return answer.ok() ? Error{ErrorKind::io, ""} : answer.error();
  }

  ApplianceStatus status() {
    ApplianceStatus status;
    status.running = true;
    status.spool = world_.spool->status();
    return status;
  }

  void refuse(std::uint64_t number, Reason reason) {
    Arrival arrival = world_.message(number);
    arrival.refused = reason;
    arrival.identity.key = refused_key("truck-07", arrival.envelope);
    ASSERT_TRUE(world_.spool->put_batch({&arrival, 1}).ok());
    ASSERT_TRUE(world_.maintain(3));
  }

  SpoolWorld world_;
  std::optional<Router> router_;
  std::vector<TargetOrder> orders_;
};

TEST_F(Commands, Rights_AreReadOrChange) {
  for (const char* name : {"status", "audit", "spool list", "quarantine list"})
    EXPECT_EQ(right_of(name), Right::read) << name;
  for (const char* name : {"spool show", "spool verify", "spool retarget", "spool discard", "quarantine show",
                           "quarantine requeue", "quarantine drop", "target hold", "target resume", "target kick"})
    EXPECT_EQ(right_of(name), Right::change) << name;
  EXPECT_FALSE(right_of("spool"));
  EXPECT_FALSE(right_of(""));
  EXPECT_EQ(bad("spool bogus").kind, ErrorKind::not_found);
}

TEST_F(Commands, ReadingIsForAll_ChangingForRootAndTheService) {
  EXPECT_TRUE(may(Right::read, 1000, 997));
  EXPECT_FALSE(may(Right::change, 1000, 997));
  EXPECT_TRUE(may(Right::change, 997, 997));
  EXPECT_TRUE(may(Right::change, 0, 997));
}

TEST_F(Commands, List_GoesPageByPage_AndOpensNothing) {
  ASSERT_TRUE(world_.put(1, 25));
  std::size_t seen = 0;
  std::uint64_t after = 0;
  do {
    const Json page = good("spool list", R"({"limit":10,"after":)" + std::to_string(after) + "}");
    for (const Json& record : page["records"].list()) {
      EXPECT_GT(record["sequence"].count(), after);
      EXPECT_EQ(record["id"].text().size(), 16u);
      EXPECT_EQ(record["waits_for"].list().size(), 2u);
      ++seen;
    }
    EXPECT_EQ(json_text(page).find(kMarker), std::string::npos);
    after = page["next"].count();
  } while (after != 0);
  EXPECT_EQ(seen, 25u);
  EXPECT_EQ(good("spool list", R"({"limit":100000})")["records"].list().size(), 25u);
}

TEST_F(Commands, Status_TellsNoSubject) {
  ASSERT_TRUE(world_.put(1, 5));
  const std::string text = json_text(good("status"));
  EXPECT_EQ(text.find(kMarker), std::string::npos);
  EXPECT_EQ(text.find("seq:"), std::string::npos);
}

TEST_F(Commands, Show_OpensOneRecord) {
  ASSERT_TRUE(world_.put(1, 3));
  const std::string id = good("spool list")["records"].list()[1]["id"].text();
  const Json record = good("spool show", R"({"id":")" + id + "\"}");
  EXPECT_EQ(record["key"].text(), world_.message(2).identity.key);
  EXPECT_EQ(record["subject"].text(), world_.message(2).envelope.subject);
  EXPECT_EQ(record["stream_sequence"].count(), 2u);
  EXPECT_EQ(record["headers"].list()[0]["value"].text(), "test");
  EXPECT_EQ(bad("spool show", R"({"id":"ffffffffffffffff"})").kind, ErrorKind::not_found);
  for (const char* odd : {"", "abc", "ABCD", "xyz0", "../../etc"})
    EXPECT_EQ(bad("spool show", std::string(R"({"id":")") + odd + "\"}").kind, ErrorKind::invalid) << odd;
}

TEST_F(Commands, Verify_GoesPieceByPiece) {
  ASSERT_TRUE(world_.put(1, 30));
  std::uint64_t after = 0;
  int pieces = 0;
  do {
    const Json piece = good("spool verify", R"({"limit":7,"after":)" + std::to_string(after) + "}");
    EXPECT_TRUE(piece["bad"].list().empty());
    EXPECT_TRUE(piece["next"].count() == 0 || piece["next"].count() > after);
    after = piece["next"].count();
    ASSERT_LT(++pieces, 100);
  } while (after != 0);
  EXPECT_GE(pieces, 5);
}

TEST_F(Commands, Audit_Balances) {
  ASSERT_TRUE(world_.put(1, 10));
  EXPECT_TRUE(good("audit")["balanced"].flag());
}

TEST_F(Commands, Discard_NeedsAFilterAndAReason) {
  ASSERT_TRUE(world_.put(1, 10));
  EXPECT_EQ(bad("spool discard", R"({"filter":["all"]})").kind, ErrorKind::invalid);
  EXPECT_EQ(bad("spool discard", R"({"reason":"x"})").kind, ErrorKind::invalid);
  EXPECT_EQ(bad("spool discard", R"({"reason":"x","filter":["all","id=abcd"]})").kind, ErrorKind::invalid);
  EXPECT_EQ(good("spool discard", R"({"reason":"x","filter":["all"],"dry_run":true})")["changed"].count(), 10u);
  EXPECT_EQ(world_.spool->status().in_custody, 10u);
}

TEST_F(Commands, Discard_TakesWhatTheFilterNames_AndCountsIt) {
  ASSERT_TRUE(world_.put(1, 14));
  const std::string sequence = std::to_string(good("spool list")["records"].list()[0]["sequence"].count());
  EXPECT_EQ(good("spool discard", R"({"reason":"x","filter":["sequence=)" + sequence + "\"]}")["changed"].count(), 1u);
  EXPECT_EQ(good("spool discard", R"({"reason":"x","filter":["subject=telemetry.*.3"]})")["changed"].count(), 2u);
  EXPECT_EQ(good("spool discard", R"({"reason":"x","filter":["all"]})")["changed"].count(), 11u);
  ASSERT_TRUE(world_.maintain(3));
  const Json audit = good("audit");
  EXPECT_TRUE(audit["balanced"].flag()) << json_text(audit);
  EXPECT_EQ(audit["discarded"].count(), 14u);
}

TEST_F(Commands, Filters_ThatSayNothing_AreRefused) {
  for (const char* words : {R"([])", R"(["id=xyz"])", R"(["sequence=1x"])", R"(["sequence="])", R"(["subject=a..b"])",
                            R"(["colour=red"])", R"(["hub"])", R"([""])", R"([7])", R"("all")"})
    EXPECT_EQ(bad("spool discard", std::string(R"({"reason":"x","filter":)") + words + "}").kind, ErrorKind::invalid)
        << words;
  EXPECT_EQ(bad("spool discard", R"({"reason":"x","filter":["target=nobody"]})").kind, ErrorKind::not_found);
}

TEST_F(Commands, Retarget_MovesWhatWaitsForANameThatIsGone) {
  ASSERT_TRUE(world_.put(1, 10));
  world_.spool->set_active_targets({world_.hub});
  EXPECT_EQ(bad("spool retarget", R"({"from":"nobody","to":"hub"})").kind, ErrorKind::not_found);
  EXPECT_EQ(bad("spool retarget", R"({"from":"hub","to":"nobody"})").kind, ErrorKind::not_found);
  EXPECT_EQ(bad("spool retarget", R"({"from":"hub","to":"shore"})").kind, ErrorKind::invalid);
  EXPECT_EQ(bad("spool retarget", R"({"from":"hub","to":"hub"})").kind, ErrorKind::invalid);
  EXPECT_EQ(good("spool retarget", R"({"from":"shore","to":"hub"})")["changed"].count(), 10u);
  EXPECT_EQ(world_.spool->status().targets.size(), 2u) << "a command made a target";
}

TEST_F(Commands, Quarantine_IsListedShownRequeuedAndDropped) {
  refuse(1, Reason::no_route);
  refuse(2, Reason::no_identity);
  const Json list = good("quarantine list");
  ASSERT_EQ(list["records"].list().size(), 2u);
  EXPECT_EQ(list["records"].list()[0]["reason"].text(), "no_route");
  const std::string id = list["records"].list()[0]["id"].text();
  EXPECT_EQ(good("quarantine show", R"({"id":")" + id + "\"}")["subject"].text(), world_.message(1).envelope.subject);
  EXPECT_EQ(good("quarantine requeue", R"({"filter":["id=)" + id + "\"]}")["changed"].count(), 1u);
  EXPECT_EQ(good("quarantine drop", R"({"filter":["all"]})")["changed"].count(), 1u);
  ASSERT_TRUE(world_.maintain(3));
  EXPECT_TRUE(good("quarantine list")["records"].list().empty());
  EXPECT_EQ(good("spool list")["records"].list().size(), 1u);
  EXPECT_TRUE(good("audit")["balanced"].flag());
}

TEST_F(Commands, WhatNoRouteTakes_StaysInQuarantine) {
  refuse(1, Reason::no_route);
  router_.emplace(std::vector<RouteRule>{{{"elsewhere"}, world_.route, kNormalPriority}});
  EXPECT_EQ(good("quarantine requeue", R"({"filter":["all"]})")["changed"].count(), 0u);
  EXPECT_EQ(good("quarantine list")["records"].list().size(), 1u);
}

TEST_F(Commands, Orders_GoToTheTarget) {
  good("target hold", R"({"target":"hub"})");
  good("target resume", R"({"target":"hub"})");
  good("target kick", R"({"target":"hub"})");
  EXPECT_EQ(orders_, (std::vector<TargetOrder>{TargetOrder::hold, TargetOrder::resume, TargetOrder::kick}));
  EXPECT_EQ(bad("target hold", R"({"target":"nobody"})").kind, ErrorKind::not_found);
  EXPECT_EQ(bad("target hold").kind, ErrorKind::not_found);
}

}  // namespace
}  // namespace holdfast
