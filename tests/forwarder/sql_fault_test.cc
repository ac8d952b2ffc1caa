// What a database and its network do to a delivery: each time nothing is lost, nothing is there twice, no record is
// blamed for what was not its fault, and no call outlasts its bound.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "forwarder/code.h"
#include "tests/forwarder/sql_scene.h"
#include "tests/support/certificates.h"
#include "tests/support/odd_peer.h"
#include "tests/support/patience.h"

namespace holdfast {
namespace {

using enum OutcomeKind;
using namespace std::chrono_literals;

std::vector<DueRecord> numbered(std::uint64_t count) {
  std::vector<DueRecord> made;
  for (std::uint64_t n = 1; n <= count; ++n) made.push_back(made_record(n, "{\"n\":" + std::to_string(n) + "}"));
  return made;
}

// Whatever was said of them: an error, or an outcome that blames nobody.
void expect_nobody_blamed(const Delivered& all) {
  for (const auto& outcome : all.outcomes) {
    if (outcome) {
      EXPECT_NE(outcome->kind, rejected) << outcome->words;
    }
  }
}

class SqlFaults : public SqlTest {
 protected:
  void SetUp() override {
    SqlTest::SetUp();
    if (IsSkipped()) return;
    auto number = field_column("n");
    number.type = "integer";
    scene->options.tables = {scene->table("effects", SqlMode::inbox, {number})};
    scene->create();
  }
  // Until all of them are there, by tries as the forwarder makes them.
  void expect_all_there(Target& target, std::uint64_t count) {
    std::vector<bool> done(count);
    const auto records = numbered(count);
    EXPECT_TRUE(eventually(
        [&] {
          const Delivered again = deliver(target, records);
          expect_nobody_blamed(again);
          for (std::size_t i = 0; i < count; ++i) done[i] = done[i] || is_accepted(again.outcomes[i]);
          return std::count(done.begin(), done.end(), true) == static_cast<std::ptrdiff_t>(count);
        },
        60s));
    const std::string n = std::to_string(count);
    EXPECT_EQ(scene->query("SELECT count(*), count(DISTINCT n) FROM @effects"), n + "|" + n + "\n");
    EXPECT_EQ(scene->query("SELECT count(*) FROM @inbox"), n + "\n");
  }
};
HOLDFAST_BOTH_DATABASES(SqlFaults);

TEST_P(SqlFaults, ACommitWhoseAnswerIsLost_IsNothingKnown_AndThenOneRowEach) {
  const auto target = scene->target();
  ASSERT_EQ(deliver(*target, {made_record(1, "{\"n\":1}")}).count(delivered), 1u);
  scene->relay().hold_answer_to("COMMIT");
  Delivered lost;
  std::thread delivering([&] { lost = deliver(*target, numbered(40)); });
  ASSERT_TRUE(eventually([&] { return scene->relay().holding(); }));
  EXPECT_EQ(scene->query("SELECT count(*) FROM @effects"), "40\n") << "it was committed";
  scene->relay().cut();
  delivering.join();
  ASSERT_FALSE(lost.result.ok());
  EXPECT_EQ(lost.result.error().kind, ErrorKind::unavailable);
  EXPECT_TRUE(lost.kinds().empty()) << "nothing is known of any";
  const Delivered again = deliver(*target, numbered(40));
  EXPECT_EQ(again.count(duplicate), 40u);
  EXPECT_EQ(scene->query("SELECT count(*) FROM @effects"), "40\n");
}

// Held back while its claim is not committed: the server rolls back what the lost connection had begun.
TEST_P(SqlFaults, AConnectionCutBeforeTheCommit_LeavesNothing_AndAllGoesAgain) {
  const auto target = scene->target();
  scene->relay().hold_answer_to(scene->name("effects"));
  Delivered lost;
  std::thread delivering([&] { lost = deliver(*target, numbered(40)); });
  ASSERT_TRUE(eventually([&] { return scene->relay().holding(); }));
  scene->relay().cut();
  delivering.join();
  EXPECT_FALSE(lost.result.ok());
  EXPECT_EQ(scene->query("SELECT count(*) FROM @effects"), "0\n");
  expect_all_there(*target, 40);
}

TEST_P(SqlFaults, ServerKilledBetweenACommitAndItsAnswer_EachRowIsThereOnce) {
  DatabaseServer own({.dialect = GetParam(), .syncs = true});
  TcpRelay relay(own.port());
  SqlTargetOptions options = scene->options;
  options.server = own.address();
  options.server.port = static_cast<std::uint16_t>(relay.port());
  own.query(sql_schema(GetParam(), options.tables));
  SqlTarget target(GetParam(), options);
  relay.hold_answer_to("COMMIT");
  Delivered lost;
  std::thread delivering([&] { lost = deliver(target, numbered(300)); });
  ASSERT_TRUE(eventually([&] { return relay.holding(); }));
  own.kill();
  relay.cut();
  delivering.join();
  EXPECT_FALSE(lost.result.ok());
  const Delivered down = deliver(target, numbered(300));
  EXPECT_FALSE(down.result.ok());
  EXPECT_STREQ(code_of(down.result.error()), "unreachable");
  own.start();
  std::size_t accepted = 0;
  EXPECT_TRUE(eventually([&] {
    const Delivered again = deliver(target, numbered(300));
    accepted = again.count(delivered) + again.count(duplicate);
    return accepted == 300;
  }));
  EXPECT_EQ(own.query("SELECT count(*), count(DISTINCT n) FROM " + scene->name("effects")), "300|300\n");
}

TEST_P(SqlFaults, AnIdleConnectionThatTheServerEnded_CostsNothing) {
  const auto target = scene->target();
  ASSERT_EQ(deliver(*target, {made_record(1, "{\"n\":1}")}).count(delivered), 1u);
  scene->relay().cut();
  EXPECT_TRUE(eventually([&] { return deliver(*target, {made_record(2, "{\"n\":2}")}).count(delivered) == 1u; }, 10s));
  EXPECT_EQ(scene->query("SELECT count(*) FROM @effects"), "2\n");
}

TEST_P(SqlFaults, Silence_EndsWithTheInterrupt) {
  const auto target = scene->target();
  ASSERT_EQ(deliver(*target, {made_record(1, "{\"n\":1}")}).count(delivered), 1u);
  scene->relay().swallow(true);
  std::atomic<bool> over = false;
  Delivered silent;
  std::thread delivering([&] {
    silent = deliver(*target, numbered(20));
    over = true;
  });
  EXPECT_TRUE(stays([&] { return !over; }, 200ms));
  const auto began = std::chrono::steady_clock::now();
  target->interrupt();
  delivering.join();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s);
  EXPECT_FALSE(silent.result.ok());
  scene->relay().swallow(false);
  scene->relay().cut();
  expect_all_there(*target, 20);
}

TEST_P(SqlFaults, Silence_EndsByItselfWithinTheLimit) {
  scene->options.server.statement_limit = 2s;
  const auto target = scene->target();
  ASSERT_EQ(deliver(*target, {made_record(1, "{\"n\":1}")}).count(delivered), 1u);
  scene->relay().swallow(true);
  const auto began = std::chrono::steady_clock::now();
  EXPECT_FALSE(deliver(*target, numbered(20)).result.ok());
  EXPECT_LT(std::chrono::steady_clock::now() - began, 20s);
}

// Accepts, and never says a word; or is no database.
TEST_P(SqlFaults, APeerThatNeverGreets_IsGivenUpWithinTheLimit) {
  for (const auto manner : {OddPeer::Manner::reads_and_keeps_silent, OddPeer::Manner::hangs_up}) {
    OddPeer peer(manner == OddPeer::Manner::hangs_up ? "HTTP/1.1 200 OK\r\n\r\n" : "", manner);
    const std::string url = peer.url();
    scene->options.server.port = static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
    scene->options.server.connect_limit = 2s;
    const auto target = scene->target();
    const auto began = std::chrono::steady_clock::now();
    const Delivered none = deliver(*target, numbered(2));
    EXPECT_LT(std::chrono::steady_clock::now() - began, 15s);
    ASSERT_FALSE(none.result.ok());
    EXPECT_STREQ(code_of(none.result.error()), "unreachable");
  }
}

TEST_P(SqlFaults, ALockThatIsNotGiven_IsARetry) {
  scene->options.server.statement_limit = 3s;
  const auto target = scene->target();
  ASSERT_EQ(deliver(*target, {made_record(1, "{\"n\":1}")}).count(delivered), 1u);
  // Another session claims the same key and does not say whether it means it.
  SqlServer server = scene->server().address();
  auto other = open_database(GetParam(), server)({});
  ASSERT_TRUE(other.ok());
  for (const std::string& statement :
       {std::string("BEGIN"), "INSERT INTO " + scene->name("inbox") + " (message_id) VALUES ('msg:2')"})
    ASSERT_TRUE(std::holds_alternative<SqlRows>(*(*other)->run(statement, {})));
  const Delivered waited = deliver(*target, {made_record(2, "{\"n\":2}")});
  ASSERT_EQ(waited.kinds(), (Kinds{retry})) << waited.result.ok();
  EXPECT_STREQ(waited.outcomes[0]->state, "contended");
  ASSERT_TRUE((*other)->run("ROLLBACK", {}).ok());
  EXPECT_EQ(deliver(*target, {made_record(2, "{\"n\":2}")}).kinds(), (Kinds{delivered}));
}

// Two boxes that deliver the same keys in opposite orders: the database ends one of them.
TEST_P(SqlFaults, Deadlocks_CostATryAndNothingElse) {
  const auto one = scene->target(), two = scene->target();
  auto forwards = numbered(60);
  std::vector<DueRecord> backwards(forwards.rbegin(), forwards.rend());
  const auto until_done = [](Target& target, const std::vector<DueRecord>& records) {
    std::vector<bool> done(records.size());
    for (int tries = 0; tries < 200 && std::count(done.begin(), done.end(), false) > 0; ++tries) {
      const Delivered all = deliver(target, records);
      expect_nobody_blamed(all);
      for (std::size_t i = 0; i < done.size(); ++i) done[i] = done[i] || is_accepted(all.outcomes[i]);
    }
    EXPECT_EQ(std::count(done.begin(), done.end(), false), 0);
  };
  scene->options.batch = 7;
  std::thread other([&] { until_done(*two, backwards); });
  until_done(*one, forwards);
  other.join();
  EXPECT_EQ(scene->query("SELECT count(*), count(DISTINCT n) FROM @effects"), "60|60\n");
}

TEST_P(SqlFaults, AWrongPassword_HoldsTheTarget_UntilTheFileIsRight) {
  const TemporaryDirectory directory;
  const auto write = [&](const std::string& text) { std::ofstream(directory / "password") << text; };
  scene->options.server.password_file = directory / "password";
  const auto target = scene->target();
  const Delivered none = deliver(*target, numbered(3));
  ASSERT_FALSE(none.result.ok());
  EXPECT_STREQ(code_of(none.result.error()), "file_unusable");
  write("stay ashore\n");
  const Delivered wrong = deliver(*target, numbered(3));
  ASSERT_FALSE(wrong.result.ok());
  EXPECT_STREQ(code_of(wrong.result.error()), "credentials_refused");
  EXPECT_STREQ(code_of(target->probe().error()), "credentials_refused");
  write(std::string(DatabaseServer::kPassword) + "\n");
  EXPECT_TRUE(target->probe().ok());
  EXPECT_EQ(deliver(*target, numbered(3)).count(delivered), 3u);
}

TEST_P(SqlFaults, AMissingDatabase_IsSaid) {
  scene->options.server.database = "nowhere";
  const Delivered none = deliver(*scene->target(), numbered(1));
  ASSERT_FALSE(none.result.ok());
  // MariaDB tells nobody without a right to it whether a database is there.
  EXPECT_STREQ(code_of(none.result.error()), scene->postgres() ? "no_database" : "credentials_refused");
}

TEST_P(SqlFaults, BySocket_WithoutTcp) {
  scene->options.server.host = scene->server().socket();
  scene->options.server.port = static_cast<std::uint16_t>(scene->server().port());
  EXPECT_EQ(deliver(*scene->target(), numbered(3)).count(delivered), 3u);
}

// --- Tables that cannot keep the promise

class SqlTables : public SqlTest {
 protected:
  // One record to a table of its own, whose making is the test's.
  std::string state_of(SqlMode mode, const std::string& create) {
    scene->query(create);
    auto table = scene->table("rows", mode, {field_column("n")});
    table.inbox = scene->name("inbox");
    scene->options.tables = {table};
    if (!target) target = scene->target();
    const Delivered one = deliver(*target, numbered(1));
    if (!one.result.ok()) return one.result.error().text;
    return one.outcomes[0]->kind == hold_lane ? one.outcomes[0]->state : std::to_string(int(one.outcomes[0]->kind));
  }
  std::string text(const std::string& postgres, const std::string& mysql) const {
    return scene->postgres() ? postgres : mysql;
  }
  std::string key() const { return text("text", "varbinary(200)"); }
  std::unique_ptr<SqlTarget> target;
};
HOLDFAST_BOTH_DATABASES(SqlTables);

TEST_P(SqlTables, MissingThenMade_HoldsTheLaneUntilThen) {
  EXPECT_EQ(state_of(SqlMode::insert_ignore, "SELECT 1"), "no_table");
  EXPECT_EQ(state_of(SqlMode::insert_ignore, "CREATE TABLE @rows (effect_key " + key() + " PRIMARY KEY)"), "no_column");
  EXPECT_EQ(state_of(SqlMode::insert_ignore, "ALTER TABLE @rows ADD n integer"), "0");
}

TEST_P(SqlTables, WithoutAUniqueKey_NothingIsSent) {
  EXPECT_EQ(state_of(SqlMode::insert_ignore, "CREATE TABLE @rows (effect_key " + key() + ", n integer)"),
            "no_unique_key");
  EXPECT_EQ(state_of(SqlMode::insert_ignore, "CREATE INDEX @i ON @rows (effect_key)"), "no_unique_key");
  EXPECT_EQ(state_of(SqlMode::insert_ignore, "CREATE UNIQUE INDEX @u ON @rows (effect_key, n)"), "no_unique_key");
  EXPECT_EQ(scene->query("SELECT count(*) FROM @rows"), "0\n");
  EXPECT_EQ(state_of(SqlMode::insert_ignore, "CREATE UNIQUE INDEX @k ON @rows (effect_key)"), "0");
}

TEST_P(SqlTables, AnInboxWithoutItsKey_NothingIsSent) {
  scene->query("CREATE TABLE @rows (n integer)");
  EXPECT_EQ(state_of(SqlMode::inbox, "CREATE TABLE @inbox (message_id " + key() + ")"), "no_unique_key");
  EXPECT_EQ(state_of(SqlMode::inbox, "ALTER TABLE @inbox ADD PRIMARY KEY (message_id)"), "0");
}

TEST_P(SqlTables, AKeyThatIsTooShortOrTakesTwoForOne_NothingIsSent) {
  const std::string folded = text("varchar(100)", "varchar(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci");
  EXPECT_EQ(state_of(SqlMode::insert_ignore, "CREATE TABLE @rows (effect_key " + folded + " PRIMARY KEY, n integer)"),
            "key_not_exact");
}

TEST_P(SqlTables, WithoutTransactionsOrDurability_NothingIsSent) {
  EXPECT_EQ(state_of(SqlMode::insert_ignore,
                     text("CREATE UNLOGGED TABLE @rows (effect_key text PRIMARY KEY, n integer)",
                          "CREATE TABLE @rows (effect_key varbinary(200) PRIMARY KEY, n integer) ENGINE = MyISAM")),
            "table_not_transactional");
}

TEST_P(SqlTables, AnUpsertThatCouldMeetAnotherKey_NothingIsSentWhereItWouldBeTaken) {
  const std::string state =
      state_of(SqlMode::upsert, "CREATE TABLE @rows (effect_key " + key() + " PRIMARY KEY, n integer UNIQUE)");
  EXPECT_EQ(state, scene->postgres() ? "0" : "other_unique_key");
}

TEST_P(SqlTables, AColumnThatMustHaveAValueAndGetsNone_BlamesTheTable) {
  EXPECT_EQ(state_of(SqlMode::append, "CREATE TABLE @rows (n integer, must integer NOT NULL)"), "column_mismatch");
}

TEST_P(SqlTables, NoRightToWrite_HoldsTheLane) {
  const std::string take = text("REVOKE INSERT ON @rows FROM box", "SELECT 1");
  scene->query("CREATE TABLE @rows (n integer)");
  if (!scene->postgres()) GTEST_SKIP() << "rights of the whole database cannot be taken of one table";
  EXPECT_EQ(state_of(SqlMode::append, take), "no_privilege");
}

// --- TLS

TEST_P(SqlFaults, WithTls_TheNameAndTheAuthorityAreChecked) {
  CertificateAuthority ours, theirs;
  const auto pair = ours.issue("server", "DNS:localhost");
  DatabaseServer own({.dialect = GetParam(), .tls_cert = pair.certificate, .tls_key = pair.key});
  own.query(sql_schema(GetParam(), scene->options.tables));
  SqlTargetOptions options = scene->options;
  options.server = own.address();
  options.server.tls = SqlTls::verify_full;
  const auto code = [&](const std::string& host, const std::string& ca) {
    options.server.host = host;
    options.server.tls_ca = ca;
    SqlTarget target(GetParam(), options);
    const Delivered one = deliver(target, numbered(1));
    return one.result.ok() ? std::string("taken") : code_of(one.result.error());
  };
  EXPECT_EQ(code("localhost", ours.ca()), "taken");
  EXPECT_EQ(code("localhost", theirs.ca()), "unreachable");
  EXPECT_EQ(code("127.0.0.1", ours.ca()), "unreachable");
  EXPECT_EQ(code("localhost", ""), "unreachable");
  if (!scene->postgres()) return;
  options.server.connect_to = "127.0.0.1:" + std::to_string(own.port());
  EXPECT_EQ(code("localhost", ours.ca()), "taken");
  EXPECT_EQ(code("elsewhere.example", ours.ca()), "unreachable");
}

}  // namespace
}  // namespace holdfast
