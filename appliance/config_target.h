// [[target]] of the configuration file: what every target has, and what each type adds.
#pragma once

#include "appliance/config.h"
#include "appliance/config_table.h"

namespace holdfast {

TargetConfig read_target(ConfigTable& in);
// How a NATS server is reached: of a target and of a source.
void read_address(ConfigTable& in, NatsAddress& address);

}  // namespace holdfast
