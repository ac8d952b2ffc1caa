// [[target]] of type postgres or mysql, and its tables.
#include <gtest/gtest.h>

#include "appliance/config_file.h"

namespace holdfast {
namespace {

const std::string kGood = R"toml([appliance]
site = "truck-07"
[spool]
key_file = "/etc/holdfast/spool.key"
[[source]]
name = "local"
type = "nats"
url = "nats://127.0.0.1:4222"
stream = "PAYMENTS"
[[target]]
name = "ledger"
type = "postgres"
host = "db.example"
database = "ops"
user = "holdfast"
password_file = "/etc/holdfast/ledger.password"
batch = 100
[[target.table]]
subjects = ["payments.refund"]
table = "ledger.refunds"
effect_key = { payload_field = "refund.id" }
effect_column = "refund_id"
columns = { amount = "field:amount", trace = "header:Trace-Id", body = "payload:text" }
required = ["amount"]
types = { amount = "numeric(12,2)" }
[[target.table]]
subjects = ["state.>"]
table = "states"
mode = "upsert"
effect_key = "message_id"
version_column = "version"
columns = { version = "spool_sequence" }
)toml";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  if (place != std::string::npos) text.replace(place, from.size(), to);
  return text;
}

std::string said(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) text += finding_text("h.toml", finding) + '\n';
  return text;
}

SqlTargetConfig sql_of(const LoadedConfig& loaded) {
  return std::get<SqlTargetConfig>(loaded.config.targets.at(0).settings);
}

TEST(ConfigSql, TheGoodFile_IsReadWhole) {
  const LoadedConfig loaded = parse_config(kGood);
  ASSERT_TRUE(loaded.ok()) << said(loaded.errors);
  EXPECT_EQ(said(loaded.warnings), "");
  const SqlTargetConfig sql = sql_of(loaded);
  EXPECT_EQ(sql.dialect, SqlDialect::postgres);
  EXPECT_EQ(sql.server.host, "db.example");
  EXPECT_EQ(sql.server.port, 5432);
  EXPECT_EQ(sql.server.tls, SqlTls::verify_full);
  EXPECT_EQ(sql.batch, 100u);
  ASSERT_EQ(sql.tables.size(), 2u);
  const SqlTable& refunds = sql.tables[0];
  EXPECT_EQ(refunds.mode, SqlMode::inbox);
  EXPECT_EQ(refunds.inbox, "inbox");
  EXPECT_EQ(refunds.effect_column, "refund_id");
  ASSERT_TRUE(refunds.effect_key && *refunds.effect_key);
  EXPECT_EQ((*refunds.effect_key)->field.text, "refund.id");
  ASSERT_EQ(refunds.columns.size(), 3u);
  EXPECT_EQ(refunds.columns[0].name, "amount");
  EXPECT_EQ(refunds.columns[0].source, ColumnSource::field);
  EXPECT_EQ(refunds.columns[0].type, "numeric(12,2)");
  EXPECT_TRUE(refunds.columns[0].required);
  EXPECT_EQ(refunds.columns[1].source, ColumnSource::payload_text);
  EXPECT_EQ(refunds.columns[2].header, "Trace-Id");
  EXPECT_EQ((*sql.tables[1].effect_key)->strategy, Strategy::message_id);
  EXPECT_EQ(sql.tables[1].version_column, "version");
}

TEST(ConfigSql, Defaults_GoByTypeAndHost) {
  const std::string local =
      replaced(replaced(kGood, "type = \"postgres\"", "type = \"mysql\""), "db.example", "127.0.0.1");
  EXPECT_EQ(sql_of(parse_config(local)).server.port, 3306);
  EXPECT_EQ(sql_of(parse_config(local)).server.tls, SqlTls::off);
  const std::string socket = replaced(kGood, "db.example", "/run/postgresql");
  EXPECT_EQ(sql_of(parse_config(socket)).server.tls, SqlTls::off);
  const std::string keyed = replaced(kGood, "effect_key = \"message_id\"\n", "");
  EXPECT_TRUE(sql_of(parse_config(keyed)).tables[1].effect_key.has_value()) << "an upsert has a key in any case";
}

TEST(ConfigSql, WhatWouldSurprise_IsAWarning) {
  EXPECT_EQ(said(parse_config(replaced(kGood, "batch = 100", "tls = \"off\"")).warnings),
            "h.toml:10: target.tls: is off: who is on the way reads the records, and may be the server\n");
  EXPECT_EQ(said(parse_config(replaced(kGood, "[\"payments.refund\"]", "[\">\"]")).warnings),
            "h.toml:26: target.table.subjects: are all taken by tables before it\n");
}

struct BadFile {
  const char* name;
  const char* from;
  const char* to;
  const char* said;
};

const BadFile kBadFiles[] = {
    {"NoHost", "host = \"db.example\"\n", "", "h.toml:10: target.host: is missing; it has no default\n"},
    {"TwoHosts", "db.example", "a,b",
     "h.toml:13: target.host: must be one host's name or address, or the absolute path of a socket\n"},
    {"NoTable", "[[target.table]]\nsubjects = [\"payments.refund\"]\ntable", "[[target.table]]\nname",
     "h.toml:18: target.table.table: is missing; it has no default\n"
     "h.toml:19: target.table.name: is not a key of [target.table]; known are allow_duplicates, columns, "
     "effect_column, "
     "effect_key, inbox, mode, required, subjects, table, types, version_column\n"},
    {"TableOfAttack", "\"ledger.refunds\"", "\"refunds; DROP TABLE x\"",
     "h.toml:20: target.table.table: must be a name of letters, digits and '_', at most 63, like \"refunds\" or "
     "\"ledger.refunds\"\n"},
    {"TypeOfAttack", "numeric(12,2)", "int); DROP TABLE x; --",
     "h.toml:25: target.table.types.amount: must be a type as the database has it, like \"numeric(12,2)\"\n"},
    {"Append", "mode = \"upsert\"\neffect_key = \"message_id\"\nversion_column = \"version\"", "mode = \"append\"",
     "h.toml:29: target.table.mode: \"append\" makes a second row of whatever is sent twice; allow_duplicates = true "
     "says "
     "so\n"},
    {"Mode", "mode = \"upsert\"", "mode = \"merge\"",
     "h.toml:29: target.table.mode: \"merge\" is not known; must be one of \"inbox\", \"upsert\", \"insert_ignore\", "
     "\"insert\", \"append\"\n"
     "h.toml:31: target.table.version_column: is for mode \"upsert\" alone\n"},
    {"Source", "\"field:amount\"", "\"body:amount\"",
     "h.toml:23: target.table.columns.amount: must be \"payload\", \"payload:text\", \"field:PATH\", \"header:NAME\", "
     "\"key\", \"subject\", \"site\", \"source\", \"stream\", \"stream_sequence\", \"timestamp\", \"timestamp_ns\", "
     "\"spool_sequence\", \"accepted_at\", \"clock\" or \"priority\"\n"},
    {"RequiredOfNothing", "required = [\"amount\"]", "required = [\"sum\"]",
     "h.toml:24: target.table.required: \"sum\" is none of the columns\n"},
    {"VersionOfNothing", "version_column = \"version\"", "version_column = \"newest\"",
     "h.toml:31: target.table.version_column: is none of the columns\n"},
    {"EffectColumnTwice", "effect_column = \"refund_id\"", "effect_column = \"amount\"",
     "h.toml:23: target.table.columns: \"amount\" is given the effect's key; name another effect_column\n"},
    {"InboxIsTheTable", "table = \"ledger.refunds\"", "table = \"inbox\"",
     "h.toml:18: target.table.inbox: is the table itself; the claims need one of their own\n"},
    {"CertificateAlone", "batch = 100", "tls_cert = \"/a\"",
     "h.toml:10: target.tls_key: is missing; tls_cert and tls_key go together\n"},
};

class ConfigSqlRefusal : public ::testing::TestWithParam<BadFile> {};

TEST_P(ConfigSqlRefusal, NamesLineAndKey) {
  const LoadedConfig loaded = parse_config(replaced(kGood, GetParam().from, GetParam().to));
  EXPECT_FALSE(loaded.ok());
  EXPECT_EQ(said(loaded.errors), GetParam().said);
}
INSTANTIATE_TEST_SUITE_P(Files, ConfigSqlRefusal, ::testing::ValuesIn(kBadFiles),
                         [](const auto& file) { return std::string(file.param.name); });

}  // namespace
}  // namespace holdfast
