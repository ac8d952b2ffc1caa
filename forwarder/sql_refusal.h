// What a database's refusal means: one table for each, by SQLSTATE or by MariaDB's number, sorted by what could make
// the record succeed later (docs/targets.md). What is in no table is tried again and says so; it is never a verdict on
// a record. Pure.
//
// Sources: PostgreSQL, "PostgreSQL Error Codes"; MariaDB, "MariaDB Error Codes".
#pragma once

#include <span>
#include <string>
#include <vector>

#include "forwarder/outcome.h"
#include "forwarder/sql_connection.h"
#include "forwarder/sql_options.h"

namespace holdfast {

// Who is to blame, as far as the refusal tells.
enum class SqlBlame : std::uint8_t {
  session,  // nothing is known, and the session is over
  all,      // the refusal is every record's of the batch
  one,      // it may be one record's alone: found out by sending less
};

struct SqlRule {
  const char* state;  // PostgreSQL: the beginning of the SQLSTATE; the first rule that fits counts
  int number;         // MariaDB
  SqlBlame blame;
  OutcomeKind kind;
  const char* code;  // of a session that is over: what its Error begins with, "" for "unreachable"
  Reason reason = Reason::none;
};
std::span<const SqlRule> sql_rules(SqlDialect dialect);

struct SqlMeaning {
  SqlBlame blame = SqlBlame::one;
  Outcome outcome;
};

// `written`: the columns that we give values. A column that must have a value and gets none from us is the table's
// trouble, not the record's.
SqlMeaning meaning_of(SqlDialect dialect, const SqlRefusal& refusal, const std::vector<std::string>& written);

// Of one with SqlBlame::session, and of any refusal where no record is at stake.
Error session_error(SqlDialect dialect, const SqlRefusal& refusal);

// A unique constraint refused a row.
bool is_unique_violation(SqlDialect dialect, const SqlRefusal& refusal);

}  // namespace holdfast
