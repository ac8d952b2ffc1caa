// What the tables of a database hold of given records, asked for over a session of its own (readback.h).
//
// A record's rows are found by the effect's key; in a table without one by a column that holds the key of the delivery,
// and where there is none either, its claim in the inbox stands for them. Their content is compared with a column of
// the payload, else with the digest; where there is neither they count as sent.
#pragma once

#include <memory>

#include "forwarder/readback.h"
#include "forwarder/sql_options.h"

namespace holdfast {

std::unique_ptr<Readback> make_postgres_readback(SqlTargetOptions options);
std::unique_ptr<Readback> make_mysql_readback(SqlTargetOptions options);

}  // namespace holdfast
