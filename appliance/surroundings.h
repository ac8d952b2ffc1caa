// Whether this machine can give what the configuration asks for: the key, the files it names, room on the disk. Looks
// only, changes nothing.
#pragma once

#include "appliance/config.h"
#include "appliance/config_finding.h"

namespace holdfast {

// An error is what `holdfast run` would refuse; a warning what may still come, or cannot be seen by this user.
void check_surroundings(const Config& config, Findings& findings);

}  // namespace holdfast
