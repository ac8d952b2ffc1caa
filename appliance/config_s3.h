// [[target]] of type "s3": its keys, and what they must be.
#pragma once

#include "appliance/config.h"
#include "appliance/config_table.h"

namespace holdfast {

S3TargetConfig read_s3(ConfigTable& in);
// Rules between its values.
void check_s3(const TargetConfig& target, const S3TargetConfig& s3, Findings& findings);

}  // namespace holdfast
