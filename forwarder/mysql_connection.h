// The door to MariaDB (libmariadb, which mysql_connection.cc alone knows).
//
// Statements with values are prepared, and kept prepared: its text protocol has a third of the speed, and would have us
// escape. A session is strict (a value that does not fit is an error, on every engine), in UTC, and reads what is
// committed. With TLS the certificate is compared with the name that is connected to.
#pragma once

#include "forwarder/sql_connection.h"
#include "forwarder/sql_options.h"

namespace holdfast {

OpenSql open_mysql(SqlServer server);

}  // namespace holdfast
