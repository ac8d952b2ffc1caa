// Six stories about payments, each against real databases with the tables that must come of it: what the delivery's own
// identity is for (the inbox), and what the effect's own identity is for (its unique key).
#include <gtest/gtest.h>

#include "tests/forwarder/sql_scene.h"

namespace holdfast {
namespace {

using enum OutcomeKind;

// Messages are known by their own ids, refunds by theirs.
DueRecord message(const std::string& id, const std::string& payload, std::uint64_t sequence = 1) {
  DueRecord record = made_record(sequence, payload, "payments.refund");
  record.key = "msg:" + id;
  return record;
}

std::string refund(const std::string& id, const std::string& account, const std::string& amount) {
  return R"({"refund":{"id":")" + id + R"("},"account":")" + account + R"(","amount":)" + amount + "}";
}

class SqlExamples : public SqlTest {
 protected:
  void SetUp() override {
    SqlTest::SetUp();
    if (IsSkipped()) return;
    auto amount = field_column("amount", true);
    amount.type = "decimal(12,2)";
    auto account = field_column("account", true);
    account.type = "varchar(40)";
    auto refunds = scene->table("refunds", SqlMode::inbox, {account, amount});
    refunds.subjects = {"payments.refund"};
    refunds.effect_key = field_key("refund.id");
    refunds.effect_column = "refund_id";
    auto level = field_column("level");
    level.type = "integer";
    auto states = scene->table("states", SqlMode::upsert, {level, column_of("version", ColumnSource::spool_sequence)});
    states.subjects = {"state.>"};
    states.effect_key = field_key("device");
    states.effect_column = "device";
    states.version_column = "version";
    scene->options.tables = {refunds, states};
    scene->create();
  }
  std::string refunds() const { return scene->query("SELECT refund_id, account, amount FROM @refunds ORDER BY 1"); }
  std::string inbox() const { return scene->query("SELECT message_id FROM @inbox ORDER BY 1"); }
};
HOLDFAST_BOTH_DATABASES(SqlExamples);

TEST_P(SqlExamples, Replay_TheSameMessageAgain_HasNoSecondEffect) {
  const auto target = scene->target();
  EXPECT_EQ(deliver(*target, {message("m1", refund("R1", "acme", "10.00"))}).kinds(), (Kinds{delivered}));
  for (int again = 0; again < 3; ++again)
    EXPECT_EQ(deliver(*target, {message("m1", refund("R1", "acme", "10.00"))}).kinds(), (Kinds{duplicate}));
  EXPECT_EQ(refunds(), "field:refund.id:string:R1|acme|10.00\n");
  EXPECT_EQ(inbox(), "msg:m1\n");
}

TEST_P(SqlExamples, Snapshots_RunAgainInAnyOrder_AndTheNewestStands) {
  const auto target = scene->target();
  const auto snapshot = [](std::uint64_t n, int level) {
    return made_record(n, R"({"device":"pump","level":)" + std::to_string(level) + "}", "state.pump");
  };
  EXPECT_EQ(deliver(*target, {snapshot(1, 30), snapshot(2, 20), snapshot(3, 10)}).count(delivered), 3u);
  EXPECT_EQ(deliver(*target, {snapshot(2, 20)}).count(delivered), 1u);
  EXPECT_EQ(deliver(*target, {snapshot(3, 10), snapshot(1, 30)}).count(delivered), 2u);
  EXPECT_EQ(scene->query("SELECT device, level, version FROM @states"), "field:device:string:pump|10|3\n");
}

TEST_P(SqlExamples, Rollback_LeavesTheClaimToBeMadeAgain) {
  const auto target = scene->target();
  scene->query("ALTER TABLE @refunds ADD CONSTRAINT @small CHECK (amount < 100)");
  EXPECT_EQ(deliver(*target, {message("m1", refund("R1", "acme", "500.00"))}).kinds(), (Kinds{rejected}));
  EXPECT_EQ(inbox(), "") << "a claim without its effect";
  scene->query("ALTER TABLE @refunds DROP CONSTRAINT @small");
  EXPECT_EQ(deliver(*target, {message("m1", refund("R1", "acme", "500.00"))}).kinds(), (Kinds{delivered}));
  EXPECT_EQ(refunds(), "field:refund.id:string:R1|acme|500.00\n");
  EXPECT_EQ(inbox(), "msg:m1\n");
}

TEST_P(SqlExamples, TwoMessagesAboutOneRefund_AreOneRefund) {
  const auto target = scene->target();
  EXPECT_EQ(deliver(*target, {message("from-shop", refund("R1", "acme", "10.00"))}).kinds(), (Kinds{delivered}));
  EXPECT_EQ(deliver(*target, {message("from-bank", refund("R1", "acme", "10.00"))}).kinds(), (Kinds{delivered}));
  EXPECT_EQ(deliver(*target, {message("from-shop-2", refund("R2", "acme", "7.00")),
                              message("from-bank-2", refund("R2", "acme", "7.00"))})
                .kinds(),
            (Kinds{delivered, delivered}));
  EXPECT_EQ(refunds(), "field:refund.id:string:R1|acme|10.00\nfield:refund.id:string:R2|acme|7.00\n");
  EXPECT_EQ(inbox(), "msg:from-bank\nmsg:from-bank-2\nmsg:from-shop\nmsg:from-shop-2\n");
}

TEST_P(SqlExamples, TheSameAmountToTheSameAccountTwice_IsTwoRefunds) {
  EXPECT_EQ(deliver(*scene->target(),
                    {message("m1", refund("R1", "acme", "10.00")), message("m2", refund("R2", "acme", "10.00"))})
                .kinds(),
            (Kinds{delivered, delivered}));
  EXPECT_EQ(refunds(), "field:refund.id:string:R1|acme|10.00\nfield:refund.id:string:R2|acme|10.00\n");
}

// Another box, with a site of its own and a spool of its own, has the same event.
TEST_P(SqlExamples, AnotherWorker_MakesNoSecondEffect) {
  EXPECT_EQ(deliver(*scene->target(), {message("m1", refund("R1", "acme", "10.00"), 17)}).kinds(), (Kinds{delivered}));
  scene->options.site = "truck-08";
  scene->options.server.client_name = "holdfast-another";
  EXPECT_EQ(deliver(*scene->target(), {message("m1", refund("R1", "acme", "10.00"), 4711)}).kinds(),
            (Kinds{duplicate}));
  EXPECT_EQ(refunds(), "field:refund.id:string:R1|acme|10.00\n");
}

}  // namespace
}  // namespace holdfast
