// [[target]] of type "postgres" or "mysql" in the configuration file: the server, and [[target.table]], one for each
// table, with the rules between their values.
#pragma once

#include "appliance/config.h"
#include "appliance/config_table.h"

namespace holdfast {

SqlTargetConfig read_sql(ConfigTable& in, SqlDialect dialect);

// What would surprise, and is no error.
void check_sql(const SqlTargetConfig& sql, int line, Findings& findings);

}  // namespace holdfast
