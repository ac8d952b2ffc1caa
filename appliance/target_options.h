// What each kind of target is made with, from its part of the configuration. Pure.
//
// `name` is the target's, `site` what others are told (the configuration's, not the one in keys).
#pragma once

#include <string>

#include "appliance/config.h"
#include "forwarder/archive_target.h"
#include "forwarder/file_target.h"
#include "forwarder/http_target.h"
#include "forwarder/nats_target.h"
#include "forwarder/s3_target.h"
#include "forwarder/sql_target.h"

namespace holdfast {

NatsOptions nats_options(const NatsAddress& address, const std::string& name);

NatsTargetOptions target_options(const NatsTargetConfig& config, const std::string& name, const std::string& site);
FileTargetOptions target_options(const FileTargetConfig& config, const std::string& name, const std::string& site);
ArchiveOptions archive_options(const FileTargetConfig& config, const std::string& name, const std::string& site);
HttpTargetOptions target_options(const HttpTargetConfig& config, const std::string& name, const std::string& site);
S3TargetOptions target_options(const S3TargetConfig& config, const std::string& name, const std::string& site);
SqlTargetOptions target_options(const SqlTargetConfig& config, const std::string& name, const std::string& site);

OpenDirectory opens(const FileTargetConfig& config);

}  // namespace holdfast
