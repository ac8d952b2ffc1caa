#include "forwarder/sql_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "forwarder/sql_name.h"
#include "forwarder/sql_row.h"
#include "spool/ascii.h"

namespace holdfast {
namespace {

// Sources: PostgreSQL, "System Catalogs"; MariaDB, "Information Schema Tables". An index that is partial, on an
// expression, not valid, or checked only at the commit (deferrable) arbitrates nothing.
constexpr const char* kAskPostgres =
    "SELECT a.attname,"
    " CASE WHEN (t.typname = 'text' OR (t.typname = 'varchar' AND (a.atttypmod = -1 OR a.atttypmod >= 204)))"
    " AND coalesce(l.collisdeterministic, true) THEN 'y' ELSE 'n' END,"
    " CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid"
    " AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL AND i.indnkeyatts = 1"
    " AND i.indkey[0] = a.attnum) THEN 'y' ELSE 'n' END,"
    " CASE WHEN c.relpersistence = 'p' AND c.relkind IN ('r', 'p', 'v') THEN 'y' ELSE 'n' END,"
    " 'n'"
    " FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid"
    " JOIN pg_catalog.pg_type t ON t.oid = a.atttypid"
    " LEFT JOIN pg_catalog.pg_collation l ON l.oid = a.attcollation"
    " WHERE c.oid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped";

// An index on the beginning of a column (SUB_PART) takes two keys for one. A number that the table gives itself
// conflicts with nothing that is sent.
constexpr const char* kAskMysql =
    "SELECT c.COLUMN_NAME,"
    " IF(c.CHARACTER_MAXIMUM_LENGTH >= 200 AND (c.DATA_TYPE = 'varbinary'"
    " OR (c.DATA_TYPE IN ('varchar', 'char') AND c.COLLATION_NAME LIKE '%\\_bin')), 'y', 'n'),"
    " IF(EXISTS (SELECT 1 FROM information_schema.STATISTICS s WHERE s.TABLE_SCHEMA = c.TABLE_SCHEMA"
    " AND s.TABLE_NAME = c.TABLE_NAME AND s.NON_UNIQUE = 0 GROUP BY s.INDEX_NAME HAVING COUNT(*) = 1"
    " AND MAX(s.COLUMN_NAME) = c.COLUMN_NAME AND MAX(s.SUB_PART) IS NULL), 'y', 'n'),"
    " IF(e.TRANSACTIONS = 'YES', 'y', 'n'),"
    " IF(EXISTS (SELECT 1 FROM information_schema.STATISTICS s JOIN information_schema.COLUMNS o"
    " ON o.TABLE_SCHEMA = s.TABLE_SCHEMA AND o.TABLE_NAME = s.TABLE_NAME AND o.COLUMN_NAME = s.COLUMN_NAME"
    " WHERE s.TABLE_SCHEMA = c.TABLE_SCHEMA AND s.TABLE_NAME = c.TABLE_NAME AND s.NON_UNIQUE = 0"
    " GROUP BY s.INDEX_NAME HAVING SUM(s.COLUMN_NAME = c.COLUMN_NAME) = 0"
    " AND SUM(o.EXTRA LIKE '%auto_increment%') = 0), 'y', 'n')"
    " FROM information_schema.COLUMNS c JOIN information_schema.TABLES t"
    " ON t.TABLE_SCHEMA = c.TABLE_SCHEMA AND t.TABLE_NAME = c.TABLE_NAME"
    " LEFT JOIN information_schema.ENGINES e ON e.ENGINE = t.ENGINE"
    " WHERE c.TABLE_SCHEMA = COALESCE(?, DATABASE()) AND c.TABLE_NAME = ?";

std::string key_type(SqlDialect dialect) {
  return dialect == SqlDialect::postgres ? "text COLLATE \"C\"" : "VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin";
}

std::string digest_type(SqlDialect dialect) {
  return dialect == SqlDialect::postgres ? "bytea" : "BINARY(32)";
}

std::string column_type(SqlDialect dialect, const SqlColumn& column) {
  if (!column.type.empty()) return column.type;
  const bool postgres = dialect == SqlDialect::postgres;
  switch (column.source) {
    case ColumnSource::payload:
      return postgres ? "bytea" : "LONGBLOB";
    case ColumnSource::payload_text:
    case ColumnSource::field:
    case ColumnSource::header:
      return postgres ? "text" : "LONGTEXT";
    case ColumnSource::key:
      return key_type(dialect);
    case ColumnSource::stream_sequence:
    case ColumnSource::spool_sequence:
    case ColumnSource::timestamp_ns:
      return postgres ? "bigint" : "BIGINT";
    case ColumnSource::timestamp:
    case ColumnSource::accepted_at:
      return postgres ? "timestamptz" : "DATETIME(6)";
    case ColumnSource::priority:
      return postgres ? "smallint" : "SMALLINT";
    case ColumnSource::subject:
      return postgres ? "text" : "VARCHAR(1024)";
    case ColumnSource::site:
    case ColumnSource::source:
    case ColumnSource::stream:
    case ColumnSource::clock:
      return postgres ? "text" : "VARCHAR(255)";
  }
  return "";
}

std::string end_of_table(SqlDialect dialect) {
  return dialect == SqlDialect::postgres ? "\n);\n" : "\n) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;\n";
}

std::string inbox_schema(SqlDialect dialect, const std::string& inbox) {
  const bool postgres = dialect == SqlDialect::postgres;
  const auto name = [&](const char* column) { return quoted(dialect, column); };
  return fmt::format("CREATE TABLE {} (\n  {} {} NOT NULL PRIMARY KEY,\n  {} {},\n  {} {}{}", quoted(dialect, inbox),
                     name(kInboxKey), key_type(dialect), name(kDigestColumn), digest_type(dialect), name("taken_at"),
                     postgres ? "timestamptz NOT NULL DEFAULT now()" : "TIMESTAMP(6) NOT NULL DEFAULT NOW(6)",
                     end_of_table(dialect));
}

std::string table_schema(SqlDialect dialect, const SqlTable& table) {
  std::string out = "CREATE TABLE " + quoted(dialect, table.name) + " (";
  const char* comma = "\n  ";
  const auto add = [&](const std::string& name, const std::string& type, const char* rest) {
    out.append(comma).append(quoted(dialect, name)).append(" ").append(type).append(rest);
    comma = ",\n  ";
  };
  if (table.effect_key) add(table.effect_column, key_type(dialect), " NOT NULL PRIMARY KEY");
  if (table.mode == SqlMode::insert) add(kDigestColumn, digest_type(dialect), " NOT NULL");
  for (const SqlColumn& column : table.columns)
    add(column.name, column_type(dialect, column), column.required ? " NOT NULL" : "");
  return out + end_of_table(dialect);
}

bool same_name(SqlDialect dialect, const std::string& a, const std::string& b) {
  return dialect == SqlDialect::mysql ? equal_ignoring_case(a, b) : a == b;
}

const SqlColumnFact* find_fact(SqlDialect dialect, const std::vector<SqlColumnFact>& facts, const std::string& name) {
  const auto found = std::ranges::find_if(facts, [&](const auto& fact) { return same_name(dialect, fact.name, name); });
  return found == facts.end() ? nullptr : &*found;
}

}  // namespace

std::string sql_schema(SqlDialect dialect, const std::vector<SqlTable>& tables) {
  std::set<std::string> made;
  std::string out;
  const auto add = [&](const std::string& name, const std::string& text) {
    if (made.insert(name).second) out += (out.empty() ? "" : "\n") + text;
  };
  for (const SqlTable& table : tables) {
    if (table.mode == SqlMode::inbox) add(table.inbox, inbox_schema(dialect, table.inbox));
    add(table.name, table_schema(dialect, table));
  }
  return out;
}

SqlQuestion table_question(SqlDialect dialect, const std::string& table) {
  SqlQuestion question;
  if (dialect == SqlDialect::postgres) {
    question.statement = kAskPostgres;
    question.values.push_back(sql_text(quoted(dialect, table)));
    return question;
  }
  const SqlTableName name = split_table(table);
  question.statement = kAskMysql;
  question.values.push_back(name.schema.empty() ? sql_null() : sql_text(name.schema));
  question.values.push_back(sql_text(name.table));
  return question;
}

std::vector<SqlColumnFact> table_facts(const SqlRows& answer) {
  constexpr std::size_t kCells = 5;
  std::vector<SqlColumnFact> facts;
  for (const auto& row : answer.rows) {
    if (row.size() != kCells || !row[0]) continue;
    const auto yes = [&row](std::size_t cell) { return row[cell] == "y"; };
    facts.push_back({*row[0], yes(1), yes(2), yes(3), yes(4)});
  }
  return facts;
}

std::optional<Outcome> table_trouble(SqlDialect dialect, const std::vector<SqlColumnFact>& facts,
                                     const std::vector<std::string>& written, const std::string& key, bool only_key) {
  if (facts.empty()) return hold_lane("no_table");
  if (!facts.front().durable) return hold_lane("table_not_transactional");
  for (const std::string& name : written) {
    if (!has_column(dialect, facts, name)) return hold_lane("no_column");
  }
  if (key.empty()) return std::nullopt;
  const SqlColumnFact* fact = find_fact(dialect, facts, key);
  if (fact == nullptr) return hold_lane("no_column");
  if (!fact->unique) return hold_lane("no_unique_key");
  if (!fact->exact) return hold_lane("key_not_exact");
  if (only_key && fact->other_unique) return hold_lane("other_unique_key");
  return std::nullopt;
}

bool has_column(SqlDialect dialect, const std::vector<SqlColumnFact>& facts, const std::string& name) {
  return find_fact(dialect, facts, name) != nullptr;
}

}  // namespace holdfast
