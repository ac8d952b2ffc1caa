// Rows in real databases: what each mode makes of records, which of them are told apart, and what a bad one costs.
#include <gtest/gtest.h>

#include "forwarder/sql_readback.h"
#include "tests/forwarder/sql_scene.h"

namespace holdfast {
namespace {

using enum OutcomeKind;

class SqlTargetTest : public SqlTest {
 protected:
  void use(SqlTable table) {
    scene->options.tables = {std::move(table)};
    scene->create();
  }
};
HOLDFAST_BOTH_DATABASES(SqlTargetTest);

std::vector<DueRecord> numbered(std::uint64_t from, std::uint64_t to) {
  std::vector<DueRecord> made;
  for (std::uint64_t n = from; n <= to; ++n) made.push_back(made_record(n, "{\"n\":" + std::to_string(n) + "}"));
  return made;
}

TEST_P(SqlTargetTest, Inbox_ClaimsAndWritesInOneTransaction_OnceForEachKey) {
  use(scene->table("effects", SqlMode::inbox, {field_column("n")}));
  const auto target = scene->target();
  const Delivered first = deliver(*target, numbered(1, 600));
  ASSERT_TRUE(first.result.ok()) << first.result.error().text;
  EXPECT_EQ(first.count(delivered), 600u);
  const Delivered again = deliver(*target, numbered(500, 700));
  EXPECT_EQ(again.count(duplicate), 101u);
  EXPECT_EQ(again.count(delivered), 100u);
  EXPECT_EQ(scene->query("SELECT count(*), count(DISTINCT n) FROM @effects"), "700|700\n");
  EXPECT_EQ(scene->query("SELECT count(*) FROM @inbox"), "700\n");
}

TEST_P(SqlTargetTest, InboxWithNothingButItsKey_ClaimsAllTheSame) {
  scene->options.tables = {scene->table("effects", SqlMode::inbox, {field_column("n")})};
  scene->query("CREATE TABLE @inbox (message_id " + std::string(scene->postgres() ? "text" : "varbinary(200)") +
               " PRIMARY KEY)");
  scene->query("CREATE TABLE @effects (n integer)");
  const auto target = scene->target();
  EXPECT_EQ(deliver(*target, numbered(1, 5)).count(delivered), 5u);
  EXPECT_EQ(deliver(*target, {made_record(1, "{\"n\":99}")}).count(duplicate), 1u);
  EXPECT_EQ(scene->query("SELECT count(*), max(n) FROM @effects"), "5|5\n");
}

TEST_P(SqlTargetTest, TheSameKeyTwiceInOneWindow_IsOneRow) {
  for (const SqlMode mode : {SqlMode::inbox, SqlMode::insert_ignore, SqlMode::insert}) {
    auto table = scene->table("same" + std::to_string(static_cast<int>(mode)), mode, {field_column("n")});
    table.inbox = table.name + "_inbox";
    use(table);
    const auto records = std::vector{made_record(1, "{\"n\":1}"), made_record(1, "{\"n\":1}"), made_record(2, "{}")};
    const Delivered both = deliver(*scene->target(), records);
    EXPECT_EQ(both.kinds(), (Kinds{delivered, duplicate, delivered}));
    EXPECT_EQ(scene->query("SELECT count(*) FROM " + table.name), "2\n");
  }
}

TEST_P(SqlTargetTest, OtherContentUnderAKeyInOneWindow_IsRejected) {
  use(scene->table("effects", SqlMode::inbox, {field_column("n")}));
  const Delivered both = deliver(*scene->target(), {made_record(1, "{\"n\":1}"), made_record(1, "{\"n\":2}")});
  EXPECT_EQ(both.kinds(), (Kinds{delivered, rejected}));
  EXPECT_EQ(both.outcomes[1]->reason, Reason::exists_otherwise);
  EXPECT_EQ(scene->query("SELECT n FROM @effects"), "1\n");
}

TEST_P(SqlTargetTest, InsertIgnore_LeavesWhatIsThere) {
  use(scene->table("rows", SqlMode::insert_ignore, {field_column("n")}));
  const auto target = scene->target();
  EXPECT_EQ(deliver(*target, numbered(1, 3)).count(delivered), 3u);
  EXPECT_EQ(deliver(*target, {made_record(2, "{\"n\":77}")}).kinds(), (Kinds{duplicate}));
  EXPECT_EQ(scene->query("SELECT n FROM @rows ORDER BY n"), "1\n2\n3\n");
}

TEST_P(SqlTargetTest, Insert_TellsItsOwnRowFromAnother) {
  use(scene->table("rows", SqlMode::insert, {field_column("n")}));
  const auto target = scene->target();
  EXPECT_EQ(deliver(*target, numbered(1, 3)).count(delivered), 3u);
  const Delivered again =
      deliver(*target, {made_record(2, "{\"n\":2}"), made_record(3, "{\"n\":77}"), made_record(4, "{}")});
  EXPECT_EQ(again.kinds(), (Kinds{duplicate, rejected, delivered}));
  EXPECT_EQ(again.outcomes[1]->reason, Reason::exists_otherwise);
}

TEST_P(SqlTargetTest, Append_IsARowEachTime) {
  use(scene->table("rows", SqlMode::append, {field_column("n")}));
  const auto target = scene->target();
  EXPECT_EQ(deliver(*target, numbered(1, 3)).count(delivered), 3u);
  EXPECT_EQ(deliver(*target, numbered(1, 3)).count(delivered), 3u);
  EXPECT_EQ(scene->query("SELECT count(*) FROM @rows"), "6\n");
}

TEST_P(SqlTargetTest, Upsert_ManyOfOneKeyInOneWindow_TheLastStands) {
  auto table = scene->table("state", SqlMode::upsert, {field_column("device"), field_column("level")});
  table.effect_key = field_key("device");
  use(table);
  std::vector<DueRecord> records;
  for (int n = 1; n <= 20; ++n)
    records.push_back(
        made_record(n, "{\"device\":\"d" + std::to_string(n % 3) + "\",\"level\":" + std::to_string(n) + "}"));
  EXPECT_EQ(deliver(*scene->target(), records).count(delivered), 20u);
  EXPECT_EQ(scene->query("SELECT device, level FROM @state ORDER BY device"), "d0|18\nd1|19\nd2|20\n");
}

TEST_P(SqlTargetTest, UpsertWithAVersion_AnOlderRecordChangesNothing) {
  SqlColumn version = column_of("spool_sequence", ColumnSource::spool_sequence);
  auto table = scene->table("state", SqlMode::upsert, {version, field_column("level")});
  table.effect_key = field_key("device");
  table.version_column = "spool_sequence";
  use(table);
  const auto target = scene->target();
  const auto at = [](std::uint64_t n) {
    return made_record(n, "{\"device\":\"d\",\"level\":\"at " + std::to_string(n) + "\"}");
  };
  EXPECT_EQ(deliver(*target, {at(2)}).count(delivered), 1u);
  EXPECT_EQ(deliver(*target, {at(10), at(9)}).count(delivered), 2u);
  EXPECT_EQ(deliver(*target, {at(3)}).count(delivered), 1u);
  EXPECT_EQ(scene->query("SELECT spool_sequence, level FROM @state"), "10|at 10\n");
}

TEST_P(SqlTargetTest, ColumnsOfEveryKind_HoldWhatTheRecordSays) {
  std::vector<SqlColumn> columns{column_of("body", ColumnSource::payload),
                                 column_of("body_text", ColumnSource::payload_text),
                                 field_column("amount"),
                                 field_column("paid"),
                                 field_column("nothing"),
                                 column_of("wire_key", ColumnSource::key),
                                 column_of("subject", ColumnSource::subject),
                                 column_of("site", ColumnSource::site),
                                 column_of("source", ColumnSource::source),
                                 column_of("stream", ColumnSource::stream),
                                 column_of("stream_sequence", ColumnSource::stream_sequence),
                                 column_of("at", ColumnSource::timestamp),
                                 column_of("at_ns", ColumnSource::timestamp_ns),
                                 column_of("spool_sequence", ColumnSource::spool_sequence),
                                 column_of("taken", ColumnSource::accepted_at),
                                 column_of("clock", ColumnSource::clock),
                                 column_of("priority", ColumnSource::priority)};
  columns[2].type = scene->postgres() ? "numeric" : "DECIMAL(30,10)";
  columns[3].type = "boolean";
  SqlColumn trace = column_of("trace", ColumnSource::header);
  trace.header = "trace-id";
  columns.push_back(trace);
  use(scene->table("all", SqlMode::inbox, columns));
  DueRecord record =
      made_record(7, "{\"amount\":9007199254740993.25,\"paid\":true,\"x\":\"\xc3\xa4\xf0\x9f\x9a\x9a\"}");
  record.envelope.headers = {{"Trace-Id", "a'b\"c\\d"}};
  record.envelope.source = "local";
  record.envelope.origin = {"TELEMETRY", 18446744073709u, 1714564800123456789};
  record.accepted_wall_ns = 1714564801000000000;
  record.priority = 3;
  const Delivered one = deliver(*scene->target(), {record});
  ASSERT_TRUE(one.result.ok()) << one.result.error().text;
  ASSERT_EQ(one.kinds(), (Kinds{delivered})) << one.outcomes[0]->state << one.outcomes[0]->words;
  const std::string same =
      "body_text = '{\"amount\":9007199254740993.25,\"paid\":true,\"x\":\"\xc3\xa4\xf0\x9f\x9a\x9a\"}'";
  EXPECT_EQ(scene->query("SELECT count(*) FROM @all WHERE " + same + " AND paid AND nothing IS NULL"), "1\n");
  const std::string hex = scene->postgres() ? "encode(body,'hex')" : "lower(hex(body))";
  EXPECT_EQ(scene->query("SELECT " + hex + " FROM @all"), to_hex(record.envelope.payload) + "\n");
  EXPECT_EQ(scene->query("SELECT amount, wire_key, subject, site, source, stream, stream_sequence, at_ns FROM @all"),
            std::string(scene->postgres() ? "9007199254740993.25" : "9007199254740993.2500000000") +
                "|msg:7|telemetry.a|truck-07|local|TELEMETRY|18446744073709|1714564800123456789\n");
  EXPECT_EQ(scene->query("SELECT at, taken, spool_sequence, clock, priority FROM @all"),
            std::string(scene->postgres() ? "2024-05-01 12:00:00.123457+00|2024-05-01 12:00:01+00"
                                          : "2024-05-01 12:00:00.123456|2024-05-01 12:00:01.000000") +
                "|7|untrusted|3\n");
  EXPECT_EQ(scene->query("SELECT count(*) FROM @all WHERE trace = 'a''b\"c" +
                         std::string(scene->postgres() ? "\\d'" : "\\\\d'")),
            "1\n");
}

// --- Bad records

// One of a thousand does not fit its column; the others are there, and nothing of it.
TEST_P(SqlTargetTest, APoisonAmongAThousand_IsRejectedAlone) {
  auto number = field_column("n");
  number.type = "smallint";
  use(scene->table("effects", SqlMode::inbox, {number}));
  auto records = numbered(1, 1000);
  records[617] = made_record(618, "{\"n\":70000}");
  const Delivered all = deliver(*scene->target(), records);
  ASSERT_TRUE(all.result.ok()) << all.result.error().text;
  EXPECT_EQ(all.count(delivered), 999u);
  ASSERT_EQ(all.outcomes[617]->kind, rejected);
  EXPECT_EQ(all.outcomes[617]->reason, Reason::rejected);
  EXPECT_NE(all.outcomes[617]->words, "");
  EXPECT_EQ(scene->query("SELECT count(*) FROM @effects"), "999\n");
  EXPECT_EQ(scene->query("SELECT count(*) FROM @inbox"), "999\n");
}

// What MariaDB would cut off or set to zero where it is not told to be strict, or where the statement says IGNORE.
TEST_P(SqlTargetTest, AValueThatDoesNotFit_IsNeverCutOff) {
  for (const SqlMode mode :
       {SqlMode::inbox, SqlMode::upsert, SqlMode::insert_ignore, SqlMode::insert, SqlMode::append}) {
    auto name = field_column("name"), when = field_column("when"), count = field_column("count");
    name.type = "varchar(3)";
    when.type = "date";
    count.type = "integer";
    auto table = scene->table("strict" + std::to_string(static_cast<int>(mode)), mode, {name, when, count});
    table.inbox = table.name + "_inbox";
    use(table);
    const Delivered all =
        deliver(*scene->target(), {made_record(1, "{\"name\":\"abc\",\"when\":\"2024-02-29\",\"count\":1}"),
                                   made_record(2, "{\"name\":\"abcd\"}"), made_record(3, "{\"when\":\"2023-02-29\"}"),
                                   made_record(4, "{\"count\":\"many\"}"), made_record(5, "{\"count\":\"12 or so\"}"),
                                   made_record(6, "{\"count\":99999999999}"), made_record(7, "{}")});
    ASSERT_TRUE(all.result.ok()) << all.result.error().text;
    EXPECT_EQ(all.kinds(), (Kinds{delivered, rejected, rejected, rejected, rejected, rejected, delivered}));
    EXPECT_EQ(scene->query("SELECT count(*) FROM " + table.name), "2\n");
  }
}

TEST_P(SqlTargetTest, ARequiredFieldThatIsMissing_IsThatRecordsFault) {
  use(scene->table("effects", SqlMode::inbox, {field_column("n", true)}));
  const Delivered all = deliver(*scene->target(), {made_record(1, "{\"n\":1}"), made_record(2, "{}"),
                                                   made_record(3, "not JSON"), made_record(4, "{\"n\":[1]}")});
  EXPECT_EQ(all.kinds(), (Kinds{delivered, rejected, rejected, rejected}));
  EXPECT_EQ(all.outcomes[1]->reason, Reason::field_missing);
  EXPECT_EQ(all.outcomes[3]->reason, Reason::field_array);
}

TEST_P(SqlTargetTest, TextThatIsNone_IsRejectedAndNotAltered) {
  use(scene->table("effects", SqlMode::inbox, {column_of("body", ColumnSource::payload_text)}));
  const Delivered all = deliver(
      *scene->target(), {made_record(1, "\xff\xfe"), made_record(2, std::string("a\0b", 3)), made_record(3, "fine")});
  EXPECT_EQ(all.kinds(), (Kinds{rejected, rejected, delivered}));
  EXPECT_EQ(all.outcomes[0]->reason, Reason::unencodable);
}

TEST_P(SqlTargetTest, ARowWithoutItsParent_WaitsAlone_AndGoesWhenTheParentIsThere) {
  use(scene->table("child", SqlMode::insert_ignore, {[&] {
                     auto parent = field_column("parent");
                     parent.type = "integer";
                     return parent;
                   }()}));
  scene->query("CREATE TABLE @parent (id integer PRIMARY KEY)");
  scene->query("INSERT INTO @parent VALUES (1)");
  scene->query("ALTER TABLE @child ADD FOREIGN KEY (parent) REFERENCES @parent (id)");
  const auto target = scene->target();
  const std::vector records{made_record(1, "{\"parent\":1}"), made_record(2, "{\"parent\":2}"),
                            made_record(3, "{\"parent\":1}")};
  const Delivered early = deliver(*target, records);
  EXPECT_EQ(early.kinds(), (Kinds{delivered, retry, delivered}));
  EXPECT_STREQ(early.outcomes[1]->state, "parent_missing");
  scene->query("INSERT INTO @parent VALUES (2)");
  EXPECT_EQ(deliver(*target, {records[1]}).kinds(), (Kinds{delivered}));
}

TEST_P(SqlTargetTest, AnotherUniqueConstraint_RejectsTheRowAndSwallowsNothing) {
  for (const SqlMode mode : {SqlMode::inbox, SqlMode::insert_ignore, SqlMode::insert}) {
    auto plate = field_column("plate");
    plate.type = "varchar(20)";
    auto table = scene->table("cars" + std::to_string(static_cast<int>(mode)), mode, {plate});
    table.inbox = table.name + "_inbox";
    use(table);
    scene->query("ALTER TABLE " + table.name + " ADD UNIQUE (plate)");
    const Delivered all =
        deliver(*scene->target(), {made_record(1, "{\"plate\":\"A\"}"), made_record(2, "{\"plate\":\"A\"}"),
                                   made_record(3, "{\"plate\":\"B\"}")});
    EXPECT_EQ(all.kinds(), (Kinds{delivered, rejected, delivered}));
    EXPECT_EQ(all.outcomes[1]->reason, Reason::exists_otherwise);
  }
}

// A trigger may refuse for a reason that nobody here knows: never a verdict, and no reason for others to wait.
TEST_P(SqlTargetTest, ARefusalThatIsNotKnown_IsTriedAgain_AloneAndForEver) {
  use(scene->table("effects", SqlMode::inbox, {field_column("n")}));
  if (scene->postgres()) {
    scene->query(
        "CREATE FUNCTION @refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF NEW.n = ''3'' THEN RAISE EXCEPTION "
        "''no''; END IF; RETURN NEW; END';"
        "CREATE TRIGGER t BEFORE INSERT ON @effects FOR EACH ROW EXECUTE FUNCTION @refuse()");
  } else {
    scene->query(
        "CREATE TRIGGER @t BEFORE INSERT ON @effects FOR EACH ROW IF NEW.n = '3' THEN SIGNAL SQLSTATE '45000'; END IF");
  }
  const Delivered all = deliver(*scene->target(), numbered(1, 5));
  EXPECT_EQ(all.kinds(), (Kinds{delivered, delivered, retry, delivered, delivered}));
  EXPECT_STREQ(all.outcomes[2]->state, "unknown_error");
}

// --- What is there, for certification

TEST_P(SqlTargetTest, Readback_FindsRowsAndTheirContent_AndRemovesThem) {
  for (const bool keyed : {false, true}) {
    auto table = scene->table(keyed ? "keyed" : "plain", SqlMode::inbox, {column_of("body", ColumnSource::payload)});
    table.inbox = table.name + "_inbox";
    if (keyed) table.effect_key = EffectKey();
    use(table);
    const auto readback =
        scene->postgres() ? make_postgres_readback(scene->options) : make_mysql_readback(scene->options);
    const std::vector records{made_record(1, "one"), made_record(2, "two")};
    ASSERT_EQ(deliver(*scene->target(), {records[0]}).count(delivered), 1u);
    const auto held = [&](const std::vector<DueRecord>& of) {
      std::vector<Delivery> asked;
      for (const DueRecord& record : of) asked.push_back({&record, wire_key(record.key)});
      return *readback->look(asked);
    };
    EXPECT_EQ(held(records)[0].copies, 1u);
    EXPECT_TRUE(held(records)[0].as_sent);
    EXPECT_EQ(held(records)[1].copies, 0u);
    EXPECT_FALSE(held({made_record(1, "other")})[0].as_sent);
    const std::vector<Delivery> one{{&records[0], wire_key(records[0].key)}};
    ASSERT_TRUE(readback->remove(one).ok());
    EXPECT_EQ(held(records)[0].copies, 0u);
    EXPECT_EQ(scene->query("SELECT count(*) FROM " + table.inbox), "0\n");
  }
}

// --- Tables by subject

TEST_P(SqlTargetTest, EachSubjectGoesToItsOwnTable_WithItsOwnMode) {
  auto refunds = scene->table("refunds", SqlMode::inbox, {field_column("n")});
  refunds.subjects = {"pay.refund.*"};
  auto states = scene->table("states", SqlMode::upsert, {field_column("n")});
  states.subjects = {"pay.>"};
  states.effect_key = field_key("device");
  scene->options.tables = {refunds, states};
  scene->create();
  const Delivered all =
      deliver(*scene->target(),
              {made_record(1, "{\"n\":1}", "pay.refund.x"), made_record(2, "{\"n\":2,\"device\":\"d\"}", "pay.state"),
               made_record(3, "{\"n\":3}", "other"), made_record(4, "{\"n\":4,\"device\":\"d\"}", "pay.state")});
  EXPECT_EQ(all.kinds(), (Kinds{delivered, delivered, hold_lane, delivered}));
  EXPECT_STREQ(all.outcomes[2]->state, "no_table_for_subject");
  EXPECT_EQ(scene->query("SELECT n FROM @refunds"), "1\n");
  EXPECT_EQ(scene->query("SELECT n FROM @states"), "4\n");
}

TEST_P(SqlTargetTest, ABatchBeyondThePlacesOfAStatement_IsCarriedAllTheSame) {
  std::vector<SqlColumn> columns;
  for (int i = 0; i < 60; ++i) {
    SqlColumn column = column_of("c" + std::to_string(i), ColumnSource::priority);
    columns.push_back(column);
  }
  use(scene->table("wide", SqlMode::inbox, columns));
  scene->options.batch = 2000;
  EXPECT_EQ(deliver(*scene->target(), numbered(1, 2000)).count(delivered), 2000u);
  EXPECT_EQ(scene->query("SELECT count(*) FROM @wide"), "2000\n");
}

}  // namespace
}  // namespace holdfast
