// Sources and targets as the configuration describes them. Making one connects to nothing: what is not there yet is
// waited for by the thing itself.
#pragma once

#include <memory>
#include <string>

#include "appliance/config.h"
#include "appliance/source.h"
#include "forwarder/target.h"

namespace holdfast {

// `spool` outlives it: the source asks it where the stream stood.
std::unique_ptr<Source> make_source(const SourceConfig& config, Spool& spool);
// `site`: what upstream is told (the configuration's, not the one in keys).
std::unique_ptr<Target> make_target(const TargetConfig& config, const std::string& site);

}  // namespace holdfast
