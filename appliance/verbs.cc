#include "appliance/verbs.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <optional>

#include "appliance/commands.h"
#include "appliance/config_file.h"
#include "appliance/key_file.h"
#include "appliance/log.h"
#include "appliance/report.h"
#include "appliance/respondent.h"
#include "appliance/service.h"
#include "appliance/surroundings.h"
#include "appliance/systemd.h"
#include "forwarder/sql_schema.h"

namespace holdfast {
namespace {

// The bad records that one answer of `spool verify --json` lists; the rest are counted.
constexpr std::size_t kMostBad = 10'000;

void say(const std::string& text) {
  fmt::print(stderr, "{}\n", text);
}

void put(const std::string& text) {
  fmt::print("{}", text);
  std::fflush(stdout);
}

int fail(const Error& error, int code) {
  say("holdfast: " + error.text);
  return code;
}

int exit_code(const Error& error) {
  switch (error.kind) {
    case ErrorKind::io:
    case ErrorKind::unavailable:
    case ErrorKind::full:
      return kExitTemporary;
    case ErrorKind::invalid:
      return kExitUsage;
    default:
      return kExitFailed;
  }
}

// Before anything secret is read: no dump of this process reaches a disk (I7), and the source of random numbers is
// there.
bool guard_secrets() {
  const rlimit none{0, 0};
  (void)::setrlimit(RLIMIT_CORE, &none);
  if (init_crypto()) return true;
  say("holdfast: there is no source of random numbers");
  return false;
}

void tell_errors(const std::string& file, const LoadedConfig& loaded) {
  for (const Finding& finding : loaded.errors) say(finding_text(file, finding));
  if (loaded.errors_left_out > 0) say(fmt::format("{}: and {} more", file, loaded.errors_left_out));
}

// The configuration, or nothing, and the errors have been told.
std::optional<Config> good_config(const std::string& file) {
  LoadedConfig loaded = load_config(file);
  if (loaded.ok()) return std::move(loaded.config);
  tell_errors(file, loaded);
  return std::nullopt;
}

Json findings_list(const std::vector<Finding>& findings) {
  Json list{Json::List()};
  for (const Finding& finding : findings) {
    Json one;
    one.set("line", finding.line);
    one.set("key", finding.key);
    one.set("text", finding.text);
    list.add(std::move(one));
  }
  return list;
}

int print_answer(const CommonOptions& options, const std::string& command, const Json& answer) {
  put(options.json ? pretty_json_text(answer) + '\n' : report_text(command, answer));
  if (command == "status" && !answer["running"].flag()) return kExitTemporary;
  if (command == "status") return answer["on_hold"].flag() ? kExitFailed : kExitGood;
  if (command == "audit") return answer["balanced"].flag() && answer["lost"].count() == 0 ? kExitGood : kExitFailed;
  return kExitGood;
}

// What was moved or given up without the appliance goes to the system's journal, where the appliance's log is.
void note_offline(const std::string& command, const Json& arguments, const Json& answer) {
  if (right_of(command) != Right::change || answer["changed"].is_null()) return;
  const std::string line = fmt::format(
      "an operator's command while no appliance runs command=\"{}\" about=\"{}\" uid={} dry_run={} records={} "
      "reason=\"{}\"",
      command, about(arguments), ::getuid(), answer["dry_run"].flag() ? "yes" : "no", answer["changed"].count(),
      arguments["reason"].text());
  if (!tell_journal(line)) say("holdfast: " + line);
}

// Piece by piece, so that neither side has all of a large spool in hand, and the operator sees what is bad as it is
// found.
int verify(Respondent& respondent, const CommonOptions& options) {
  Json all{Json::List()};
  std::uint64_t bad = 0;
  Json arguments;
  arguments.set("limit", 1000);
  do {
    const auto answer = respondent.ask("spool verify", arguments);
    if (!answer) return fail(answer.error(), exit_code(answer.error()));
    if (!options.json) put(report_text("spool verify", *answer));
    for (const Json& one : (*answer)["bad"].list()) {
      if (++bad <= kMostBad) all.add(one);
    }
    arguments.set("after", (*answer)["next"].count());
  } while (arguments["after"].count() != 0);
  Json result;
  result.set("good", bad == 0);
  result.set("bad_records", bad);
  result.set("bad", std::move(all));
  if (options.json) put(pretty_json_text(result) + '\n');
  say(bad == 0   ? "every record can be opened"
      : bad == 1 ? "1 record cannot be opened"
                 : fmt::format("{} records cannot be opened", bad));
  return bad == 0 ? kExitGood : kExitFailed;
}

// Why the service cannot begin; 2 is a configuration that no restart mends.
int start_code(const Error& error) {
  switch (error.kind) {
    case ErrorKind::invalid:
    case ErrorKind::not_found:
      return kExitUsage;
    case ErrorKind::corrupt:
      return kExitFailed;
    default:
      return kExitTemporary;
  }
}

}  // namespace

int keygen(const std::string& path, bool json) {
  if (!guard_secrets()) return kExitTemporary;
  const auto id = make_key_file(path);
  if (!id) return fail(id.error(), kExitFailed);
  Json answer;
  answer.set("key_id", *id);
  answer.set("path", path);
  put(json ? pretty_json_text(answer) + '\n' : fmt::format("key id {}\n", *id));
  say(
      fmt::format("Without {} nobody can read a spool sealed with it, and nobody can make it again.\n"
                  "Keep a copy where neither the box nor its disk is, under the id above.\n"
                  "Key and spool on one medium protect against nothing but disposal.",
                  path));
  return kExitGood;
}

int check(const CommonOptions& options) {
  LoadedConfig loaded = load_config(options.config);
  if (loaded.ok()) {
    Findings around;
    if (!guard_secrets()) return kExitTemporary;
    check_surroundings(loaded.config, around);
    loaded.errors = around.errors();
    for (Finding& finding : around.warnings()) loaded.warnings.push_back(std::move(finding));
  }
  if (options.json) {
    Json answer;
    answer.set("good", loaded.ok());
    answer.set("errors", findings_list(loaded.errors));
    answer.set("warnings", findings_list(loaded.warnings));
    put(pretty_json_text(answer) + '\n');
    return loaded.ok() ? kExitGood : kExitUsage;
  }
  tell_errors(options.config, loaded);
  for (const Finding& finding : loaded.warnings) say(finding_text(options.config, finding) + " (warning)");
  if (!loaded.ok()) return kExitUsage;
  put(fmt::format("{}: good; sources {}, targets {}, routes {}\n", options.config, loaded.config.sources.size(),
                  loaded.config.targets.size(), loaded.config.routes.size()));
  return kExitGood;
}

int target_schema(const CommonOptions& options, const std::string& name) {
  const LoadedConfig loaded = load_config(options.config);
  if (!loaded.ok()) {
    tell_errors(options.config, loaded);
    return kExitUsage;
  }
  for (const TargetConfig& target : loaded.config.targets) {
    const auto* sql = std::get_if<SqlTargetConfig>(&target.settings);
    if (target.name != name || sql == nullptr) continue;
    put(sql_schema(sql->dialect, sql->tables));
    return kExitGood;
  }
  say("no target of that name and of type postgres or mysql is in " + options.config);
  return kExitUsage;
}

int run(const CommonOptions& options) {
  LoadedConfig loaded = load_config(options.config);
  if (!loaded.ok()) {
    tell_errors(options.config, loaded);
    return kExitUsage;
  }
  const Config& config = loaded.config;
  Log log(config.appliance.log_level, config.appliance.log_format);
  for (const Finding& finding : loaded.warnings)
    log.warning("configuration", {{"what", OwnWords{finding_text(options.config, finding)}}});

  if (!guard_secrets()) return kExitTemporary;
  const auto refuse = [&](const Error& error) {
    log.error("cannot start", {{"error", error}});
    return start_code(error);
  };
  const auto key = read_key(options.key_file.empty() ? config.key : KeyPlace{options.key_file, ""}, ::geteuid());
  if (!key) return refuse(key.error());
  notify_status("opening the spool");
  auto custody = open_custody(config, *key);
  if (!custody) return refuse(custody.error());
  return run_service(config, std::move(*custody), log);
}

int operate(const CommonOptions& options, const std::string& command, const Json& arguments) {
  const auto config = good_config(options.config);
  if (!config) return kExitUsage;
  if (!guard_secrets()) return kExitTemporary;
  const auto respondent = Respondent::find(*config, options.key_file);
  if (!respondent) return fail(respondent.error(), exit_code(respondent.error()));
  const bool running = (*respondent)->is_running();
  const bool orders = command.starts_with("target ");
  if (!running && !orders) say("holdfast: no appliance runs; this is the spool itself");
  if (command == "spool verify") return verify(**respondent, options);
  const auto answer = (*respondent)->ask(command, arguments);
  if (answer.ok() && !running) note_offline(command, arguments, *answer);
  if (answer.ok()) return print_answer(options, command, *answer);
  return fail(answer.error(), command == "status" && !running ? kExitTemporary : exit_code(answer.error()));
}

}  // namespace holdfast
