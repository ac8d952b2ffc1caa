// The box before a database: the tables that it prints are those that it needs, what is missing is said and waited for,
// and whatever is killed, each message has its effect once.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "tests/integration/scene.h"
#include "tests/support/database_server.h"

namespace holdfast {
namespace {

class BoxAndDatabase : public ::testing::TestWithParam<SqlDialect> {
 protected:
  void SetUp() override {
    if (const std::string why = DatabaseServer::why_none(GetParam()); !why.empty()) GTEST_SKIP() << why;
    server = std::make_unique<DatabaseServer>(DatabaseServerOptions{.dialect = GetParam(), .syncs = true});
    JetStreamClient(edge.url()).make_stream(kEdgeStream, {"telemetry.>"});
    box = std::make_unique<Appliance>(HOLDFAST_BINARY,
                                      ApplianceSetup{nats_source(edge.url(), kEdgeStream) + target(), ""});
  }

  std::string target() const {
    const bool postgres = GetParam() == SqlDialect::postgres;
    return fmt::format(
        "[[target]]\nname = \"ledger\"\ntype = \"{}\"\nhost = \"127.0.0.1\"\nport = {}\ndatabase = \"{}\"\nuser = "
        "\"{}\"\npassword_file = \"{}\"\n[[target.table]]\ntable = \"effects\"\ncolumns = {{ body = \"payload\", "
        "number = "
        "\"stream_sequence\" }}\n",
        postgres ? "postgres" : "mysql", server->port(), DatabaseServer::kDatabase, DatabaseServer::kUser,
        server->password_file());
  }
  void publish(std::uint64_t first, std::uint64_t count) {
    JetStreamClient(edge.url()).publish_many(kSubject, first, count, 256);
  }
  void make_tables() {
    const ProgramAnswer schema = box->command({"target", "schema", "ledger"});
    ASSERT_EQ(schema.code, 0) << schema.err;
    server->query(schema.out);
  }
  void expect_each_once(std::uint64_t count) {
    ASSERT_TRUE(delivered(*box, count)) << pretty_json_text(box->status());
    EXPECT_EQ(server->query("SELECT count(*), count(DISTINCT number) FROM effects"), fmt::format("{0}|{0}\n", count));
    EXPECT_TRUE(box->audit()["balanced"].flag());
  }

  NatsServer edge;
  std::unique_ptr<DatabaseServer> server;
  std::unique_ptr<Appliance> box;
};
INSTANTIATE_TEST_SUITE_P(Databases, BoxAndDatabase, ::testing::Values(SqlDialect::postgres, SqlDialect::mysql),
                         [](const auto& chosen) {
                           return chosen.param == SqlDialect::postgres ? "Postgres" : "Mariadb";
                         });

TEST_P(BoxAndDatabase, WithoutItsTables_SaysSo_AndGoesOnWhenTheyAreMade) {
  publish(1, 50);
  box->start();
  ASSERT_TRUE(taken(*box, 50));
  EXPECT_TRUE(
      eventually([&] { return pretty_json_text(box->status()).find("no_table") != std::string::npos; }, kPatience))
      << pretty_json_text(box->status());
  EXPECT_EQ(box->status()["accounting"]["delivered"].count(), 0u);
  make_tables();
  EXPECT_EQ(box->command({"target", "kick", "ledger"}).code, 0);
  expect_each_once(50);
}

TEST_P(BoxAndDatabase, BoxAndServerKilledInTheMiddle_EachHasItsEffectOnce) {
  make_tables();
  publish(1, 3000);
  box->start();
  for (int kills = 1; kills <= 3; ++kills) {
    const auto some = static_cast<std::uint64_t>(kills) * 200;
    ASSERT_TRUE(eventually([&] { return box->status()["accounting"]["delivered"].count() >= some; }, kPatience));
    if (kills % 2 == 0) {
      server->kill();
      server->start();
    } else {
      box->kill9();
      box->start();
    }
  }
  expect_each_once(3000);
}

TEST_P(BoxAndDatabase, APasswordThatIsWrong_IsSaid) {
  make_tables();
  server->query(GetParam() == SqlDialect::postgres ? "ALTER ROLE box PASSWORD 'another'"
                                                   : "ALTER USER 'box'@'%' IDENTIFIED BY 'another'");
  publish(1, 5);
  box->start();
  EXPECT_TRUE(eventually(
      [&] { return pretty_json_text(box->status()).find("credentials_refused") != std::string::npos; }, kPatience));
  EXPECT_EQ(box->log().find("stay afloat"), std::string::npos);
}

}  // namespace
}  // namespace holdfast
