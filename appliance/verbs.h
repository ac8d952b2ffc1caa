// What each command of the command line does, once its words are read. Data goes to standard output, talk to standard
// error; each returns the exit code (README, "Operate it").
#pragma once

#include <string>

#include "appliance/exit_code.h"
#include "appliance/json.h"

namespace holdfast {

struct CommonOptions {
  std::string config = "/etc/holdfast/holdfast.toml";
  std::string key_file;  // instead of the configuration's, where no appliance runs
  bool json = false;
};

int keygen(const std::string& path, bool json);
int check(const CommonOptions& options);
int run(const CommonOptions& options);
// The tables that a target of a database needs.
int target_schema(const CommonOptions& options, const std::string& name);
// A command of commands.h.
int operate(const CommonOptions& options, const std::string& command, const Json& arguments);

}  // namespace holdfast
