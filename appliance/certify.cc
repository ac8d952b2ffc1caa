#include "appliance/certify.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "appliance/certified_endpoints.h"
#include "appliance/config_file.h"
#include "appliance/control_loop.h"
#include "appliance/exit_code.h"
#include "appliance/quantity.h"
#include "appliance/report.h"
#include "crypto/secret.h"
#include "spool/file_system.h"
#include "spool/path.h"
#include "spool/subject.h"

namespace holdfast {
namespace {

constexpr std::size_t kMostPayload = 1u << 20;  // a target is tried with small records
constexpr Nanoseconds kShortest = std::chrono::seconds(1);
constexpr Nanoseconds kLongest = std::chrono::hours(1);

void say(const std::string& text) {
  fmt::print(stderr, "{}\n", text);
}

int refuse(const std::string& text) {
  say("holdfast: " + text);
  return kExitUsage;
}

// 122 random bits, as RFC 9562 writes them (version 4).
std::string new_run() {
  const SecretKey random = SecretKey::random();
  std::string hex = to_hex(random.bytes().first(16));
  hex[12] = '4';
  hex[16] = "89ab"[static_cast<std::size_t>(hex[16]) % 4];
  for (const std::size_t at : {20u, 16u, 12u, 8u}) hex.insert(at, "-");
  return hex;
}

bool is_run(const std::string& text) {
  return text.size() == 36 && text.find_first_not_of("0123456789abcdef-") == std::string::npos;
}

std::string without_wildcards(std::string_view pattern) {
  std::string subject;
  while (!pattern.empty()) {
    const std::size_t dot = pattern.find('.');
    const std::string_view token = pattern.substr(0, dot);
    if (!subject.empty()) subject += '.';
    subject += token == "*" || token == ">" ? "certify" : token;
    pattern.remove_prefix(dot == std::string_view::npos ? pattern.size() : dot + 1);
  }
  return subject;
}

const TargetConfig* find_target(const Config& config, const std::string& name) {
  const auto found = std::find_if(config.targets.begin(), config.targets.end(),
                                  [&](const auto& target) { return target.name == name; });
  return found == config.targets.end() ? nullptr : &*found;
}

std::string names_of(const Config& config) {
  std::string names;
  for (const TargetConfig& target : config.targets) names += (names.empty() ? "" : ", ") + target.name;
  return names;
}

Result<Bytes> read_payload(const std::string& path) {
  const auto directory = open_posix_file_system(path.find('/') == std::string::npos ? "." : parent_path(path));
  if (!directory.ok()) return directory.error();
  return read_file(**directory, path.substr(path.rfind('/') + 1), kMostPayload);
}

// The words of the command line as what they mean; or why they mean nothing.
Result<CertificationOptions> read_options(const CertifyOptions& options, const Config& config) {
  const auto invalid = [](std::string text) { return Error{ErrorKind::invalid, std::move(text)}; };
  CertificationOptions read;
  read.site = config.appliance.site;
  read.run = options.remove.empty() ? new_run() : options.remove;
  read.keep = options.keep;
  if (!is_run(read.run)) return invalid("--remove takes the run as it was printed, like 0f1e2d3c-...");
  const auto subject =
      options.subject.empty() ? certification_subject(config, options.target) : std::optional(options.subject);
  if (!subject) return invalid("no route or source names a subject that goes to the target; say one with --subject");
  if (!valid_subject(*subject)) return invalid("--subject takes a subject without wildcards, like telemetry.certify");
  read.subject = *subject;
  const auto limit = parse_duration(options.timeout);
  if (!limit || *limit < kShortest || *limit > kLongest) return invalid("--timeout takes 1s to 1h");
  read.limit = *limit;
  if (options.payload.empty()) return read;
  auto payload = read_payload(options.payload);
  if (!payload.ok()) return invalid("--payload: " + payload.error().text);
  read.payload = *std::move(payload);
  return read;
}

// Runs the work on a thread of its own. The first signal asks it to stop and clean up; the next ends the process.
void run_until_done(std::stop_source stop, const std::function<void()>& work) {
  ControlLoop loop;
  loop.on_signal([stop](int) mutable {
    if (!stop.request_stop()) std::_Exit(kExitTemporary);
    say("holdfast: stopping; what was sent is removed (once more, and it is left there)");
  });
  const std::jthread working([&] {
    work();
    loop.stop();
  });
  loop.run();
}

int remove_earlier(const CertifyOptions& options, const TargetConfig& target, const CertificationOptions& meant) {
  Result<void> removed;
  run_until_done({}, [&] {
    removed = remove_certification_records(make_certified_target(target, meant.site, meant.subject), meant);
  });
  if (removed.ok()) {
    say(fmt::format("holdfast: nothing of run {} is left at {}", meant.run, options.target));
    return kExitGood;
  }
  say("holdfast: " + removed.error().text);
  return removed.error().kind == ErrorKind::invalid ? kExitUsage : kExitTemporary;
}

int exit_code(Safety safety) {
  switch (safety) {
    case Safety::safe:
    case Safety::safe_with_conditions:
      return kExitGood;
    case Safety::not_safe:
      return kExitFailed;
    case Safety::unproven:
      return kExitTemporary;
  }
  return kExitTemporary;
}

}  // namespace

std::optional<std::string> certification_subject(const Config& config, const std::string& target) {
  for (const RouteConfig& route : config.routes) {
    const bool leads = std::find(route.targets.begin(), route.targets.end(), target) != route.targets.end();
    if (leads && !route.subjects.empty()) return without_wildcards(route.subjects.front());
  }
  if (!config.routes.empty()) return std::nullopt;
  for (const SourceConfig& source : config.sources) {
    if (!source.consumer.subjects.empty()) return without_wildcards(source.consumer.subjects.front());
  }
  return std::nullopt;
}

Json certification_answer(const CertificationReport& report, const CertificationOptions& options,
                          const std::string& target) {
  Json properties{Json::List()};
  for (const Property& property : report.properties) {
    Json one;
    one.set("name", property.name);
    one.set("verdict", proof_text(property.verdict));
    one.set("reason", property.reason);
    properties.add(std::move(one));
  }
  Json answer;
  answer.set("target", target);
  answer.set("safety", safety_text(report.safety));
  answer.set("run", options.run);
  answer.set("subject", options.subject);
  answer.set("records", report.records);
  answer.set("may_be_left", report.may_be_left);
  answer.set("properties", std::move(properties));
  return answer;
}

int run_certify(const CertifyOptions& options) {
  const LoadedConfig loaded = load_config(options.config);
  for (const Finding& finding : loaded.errors) say(finding_text(options.config, finding));
  if (!loaded.ok()) return kExitUsage;
  const TargetConfig* target = find_target(loaded.config, options.target);
  if (target == nullptr)
    return refuse(fmt::format("no target is called {}; there are {}", options.target, names_of(loaded.config)));
  if (!init_crypto()) return refuse("there is no source of random numbers");
  (void)std::signal(SIGPIPE, SIG_IGN);
  auto meant = read_options(options, loaded.config);
  if (!meant.ok()) return refuse(meant.error().text);
  if (!options.remove.empty()) return remove_earlier(options, *target, *meant);

  say(fmt::format("holdfast: certifying {}, run {}, subject {}", options.target, meant->run, meant->subject));
  std::stop_source stop;
  meant->stop = stop.get_token();
  meant->on_begin = [](std::string_view property) { say(fmt::format("  trying: {}", property)); };
  CertificationReport report;
  run_until_done(stop, [&] { report = certify(make_certified_target(*target, meant->site, meant->subject), *meant); });
  const Json answer = certification_answer(report, *meant, options.target);
  fmt::print("{}", options.json ? pretty_json_text(answer) + '\n' : report_text("certify", answer));
  std::fflush(stdout);
  return exit_code(report.safety);
}

}  // namespace holdfast
