#include "appliance/command_line.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "appliance/certify.h"
#include "appliance/demo.h"
#include "appliance/verbs.h"

namespace holdfast {
namespace {

// The words of one invocation, as CLI11 finds them; and what they ask for.
class CommandLine {
 public:
  CommandLine() {
    app_.get_formatter()->column_width(26);
    app_.require_subcommand(0, 1);
    app_.set_version_flag("--version", std::string("holdfast ") + HOLDFAST_VERSION);
    app_.footer(
        "Exit codes: 0 good, 1 failed (status: something is on hold or lost), 2 usage or\n"
        "configuration, 75 temporary (status: not running).\n"
        "Each command has --help with examples.");
    add_process_commands();
    add_certify();
    add_looking_commands();
    add_spool_commands();
    add_quarantine_commands();
    add_target_commands();
  }

  int run(int argc, char** argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return app_.exit(error) == 0 ? kExitGood : kExitUsage;
    }
    return chosen_ ? chosen_() : explain();
  }

 private:
  // No command was named: what there is, of the group that was named.
  int explain() {
    const auto named = app_.get_subcommands();
    std::fputs((named.empty() ? app_ : *named.front()).help().c_str(), stderr);
    return kExitUsage;
  }

  CLI::App* add(CLI::App& parent, const std::string& name, const std::string& what, const std::string& examples) {
    CLI::App* command = parent.add_subcommand(name, what);
    command->footer("Examples:\n" + examples);
    return command;
  }

  // One that reads the configuration.
  CLI::App* add_configured(CLI::App& parent, const std::string& name, const std::string& what,
                           const std::string& examples) {
    CLI::App* command = add(parent, name, what, examples);
    command->add_option("--config", common_.config, "The configuration file")->capture_default_str();
    return command;
  }

  // One that the running appliance answers, or the spool itself.
  CLI::App* add_operator(CLI::App& parent, const std::string& name, const std::string& what,
                         const std::string& examples, bool opens_spool = true) {
    CLI::App* command = add_configured(parent, name, what, examples);
    add_json(command);
    if (opens_spool) command->add_option("--key-file", common_.key_file, "The key, where no appliance runs");
    const std::string full = &parent == &app_ ? name : parent.get_name() + ' ' + name;
    command->callback([this, full] { chosen_ = [this, full] { return operate(common_, full, arguments()); }; });
    return command;
  }

  void add_json(CLI::App* command) { command->add_flag("--json", common_.json, "JSON on standard output"); }

  CLI::App& add_group(const std::string& name, const std::string& what) {
    CLI::App* group = app_.add_subcommand(name, what);
    group->require_subcommand(0, 1);
    return *group;
  }

  void add_filter(CLI::App* command) {
    command
        ->add_option("filter", filter_,
                     "target=NAME, id=HEX, subject=PATTERN, sequence=N;\n"
                     "several narrow it down; or all")
        ->required();
  }

  void add_page(CLI::App* command) {
    command->add_option("--after", after_, "Go on behind this spool sequence");
    command->add_option("--limit", limit_, "How many, at most")->capture_default_str()->check(CLI::Range(1, 1000));
  }

  void add_process_commands();
  void add_certify();
  void add_looking_commands();
  void add_spool_commands();
  void add_quarantine_commands();
  void add_target_commands();

  Json arguments() const;

  CLI::App app_{
      "holdfast: keeps messages of a local NATS JetStream safe on disk, and forwards\nthem when the uplink allows",
      "holdfast"};
  std::function<int()> chosen_;
  CommonOptions common_;
  DemoOptions demo_;
  CertifyOptions certify_;
  std::string path_, id_, from_, to_, target_, reason_;
  std::vector<std::string> filter_;
  std::uint64_t after_ = 0;
  std::uint64_t limit_ = 100;
  bool dry_run_ = false;
};

void CommandLine::add_process_commands() {
  CLI::App* demo = add(app_, "demo", "Show the main job in one minute, with proof",
                       "  holdfast demo\n  holdfast demo --messages 100000 --json");
  demo->add_option("--messages", demo_.messages, "How many to send")
      ->capture_default_str()
      ->check(CLI::Range(100u, 100'000'000u));
  demo->add_flag("--json", demo_.json, "The figures as JSON on standard output");
  demo->add_flag("--keep", demo_.keep, "Leave the demo's directory behind");
  demo->callback([this] { chosen_ = [this] { return run_demo(demo_); }; });

  CLI::App* key =
      add(app_, "keygen", "Make the key that a spool is sealed with", "  holdfast keygen /etc/holdfast/spool.key");
  key->add_option("path", path_, "The new file; one that is there is not overwritten")->required();
  add_json(key);
  key->callback([this] { chosen_ = [this] { return keygen(path_, common_.json); }; });

  CLI::App* checking = add_configured(app_, "check", "Validate the configuration: file, line and key",
                                      "  holdfast check\n  holdfast check --config ./holdfast.toml --json");
  add_json(checking);
  checking->callback([this] { chosen_ = [this] { return check(common_); }; });

  CLI::App* service = add_configured(app_, "run", "Run the appliance, in the foreground",
                                     "  holdfast run\n  holdfast run --config ./holdfast.toml");
  service->add_option("--key-file", common_.key_file, "The key, instead of the configured one");
  service->callback([this] { chosen_ = [this] { return holdfast::run(common_); }; });
}

void CommandLine::add_certify() {
  CLI::App* certify =
      add_configured(app_, "certify", "Try out whether it is safe to send to a target",
                     "  holdfast certify --target hub\n  holdfast certify ./holdfast.toml --target hub --json\n\n"
                     "It sends records of its own to the real endpoint, and removes them again. Exit\n"
                     "codes: 0 safe, perhaps with conditions, 1 not safe, 2 configuration, 75 not\n"
                     "proven (not reached, no time).");
  certify->add_option("file", common_.config, "The configuration file");
  certify->add_option("--target", certify_.target, "The target")->required();
  certify->add_option("--subject", certify_.subject, "Of the records; else one that a route leads to it");
  certify->add_option("--payload", certify_.payload, "A file: what every record carries; else JSON");
  certify->add_option("--timeout", certify_.timeout, "What is not tried by then is unproven")->capture_default_str();
  certify->add_flag("--keep", certify_.keep, "Leave the records there");
  certify->add_option("--remove", certify_.remove, "Only remove what an earlier RUN has left");
  certify->add_flag("--json", certify_.json, "JSON on standard output");
  certify->callback([this] {
    chosen_ = [this] {
      certify_.config = common_.config;
      return run_certify(certify_);
    };
  });
}

void CommandLine::add_looking_commands() {
  add_operator(app_, "status", "Backlog, sources, targets, disk; what needs attention",
               "  holdfast status\n  holdfast status --json | jq .backlog");
  add_operator(app_, "audit", "Prove that every record taken is accounted for", "  holdfast audit && echo balanced");
}

void CommandLine::add_spool_commands() {
  CLI::App& spool = add_group("spool", "Look at and move what is in custody");
  add_page(add_operator(spool, "list", "List records without opening them",
                        "  holdfast spool list --limit 20\n  holdfast spool list --after 4711"));
  add_operator(spool, "show", "Open one record (root or the service's user)", "  holdfast spool show 1f2e3d4c")
      ->add_option("id", id_, "The first digits of its id")
      ->required();
  add_operator(spool, "verify", "Open every record, report each that cannot be", "  holdfast spool verify");
  CLI::App* retarget = add_operator(spool, "retarget", "Send what waits for one target name to another",
                                    "  holdfast spool retarget old-hub hub");
  retarget->add_option("old", from_, "The name they wait for now")->required();
  retarget->add_option("new", to_, "A target of the configuration")->required();
  CLI::App* discard =
      add_operator(spool, "discard", "Give up records for good; counted and logged",
                   "  holdfast spool discard target=hub 'subject=debug.>' --reason \"noise\" --dry-run\n"
                   "  holdfast spool discard all --reason \"box is sold\"");
  add_filter(discard);
  discard->add_option("--reason", reason_, "Why; it goes to the log")->required();
  discard->add_flag("--dry-run", dry_run_, "Only count");
}

void CommandLine::add_quarantine_commands() {
  CLI::App& quarantine = add_group("quarantine", "Look at and decide on what was set aside");
  add_page(add_operator(quarantine, "list", "List what was set aside, and why", "  holdfast quarantine list"));
  add_operator(quarantine, "show", "Open one record (root or the service's user)",
               "  holdfast quarantine show 1f2e3d4c")
      ->add_option("id", id_, "The first digits of its id")
      ->required();
  add_filter(add_operator(quarantine, "requeue", "Back into custody, by the routes as they are now",
                          "  holdfast quarantine requeue id=1f2e3d4c\n  holdfast quarantine requeue all"));
  add_filter(add_operator(quarantine, "drop", "Give up for good; counted and logged",
                          "  holdfast quarantine drop id=1f2e3d4c"));
}

void CommandLine::add_target_commands() {
  CLI::App& target = add_group("target", "Order a target about, while the appliance runs; its tables");
  for (const auto& [name, what] :
       {std::pair("hold", "Deliver nothing to it until resume, or a restart"),
        std::pair("resume", "Deliver to it again, and try now"), std::pair("kick", "Try now, whatever it waits for")})
    add_operator(target, name, what, std::string("  holdfast target ") + name + " hub", false)
        ->add_option("name", target_, "The target")
        ->required();
  CLI::App* schema = add_configured(target, "schema", "Print the tables that a database needs, as SQL",
                                    "  holdfast target schema ledger | psql ops");
  schema->add_option("name", target_, "A target of type postgres or mysql")->required();
  schema->callback([this] { chosen_ = [this] { return target_schema(common_, target_); }; });
}

Json CommandLine::arguments() const {
  Json arguments{Json::Fields()};
  const auto set = [&](const char* name, const std::string& text) {
    if (!text.empty()) arguments.set(name, text);
  };
  set("id", id_);
  set("from", from_);
  set("to", to_);
  set("target", target_);
  set("reason", reason_);
  Json words{Json::List()};
  for (const std::string& word : filter_) words.add(word);
  if (!filter_.empty()) arguments.set("filter", std::move(words));
  if (after_ != 0) arguments.set("after", after_);
  arguments.set("limit", limit_);
  if (dry_run_) arguments.set("dry_run", true);
  return arguments;
}

}  // namespace

int run_command_line(int argc, char** argv) {
  return CommandLine().run(argc, argv);
}

}  // namespace holdfast
