#include "forwarder/sql_statement.h"

#include <fmt/format.h>

#include <utility>

#include "forwarder/sql_name.h"
#include "forwarder/sql_row.h"
#include "forwarder/sql_schema.h"

namespace holdfast {
namespace {

void append_place(std::string& out, SqlDialect dialect, std::size_t number) {
  if (dialect == SqlDialect::mysql) {
    out.push_back('?');
  } else {
    fmt::format_to(std::back_inserter(out), "${}", number);
  }
}

// "(?, ?)", its places numbered from `first`.
void append_places(std::string& out, SqlDialect dialect, std::size_t first, std::size_t count) {
  out.push_back('(');
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) out.push_back(',');
    append_place(out, dialect, first + i);
  }
  out.push_back(')');
}

// PostgreSQL: only where what is there is not newer. NULL is older than everything.
std::string postgres_update(const SqlTable& table) {
  const auto name = [](const std::string& column) { return quoted(SqlDialect::postgres, column); };
  std::string out = " ON CONFLICT (" + name(table.effect_column) + ") DO UPDATE SET ";
  for (const SqlColumn& column : table.columns) {
    if (&column != &table.columns.front()) out += ", ";
    out += name(column.name) + " = excluded." + name(column.name);
  }
  if (table.version_column.empty()) return out;
  const std::string version = name(table.version_column);
  return out + fmt::format(" WHERE held.{0} IS NULL OR excluded.{0} >= held.{0}", version);
}

// MariaDB assigns from left to right, and later assignments see the earlier: the version goes last.
std::string mysql_update(const SqlTable& table) {
  const auto name = [](const std::string& column) { return quoted(SqlDialect::mysql, column); };
  const std::string version = table.version_column.empty() ? "" : name(table.version_column);
  std::string out, last;
  for (const SqlColumn& column : table.columns) {
    const std::string it = name(column.name);
    std::string value = "VALUES(" + it + ")";
    if (!version.empty()) value = fmt::format("IF({0} IS NULL OR VALUES({0}) >= {0}, {1}, {2})", version, value, it);
    std::string& where = column.name == table.version_column ? last : out;
    where += (out.empty() && &where == &out ? "" : ", ") + it + " = " + value;
  }
  if (out.empty() && !last.empty()) last.erase(0, 2);
  return " ON DUPLICATE KEY UPDATE " + out + last;
}

std::string insert_as(SqlDialect dialect, const SqlInto& into, std::size_t rows, const std::string& alias) {
  std::string out = "INSERT INTO " + quoted(dialect, into.table) + alias + " (";
  for (const std::string& column : into.columns) {
    if (&column != &into.columns.front()) out += ", ";
    out += quoted(dialect, column);
  }
  out += ") VALUES ";
  const std::size_t columns = into.columns.size();
  for (std::size_t row = 0; row < rows; ++row) {
    if (row > 0) out.push_back(',');
    append_places(out, dialect, row * columns + 1, columns);
  }
  return out;
}

}  // namespace

SqlInto into_table(const SqlTable& table) {
  SqlInto into{table.name, {}};
  if (table.effect_key) into.columns.push_back(table.effect_column);
  if (table.mode == SqlMode::insert) into.columns.emplace_back(kDigestColumn);
  for (const SqlColumn& column : table.columns) into.columns.push_back(column.name);
  return into;
}

SqlInto into_inbox(const SqlTable& table, bool digest) {
  SqlInto into{table.inbox, {kInboxKey}};
  if (digest) into.columns.emplace_back(kDigestColumn);
  return into;
}

std::string insert_statement(SqlDialect dialect, const SqlInto& into, std::size_t rows) {
  return insert_as(dialect, into, rows, "");
}

std::string insert_new_statement(SqlDialect dialect, const SqlInto& into, const std::string& key, std::size_t rows) {
  std::string out = insert_statement(dialect, into, rows);
  if (dialect == SqlDialect::mysql) return out;
  const std::string name = quoted(dialect, key);
  return out + fmt::format(" ON CONFLICT ({0}) DO NOTHING RETURNING {0}", name);
}

std::string upsert_statement(SqlDialect dialect, const SqlTable& table, std::size_t rows) {
  const bool postgres = dialect == SqlDialect::postgres;
  return insert_as(dialect, into_table(table), rows, postgres ? " AS held" : "") +
         (postgres ? postgres_update(table) : mysql_update(table));
}

std::string existing_statement(SqlDialect dialect, const std::string& table, const std::string& key, bool digest,
                               std::size_t keys) {
  const std::string name = quoted(dialect, key);
  std::string out = "SELECT " + name;
  const bool postgres = dialect == SqlDialect::postgres;
  const std::string column = quoted(dialect, kDigestColumn);
  if (digest) out += postgres ? ", encode(" + column + ", 'hex')" : ", LOWER(HEX(" + column + "))";
  out += " FROM " + quoted(dialect, table) + " WHERE " + name + " IN ";
  append_places(out, dialect, 1, keys);
  return out;
}

}  // namespace holdfast
