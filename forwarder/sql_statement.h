// The statements of a batch, as text with places for values: names come from the configuration and are quoted, values
// are never in it. Pure.
//
// Which rows are new is for the database to say, by its unique constraint. PostgreSQL says it itself (ON CONFLICT DO
// NOTHING RETURNING). MariaDB's INSERT IGNORE would do the same and hide every other error of the row as a warning, a
// cut-off string included; so there it is a plain INSERT, all or nothing, and only after it was refused for a duplicate
// the keys that are there are asked for, and the others inserted (sql_batch.h).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "forwarder/sql_options.h"

namespace holdfast {

// No statement has more (the protocols count them in 16 bits).
inline constexpr std::size_t kMostValues = 65535;

// (Columns and table of an INSERT.)
struct SqlInto {
  std::string table;
  std::vector<std::string> columns;
};

// What the rows of `table` are made of, in the order of their values: the effect's key, the digest, the columns.
SqlInto into_table(const SqlTable& table);
// Likewise for its inbox.
SqlInto into_inbox(const SqlTable& table, bool digest);

std::string insert_statement(SqlDialect dialect, const SqlInto& into, std::size_t rows);
// Rows whose `key` is there already stay out. PostgreSQL: returns the keys of those that went in. MariaDB: fails as a
// whole when one is there.
std::string insert_new_statement(SqlDialect dialect, const SqlInto& into, const std::string& key, std::size_t rows);
// No two of the rows may have the same key.
std::string upsert_statement(SqlDialect dialect, const SqlTable& table, std::size_t rows);
// The keys that are there, of so many, and their digests in hexadecimal, if those are wanted.
std::string existing_statement(SqlDialect dialect, const std::string& table, const std::string& key, bool digest,
                               std::size_t keys);

}  // namespace holdfast
