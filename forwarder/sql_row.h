// What a record gives to a table: its keys, its digest, a value for each column. Pure.
#pragma once

#include <array>
#include <string>
#include <variant>
#include <vector>

#include "forwarder/sql_connection.h"
#include "forwarder/sql_options.h"
#include "forwarder/target.h"

namespace holdfast {

// The column that tells one content from another under the same key.
inline constexpr const char* kDigestColumn = "content_digest";

struct SqlRow {
  std::size_t place = 0;  // of the record in its window
  std::string key;        // of the delivery, as it travels
  std::string effect;     // the effect's own key, likewise; empty: the table has none
  // BLAKE2b-256 of the subject's length (8 bytes, little-endian), the subject and the payload: so that anybody with the
  // message can recompute it. Headers do not count: another arrival of the same message may have others.
  std::array<std::uint8_t, 32> digest{};
  std::vector<SqlValue> values;  // one a column; may borrow from the record
  std::size_t bytes = 0;         // of all that
};

// The row, or why the record can never be one: a value that is required and not there, a field that is no value, text
// that is not UTF-8 or holds a NUL (PostgreSQL has no such text). A field that is missing or null is NULL.
std::variant<SqlRow, Outcome> sql_row(SqlDialect dialect, const SqlTable& table, const std::string& site,
                                      const Delivery& delivery, std::size_t place);

}  // namespace holdfast
