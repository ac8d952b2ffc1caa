// What a configuration must be beyond its syntax: names that can be shown, places that can be reached, values that
// agree with each other. Pure.
#pragma once

#include <string_view>

#include "appliance/config.h"
#include "appliance/config_finding.h"

namespace holdfast {

// Nothing when the value is right, otherwise what is right: "must be an absolute path".
using TextRule = const char* (*)(std::string_view value);
const char* name_rule(std::string_view value);  // of a source, a target
const char* site_rule(std::string_view value);
const char* path_rule(std::string_view value);
const char* socket_rule(std::string_view value);
const char* nats_name_rule(std::string_view value);  // of a stream, a consumer
const char* nats_url_rule(std::string_view value);
const char* pattern_rule(std::string_view value);
const char* subject_rule(std::string_view value);
const char* subject_template_rule(std::string_view value);
const char* bucket_rule(std::string_view value);
const char* key_template_rule(std::string_view value);  // without wildcards
const char* deliver_policy_rule(std::string_view value);
const char* time_rule(std::string_view value);
const char* duration_rule(std::string_view value);
const char* credential_rule(std::string_view value);

// Rules between values. Names and routes are errors; what would surprise is a warning: routes that nothing reaches,
// subjects that no route takes.
void check_rules(const Config& config, Findings& findings);

}  // namespace holdfast
