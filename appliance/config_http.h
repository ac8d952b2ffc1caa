// [[target]] of type "http": its keys, and what they must be.
#pragma once

#include "appliance/config.h"
#include "appliance/config_table.h"

namespace holdfast {

HttpTargetConfig read_http(ConfigTable& in);
// Rules between its values.
void check_http(const TargetConfig& target, const HttpTargetConfig& http, Findings& findings);

// https to anywhere, http to this machine alone; no login, no fragment.
const char* http_url_rule(std::string_view value);
const char* proxy_rule(std::string_view value);

}  // namespace holdfast
