#include "tests/support/appliance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "appliance/control_client.h"
#include "spool/check.h"
#include "spool/file_system.h"
#include "tests/support/patience.h"
#include "tests/support/remove_tree.h"

namespace holdfast {
namespace {

namespace fs = std::filesystem;

constexpr auto kStartLimit = std::chrono::seconds(30);
constexpr auto kStopLimit = std::chrono::seconds(30);  // above the 20 s that are promised: the test is to see it
constexpr auto kAnswerLimit = std::chrono::seconds(20);

std::string make_directory() {
  const char* parent = std::getenv("TMPDIR");
  std::string path = std::string(parent != nullptr && *parent != '\0' ? parent : "/var/tmp") + "/holdfast-XXXXXX";
  CHECK(::mkdtemp(path.data()) != nullptr);
  return path;
}

bool is_safe(const std::string& directory) {
  const auto files = open_posix_file_system(directory);
  CHECK(files.ok());
  const auto space = (*files)->space();
  CHECK(space.ok());
  return space->safe;
}

std::string in_quotes(const std::vector<std::string>& words) {
  return fmt::format("[\"{}\"]", fmt::join(words, "\", \""));
}

}  // namespace

std::string nats_source(const std::string& url, const std::string& stream, const std::string& more) {
  return fmt::format(
      "[[source]]\nname = \"edge\"\ntype = \"nats\"\nurl = \"{}\"\nstream = \"{}\"\nack_wait = \"2s\"\n{}\n\n", url,
      stream, more);
}

std::string nats_target(const std::string& name, const std::string& url, const std::string& more) {
  return fmt::format("[[target]]\nname = \"{}\"\ntype = \"nats\"\nurl = \"{}\"\n{}\n\n", name, url, more);
}

std::string file_target(const std::string& name, const std::string& directory, const std::string& more) {
  return fmt::format("[[target]]\nname = \"{}\"\ntype = \"file\"\ndirectory = \"{}\"\n{}\n\n", name, directory, more);
}

std::string route(const std::vector<std::string>& subjects, const std::vector<std::string>& targets) {
  return fmt::format("[[route]]\nsubjects = {}\ntargets = {}\n\n", in_quotes(subjects), in_quotes(targets));
}

Appliance::Appliance(std::string program, ApplianceSetup setup)
    : path_(std::move(program)), directory_(make_directory()) {
  fs::create_directories(directory_ + "/run");
  configure(std::move(setup));
  const ProgramAnswer made = run_program({path_, "keygen", key_file()});
  if (made.code != 0) {
    std::fprintf(stderr, "keygen: %d %s\n", made.code, made.err.c_str());
    std::abort();
  }
}

Appliance::~Appliance() {
  kill9();
  if (testing::Test::HasFailure()) std::fprintf(stderr, "The log of the appliance:\n%s\n", log().c_str());
  remove_tree(directory_);
}

void Appliance::configure(ApplianceSetup setup) {
  state_ = setup.state_dir.empty() ? directory_ + "/state" : setup.state_dir;
  fs::create_directories(state_);
  std::ofstream(config_file()) << fmt::format(
      "[appliance]\nsite = \"test\"\nstate_dir = \"{}\"\nlog_format = \"text\"\n\n"
      "[spool]\nkey_file = \"{}\"\nallow_unsafe_fs = {}\n{}\n{}\n\n"
      "{}[control]\nsocket = \"{}\"\n",
      state_, key_file(), is_safe(state_) ? "false" : "true", setup.room, setup.spool, setup.tables, socket());
}

void Appliance::launch(const std::vector<std::string>& environment) {
  log_begin_ = log().size();
  program_.start({path_, "run", "--config", config_file()}, {log_file(), log_file()}, environment);
}

void Appliance::start() {
  launch();
  const bool answers = eventually([&] { return !running() || !status().is_null(); }, kStartLimit);
  if (answers && running()) return;
  std::fprintf(stderr, "the appliance does not start:\n%s\n", log_of_this_start().c_str());
  std::abort();
}

int Appliance::terminate() {
  program_.signal(SIGTERM);
  return program_.wait(kStopLimit).value_or(-1);
}

int Appliance::run_to_the_end() {
  launch();
  return program_.wait(kStartLimit).value_or(-1);
}

int Appliance::end() {
  return program_.wait(kStopLimit).value_or(-1);
}

Json Appliance::ask(const std::string& command, const Json& arguments) {
  const auto client = ControlClient::connect(socket());
  if (!client.ok()) return {};
  const auto answer = (*client)->ask(command, arguments, kAnswerLimit);
  return answer.ok() ? *answer : Json();
}

Json Appliance::target(const std::string& name) {
  const Json all = status();
  for (const Json& one : all["targets"].list()) {
    if (one["name"].text() == name) return one;
  }
  return {};
}

ProgramAnswer Appliance::command(std::vector<std::string> arguments, Nanoseconds limit) const {
  arguments.insert(arguments.begin(), path_);
  arguments.insert(arguments.end(), {"--config", config_file()});
  return run_program(arguments, limit);
}

std::vector<std::string> Appliance::record_files() const {
  std::vector<std::string> files;
  std::error_code gone;
  for (auto at = fs::recursive_directory_iterator(spool() + "/records", gone); at != fs::recursive_directory_iterator();
       at.increment(gone)) {
    if (gone) break;
    if (at->path().extension() == ".rec") files.push_back(at->path().string());
  }
  return files;
}

}  // namespace holdfast
