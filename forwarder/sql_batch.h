// One transaction: the rows of one batch into one table, and what became of each.
//
// The claim and the effect are in the same transaction, so that neither is there without the other. Outcomes are known
// only when the COMMIT was answered: an error before that says that nothing is known, and the next try finds by the
// keys what was done.
#pragma once

#include <span>
#include <variant>
#include <vector>

#include "forwarder/sql_connection.h"
#include "forwarder/sql_refusal.h"
#include "forwarder/sql_row.h"

namespace holdfast {

struct SqlBatch {
  SqlDialect dialect = SqlDialect::postgres;
  const SqlTable* table = nullptr;
  bool inbox_digest = false;  // the inbox has the column
  std::span<const SqlRow> rows;
};

// One outcome a row; or what the refusal of the whole means, which was rolled back.
using SqlCarried = std::variant<std::vector<Outcome>, SqlMeaning>;
Result<SqlCarried> carry(SqlConnection& connection, const SqlBatch& batch);

}  // namespace holdfast
