// The seam to a database: a session, and one statement after the other. What PostgreSQL and MariaDB have in common;
// what a statement says is not this one's business, nor what an answer means for a record (sql_refusal.h).
//
// Every call returns within the limits of its SqlServer, and soon after abort(). An error is `unavailable` and says
// that nothing is known: the statement may have been carried out. It is the session's end; alive() is false from then
// on. The texts of errors are ours, and begin with their code where they have one (code.h).
//
// Threads: one at a time; abort() from any, at any time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "crypto/bytes.h"
#include "spool/result.h"

namespace holdfast {

// A parameter. Text is UTF-8 without a NUL and converted by the server to the column's type; bytes are taken as they
// are. Text that is borrowed has a NUL behind it.
struct SqlValue {
  enum class Form : std::uint8_t { null, text, bytes };
  Form form = Form::null;
  std::string own;    // what it holds, unless
  ByteView borrowed;  // it is somebody else's, who outlives the statement

  ByteView view() const { return borrowed.data() != nullptr ? borrowed : as_bytes(own); }
};

inline SqlValue sql_null() {
  return {};
}
inline SqlValue sql_text(std::string text) {
  return {SqlValue::Form::text, std::move(text), {}};
}
inline SqlValue sql_bytes(ByteView borrowed) {
  return {SqlValue::Form::bytes, {}, borrowed};
}
// The same value, borrowed from one that outlives it.
inline SqlValue sql_lent(const SqlValue& value) {
  return {value.form, {}, value.view()};
}

// The server's refusal of a statement.
struct SqlRefusal {
  std::string state;   // SQLSTATE
  int number = 0;      // MariaDB's error number
  std::string column;  // that it names, if it does; and a constraint, likewise
  std::string constraint;
  std::string words;  // its own, at most 1 KiB: only for Outcome::words
};

using SqlCell = std::optional<std::string>;
struct SqlRows {
  std::vector<std::vector<SqlCell>> rows;
  std::string tag;  // PostgreSQL's word for what was done, without a warning
};

using SqlAnswer = std::variant<SqlRows, SqlRefusal>;

class SqlConnection {
 public:
  virtual ~SqlConnection() = default;
  virtual Result<SqlAnswer> run(const std::string& statement, std::span<const SqlValue> values) = 0;
  // False also when the peer has ended it since the last statement.
  virtual bool alive() = 0;
  virtual void abort() = 0;
  // Of one statement with its values; what is longer would end the session.
  virtual std::size_t max_statement() const = 0;
};

// Opens a session, with its limits set; sooner over when a stop is requested.
using OpenSql = std::function<Result<std::unique_ptr<SqlConnection>>(const std::stop_token& stop)>;

}  // namespace holdfast
