// The door to PostgreSQL (libpq, which postgres_connection.cc alone knows).
//
// A session writes through to the disk of the server before a COMMIT is answered (synchronous_commit at least "on"),
// and a server that loses us in the middle of a transaction ends it soon. A COMMIT that the server warns of (it gave up
// waiting for its standby) is not believed: SqlRows::tag is empty then.
#pragma once

#include "forwarder/sql_connection.h"
#include "forwarder/sql_options.h"

namespace holdfast {

OpenSql open_postgres(SqlServer server);

}  // namespace holdfast
