// What is pure about a target in a database: names, statements, the tables it prints, what a refusal means.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "forwarder/code.h"
#include "forwarder/sql_name.h"
#include "forwarder/sql_refusal.h"
#include "forwarder/sql_row.h"
#include "forwarder/sql_schema.h"
#include "forwarder/sql_statement.h"

namespace holdfast {
namespace {

SqlTable refunds(SqlMode mode = SqlMode::inbox) {
  SqlTable table;
  table.subjects = {">"};
  table.name = "ledger.refunds";
  table.mode = mode;
  table.effect_key = EffectKey();
  SqlColumn amount;
  amount.name = "amount";
  amount.source = ColumnSource::field;
  amount.field = *parse_field_path("amount");
  amount.required = true;
  amount.type = "numeric(12,2)";
  SqlColumn at;
  at.name = "at";
  at.source = ColumnSource::timestamp;
  table.columns = {amount, at};
  return table;
}

TEST(SqlName, OnlyPlainNames_AreNames) {
  for (const char* good : {"a", "_a", "Refunds_2", "ledger.refunds"}) EXPECT_TRUE(valid_sql_table(good)) << good;
  for (const char* bad : {"", ".", "a.", ".a", "a.b.c", "2a", "a b", "a\"b", "a`b", "a;b", "a-b", "\xc3\xa4", "a'b"})
    EXPECT_FALSE(valid_sql_table(bad)) << bad;
  EXPECT_TRUE(valid_sql_name(std::string(63, 'a')));
  EXPECT_FALSE(valid_sql_name(std::string(64, 'a')));
  EXPECT_FALSE(valid_sql_name("a.b"));
}

TEST(SqlStatement, Postgres_LetsTheConstraintDecide) {
  const SqlTable table = refunds();
  EXPECT_EQ(insert_new_statement(SqlDialect::postgres, into_table(table), "effect_key", 2),
            R"(INSERT INTO "ledger"."refunds" ("effect_key", "amount", "at") VALUES ($1,$2,$3),($4,$5,$6))"
            R"( ON CONFLICT ("effect_key") DO NOTHING RETURNING "effect_key")");
  EXPECT_EQ(existing_statement(SqlDialect::postgres, "inbox", "message_id", true, 2),
            R"(SELECT "message_id", encode("content_digest", 'hex') FROM "inbox" WHERE "message_id" IN ($1,$2))");
}

TEST(SqlStatement, Mysql_NeverIgnores) {
  const SqlTable table = refunds(SqlMode::insert);
  EXPECT_EQ(
      insert_new_statement(SqlDialect::mysql, into_table(table), "effect_key", 2),
      "INSERT INTO `ledger`.`refunds` (`effect_key`, `content_digest`, `amount`, `at`) VALUES (?,?,?,?),(?,?,?,?)");
}

TEST(SqlStatement, AnUpsertWithAVersion_KeepsWhatIsNewer) {
  SqlTable table = refunds(SqlMode::upsert);
  EXPECT_EQ(upsert_statement(SqlDialect::mysql, table, 1),
            "INSERT INTO `ledger`.`refunds` (`effect_key`, `amount`, `at`) VALUES (?,?,?) ON DUPLICATE KEY UPDATE "
            "`amount` = VALUES(`amount`), `at` = VALUES(`at`)");
  table.version_column = "amount";
  EXPECT_EQ(upsert_statement(SqlDialect::mysql, table, 1),
            "INSERT INTO `ledger`.`refunds` (`effect_key`, `amount`, `at`) VALUES (?,?,?) ON DUPLICATE KEY UPDATE "
            "`at` = IF(`amount` IS NULL OR VALUES(`amount`) >= `amount`, VALUES(`at`), `at`), "
            "`amount` = IF(`amount` IS NULL OR VALUES(`amount`) >= `amount`, VALUES(`amount`), `amount`)");
  EXPECT_EQ(upsert_statement(SqlDialect::postgres, table, 1),
            R"(INSERT INTO "ledger"."refunds" AS held ("effect_key", "amount", "at") VALUES ($1,$2,$3))"
            R"( ON CONFLICT ("effect_key") DO UPDATE SET "amount" = excluded."amount", "at" = excluded."at")"
            R"( WHERE held."amount" IS NULL OR excluded."amount" >= held."amount")");
}

TEST(SqlSchema, PrintsEachTableOnce) {
  EXPECT_EQ(sql_schema(SqlDialect::postgres, {refunds(), refunds()}),
            "CREATE TABLE \"inbox\" (\n"
            "  \"message_id\" text COLLATE \"C\" NOT NULL PRIMARY KEY,\n"
            "  \"content_digest\" bytea,\n"
            "  \"taken_at\" timestamptz NOT NULL DEFAULT now()\n"
            ");\n"
            "\n"
            "CREATE TABLE \"ledger\".\"refunds\" (\n"
            "  \"effect_key\" text COLLATE \"C\" NOT NULL PRIMARY KEY,\n"
            "  \"amount\" numeric(12,2) NOT NULL,\n"
            "  \"at\" timestamptz\n"
            ");\n");
}

// Anybody who has the message can make it again.
TEST(SqlRow, TheDigest_IsOfSubjectAndPayloadAlone) {
  DueRecord record;
  record.envelope.subject = "a";
  record.envelope.payload = {'b'};
  const Delivery delivery{&record, "msg:1"};
  const SqlTable table = [] {
    SqlTable plain = refunds();
    plain.columns.clear();
    return plain;
  }();
  const auto digest_of = [&] {
    return to_hex(std::get<SqlRow>(sql_row(SqlDialect::postgres, table, "s", delivery, 0)).digest);
  };
  const std::string first = digest_of();
  // printf '\1\0\0\0\0\0\0\0ab' | b2sum -l 256
  EXPECT_EQ(first, "d416e2b661b731aa289c563bb49a50308cd289c3df1cbb948c87b44615b8e296");
  record.envelope.headers = {{"Trace", "1"}};
  EXPECT_EQ(digest_of(), first);
  record.envelope.payload = {'c'};
  EXPECT_NE(digest_of(), first);
}

// --- Refusals

std::string state_of(SqlDialect dialect, const SqlRefusal& refusal) {
  const SqlMeaning meaning = meaning_of(dialect, refusal, {"amount"});
  const char* who = meaning.blame == SqlBlame::session ? "session " : meaning.blame == SqlBlame::all ? "all " : "one ";
  const Outcome& outcome = meaning.outcome;
  return who + std::string(outcome.kind == OutcomeKind::rejected ? reason_text(outcome.reason) : outcome.state);
}

TEST(SqlRefusal, WhatIsNotKnown_IsTriedAgain_AndBlamesNobody) {
  for (const char* state : {"", "P0001", "XX000", "99999", "24000"}) {
    SqlRefusal refusal;
    refusal.state = state;
    EXPECT_EQ(state_of(SqlDialect::postgres, refusal), "one unknown_error") << state;
  }
  for (const int number : {0, 1, 1030, 1644, 1999, 9999}) {
    SqlRefusal refusal;
    refusal.number = number;
    EXPECT_EQ(state_of(SqlDialect::mysql, refusal), "one unknown_error") << number;
  }
}

TEST(SqlRefusal, AColumnThatWeDoNotWrite_BlamesTheTable) {
  SqlRefusal refusal{"23502", 0, "amount", "", ""};
  EXPECT_EQ(state_of(SqlDialect::postgres, refusal), "one rejected");
  refusal.column = "must";
  EXPECT_EQ(state_of(SqlDialect::postgres, refusal), "all column_mismatch");
}

TEST(SqlRefusal, ARowThatNoPartitionTakes_WaitsForOne) {
  SqlRefusal refusal{"23514", 0, "", "", ""};
  EXPECT_EQ(state_of(SqlDialect::postgres, refusal), "one no_partition");
  refusal.constraint = "small";
  EXPECT_EQ(state_of(SqlDialect::postgres, refusal), "one rejected");
}

TEST(SqlRefusal, Postgres_ByItsClasses) {
  const std::pair<const char*, const char*> all[] = {{"08006", "session "},
                                                     {"57P01", "session "},
                                                     {"28P01", "session credentials_refused"},
                                                     {"3D000", "session no_database"},
                                                     {"53300", "session no_resources"},
                                                     {"53100", "all disk_full"},
                                                     {"53200", "all no_resources"},
                                                     {"25006", "all read_only"},
                                                     {"40001", "all contended"},
                                                     {"40P01", "all contended"},
                                                     {"42P01", "all no_table"},
                                                     {"42703", "all no_column"},
                                                     {"42501", "one no_privilege"},
                                                     {"42P10", "all no_unique_key"},
                                                     {"42601", "all statement_refused"},
                                                     {"22001", "one rejected"},
                                                     {"22P02", "one rejected"},
                                                     {"23505", "one exists_otherwise"},
                                                     {"23503", "one parent_missing"},
                                                     {"54000", "one oversize"}};
  for (const auto& [state, meant] : all) {
    SqlRefusal refusal;
    refusal.state = state;
    EXPECT_EQ(state_of(SqlDialect::postgres, refusal), meant) << state;
  }
}

TEST(SqlRefusal, Mysql_ByItsNumbers) {
  const std::pair<int, const char*> all[] = {{1053, "session "},
                                             {1045, "session credentials_refused"},
                                             {1049, "session no_database"},
                                             {1040, "session no_resources"},
                                             {1213, "all contended"},
                                             {1205, "all contended"},
                                             {1290, "all read_only"},
                                             {1114, "all disk_full"},
                                             {1146, "all no_table"},
                                             {1054, "all no_column"},
                                             {1364, "all column_mismatch"},
                                             {1406, "one rejected"},
                                             {1366, "one rejected"},
                                             {1264, "one rejected"},
                                             {1048, "one rejected"},
                                             {4025, "one rejected"},
                                             {1062, "one exists_otherwise"},
                                             {1452, "one parent_missing"}};
  for (const auto& [number, meant] : all) {
    SqlRefusal refusal;
    refusal.number = number;
    EXPECT_EQ(state_of(SqlDialect::mysql, refusal), meant) << number;
  }
}

// Those of the tables, which the house's own test of codes does not see.
TEST(SqlRefusal, EveryCode_HasItsText_AndItsRowInTheTable) {
  std::ifstream file(HOLDFAST_SOURCE_DIR "/docs/targets.md");
  std::ostringstream documented;
  documented << file.rdbuf();
  for (const SqlDialect dialect : {SqlDialect::postgres, SqlDialect::mysql}) {
    for (const SqlRule& rule : sql_rules(dialect)) {
      const std::string code = rule.code;
      EXPECT_EQ(rule.kind == OutcomeKind::rejected, rule.reason != Reason::none) << rule.state << rule.number;
      if (rule.blame == SqlBlame::session && !code.empty()) {
        EXPECT_EQ(code_of(Error{ErrorKind::unavailable, code + ": x"}), code);
      }
      if (code.empty()) continue;
      EXPECT_NE(code_text(code), "") << code;
      EXPECT_NE(documented.str().find('`' + code + '`'), std::string::npos) << code;
    }
    for (const SqlRule& rule : sql_rules(dialect)) {
      const std::string named = dialect == SqlDialect::mysql ? std::to_string(rule.number) : rule.state;
      EXPECT_NE(documented.str().find(named), std::string::npos) << named;
    }
  }
}

}  // namespace
}  // namespace holdfast
