// The tables that a target needs: how they are made, and what is asked of those that are there. Pure.
//
// What a table must have (docs/targets.md): a transactional engine that survives a crash; the columns that are written;
// and, for each key that arbitrates, a unique constraint of exactly that column, whose type compares byte by byte and
// holds 200 of them. Keys are ASCII without spaces.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "forwarder/outcome.h"
#include "forwarder/sql_connection.h"
#include "forwarder/sql_options.h"

namespace holdfast {

inline constexpr const char* kInboxKey = "message_id";
inline constexpr std::size_t kKeyBytes = 200;  // of a key as it travels (wire_key)

// CREATE TABLE statements for everything that the tables name, each once. For an operator to read, change and run.
std::string sql_schema(SqlDialect dialect, const std::vector<SqlTable>& tables);

// A question about a table, and its values.
struct SqlQuestion {
  std::string statement;
  std::vector<SqlValue> values;
};
SqlQuestion table_question(SqlDialect dialect, const std::string& table);

// What the answer says of one column.
struct SqlColumnFact {
  std::string name;
  bool exact = false;         // compares byte by byte and holds a key
  bool unique = false;        // by a constraint that is its own
  bool durable = false;       // the table's engine
  bool other_unique = false;  // the table has another unique constraint, which does not hold this column
};
std::vector<SqlColumnFact> table_facts(const SqlRows& answer);

// Why a table with these facts cannot take rows of `written`; nothing: it can. `key`: the column that arbitrates, empty
// where none does. `only_key`: no other constraint may.
std::optional<Outcome> table_trouble(SqlDialect dialect, const std::vector<SqlColumnFact>& facts,
                                     const std::vector<std::string>& written, const std::string& key, bool only_key);
// Whether there is such a column.
bool has_column(SqlDialect dialect, const std::vector<SqlColumnFact>& facts, const std::string& name);

}  // namespace holdfast
