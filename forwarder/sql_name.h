// Names of tables and columns: what may be one, and how it stands in a statement. Nothing else of a configuration ever
// becomes the text of a statement; what records hold never does. Pure.
#pragma once

#include <string>
#include <string_view>

#include "forwarder/sql_options.h"

namespace holdfast {

// A letter or underscore, then letters, digits, underscores; ASCII, at most 63 bytes (PostgreSQL, "Identifiers and Key
// Words"; MariaDB takes 64). A table may have the name of its schema (MariaDB: database) before it, with a dot.
bool valid_sql_name(std::string_view name);
bool valid_sql_table(std::string_view name);

// In the dialect's quotes, part by part: taken as it is written, case included.
std::string quoted(SqlDialect dialect, std::string_view name);

struct SqlTableName {
  std::string schema;  // empty: the connection's own
  std::string table;
};
SqlTableName split_table(std::string_view name);

}  // namespace holdfast
