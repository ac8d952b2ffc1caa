// The built program with a configuration, a key and a directory of its own, as an operator has it: started, asked,
// killed, told to stop, configured anew.
//
// The directory is under $TMPDIR, else /var/tmp (not /tmp, which may be memory), and goes with the Appliance. The
// program is killed when the Appliance goes, or the thread that started it.
#pragma once

#include <signal.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "appliance/json.h"
#include "spool/clock.h"
#include "tests/support/program.h"

namespace holdfast {

// The tables of a configuration, in TOML. `more` is further lines of that table.
std::string nats_source(const std::string& url, const std::string& stream, const std::string& more = "");
std::string nats_target(const std::string& name, const std::string& url, const std::string& more = "");
std::string file_target(const std::string& name, const std::string& directory, const std::string& more = "");
std::string route(const std::vector<std::string>& subjects, const std::vector<std::string>& targets);

struct ApplianceSetup {
  std::string tables;          // sources, targets, routes
  std::string spool = {};      // further lines of [spool]
  std::string state_dir = {};  // empty: in its own directory
  std::string room = "min_free_bytes = \"1MiB\"\nmin_free_inodes = \"0%\"";
};

class Appliance {
 public:
  // Writes the configuration and makes a key with the program itself.
  Appliance(std::string program, ApplianceSetup setup);
  ~Appliance();
  Appliance(const Appliance&) = delete;
  Appliance& operator=(const Appliance&) = delete;

  // For the next start.
  void configure(ApplianceSetup setup);

  void start();  // until its control socket answers; aborts the test, with its log, when it does not
  void launch(const std::vector<std::string>& environment = {});  // does not wait
  bool running() { return program_.running(); }
  pid_t pid() const { return program_.pid(); }
  void kill9() { program_.kill(); }
  void freeze() { program_.signal(SIGSTOP); }
  void thaw() { program_.signal(SIGCONT); }
  // SIGTERM, and its exit code; aborts the test when it does not end.
  int terminate();
  // The exit code of a start that is not expected to last.
  int run_to_the_end();
  int end();  // likewise, of one that began well

  // As the control socket answers; null when nobody does.
  Json ask(const std::string& command, const Json& arguments = Json(Json::Fields()));
  Json status() { return ask("status"); }
  Json audit() { return ask("audit"); }
  // Of the status: the fields of one target; null when there is none.
  Json target(const std::string& name);

  // `holdfast ARGUMENTS... --config FILE`.
  ProgramAnswer command(std::vector<std::string> arguments, Nanoseconds limit = std::chrono::minutes(1)) const;

  std::string log() const { return file_text(log_file()); }  // of all starts
  std::string log_of_this_start() const { return log().substr(log_begin_); }
  bool log_has(const std::string& text) const { return log_of_this_start().find(text) != std::string::npos; }

  const std::string& directory() const { return directory_; }
  std::string config_file() const { return directory_ + "/holdfast.toml"; }
  std::string key_file() const { return directory_ + "/spool.key"; }
  std::string log_file() const { return directory_ + "/holdfast.log"; }
  std::string socket() const { return directory_ + "/run/control.sock"; }
  const std::string& state() const { return state_; }
  std::string spool() const { return state_ + "/spool"; }
  const std::string& program() const { return path_; }

  // The names of record files, in no order.
  std::vector<std::string> record_files() const;

 private:
  const std::string path_;
  const std::string directory_;
  std::string state_;
  Program program_;
  std::size_t log_begin_ = 0;
};

}  // namespace holdfast
