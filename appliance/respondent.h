// Whoever answers an operator's command: the running appliance through its control socket, or, where none runs, the
// spool itself, opened under its lock.
//
// As root, this process becomes the owner of the spool before it opens it, so that no file of root's is left behind;
// the key is read before that.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "appliance/appliance_status.h"
#include "appliance/config.h"
#include "appliance/control_client.h"
#include "appliance/custody.h"
#include "appliance/json.h"

namespace holdfast {

class Respondent {
 public:
  // `unavailable`: an appliance has the spool and does not answer. `key_file` stands in for the configuration's key,
  // where the credential is not at hand. `config` outlives it.
  static Result<std::unique_ptr<Respondent>> find(const Config& config, const std::string& key_file);
  ~Respondent();

  // Where none runs the first question opens the spool. `not_found`: there is none yet. `unavailable`: somebody else
  // has it.
  Result<Json> ask(const std::string& command, const Json& arguments);
  bool is_running() const { return client_ != nullptr; }

 private:
  Respondent(const Config& config, std::string key_file) : config_(config), key_file_(std::move(key_file)) {}
  Result<void> open_spool();
  ApplianceStatus idle_status() const;

  const Config& config_;
  const std::string key_file_;
  std::unique_ptr<ControlClient> client_;  // one of these two
  std::optional<Custody> custody_;
};

}  // namespace holdfast
