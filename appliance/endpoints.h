// Sources and targets as the configuration describes them. Making one connects to nothing: what is not there yet is
// waited for by the thing itself.
#pragma once

#include <memory>
#include <string>

#include "appliance/config.h"
#include "appliance/dead_letters.h"
#include "appliance/source.h"
#include "forwarder/certified_target.h"
#include "forwarder/target.h"

namespace holdfast {

// `spool` outlives it: the source asks it where the stream stood.
std::unique_ptr<Source> make_source(const SourceConfig& config, Spool& spool);
// `site`, here and below: what others are told (the configuration's, not the one in keys).
std::unique_ptr<DeadLetters> make_dead_letters(const SourceConfig& config, const std::string& site);
std::unique_ptr<Target> make_target(const TargetConfig& config, const std::string& site);
// As certification tries it out, with records on that subject. Each target that it makes is another process's, as far
// as the upstream can tell.
CertifiedTarget make_certified_target(const TargetConfig& config, const std::string& site, const std::string& subject);

}  // namespace holdfast
