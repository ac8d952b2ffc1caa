// Reads the configuration file (TOML). Strict: an unknown key, a wrong type, a value that cannot be, is an error that
// names its line; all of them are found in one reading, so that nobody has to repair a file one start at a time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "appliance/config.h"
#include "appliance/config_finding.h"

namespace holdfast {

inline constexpr std::size_t kMaxConfigBytes = 1u << 20;  // the longest sensible file is a few KiB

struct LoadedConfig {
  Config config;  // only to be used when `errors` is empty
  std::vector<Finding> errors;
  std::vector<Finding> warnings;
  std::size_t errors_left_out = 0;
  bool ok() const { return errors.empty(); }
};

LoadedConfig parse_config(std::string_view text);

// Reads `path`; a file that cannot be read, is no regular file, or is above kMaxConfigBytes is one error about the
// whole file.
LoadedConfig load_config(const std::string& path);

}  // namespace holdfast
