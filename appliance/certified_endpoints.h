// Targets as certification tries them out: one function for each kind.
#pragma once

#include <string>

#include "appliance/config.h"
#include "forwarder/certified_target.h"

namespace holdfast {

// With records on that subject. Each target that it makes is another process's, as far as the upstream can tell.
CertifiedTarget make_certified_target(const TargetConfig& config, const std::string& site, const std::string& subject);

}  // namespace holdfast
