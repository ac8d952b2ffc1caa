#include "appliance/config_rules.h"

#include <algorithm>
#include <set>
#include <string>

#include "appliance/config_http.h"
#include "appliance/config_s3.h"
#include "appliance/config_sql.h"
#include "appliance/consumer_fit.h"
#include "appliance/quantity.h"
#include "forwarder/nats_bucket.h"
#include "forwarder/nats_url.h"
#include "forwarder/utc_time.h"
#include "spool/subject.h"

namespace holdfast {
namespace {

constexpr std::size_t kMaxName = 64;         // fits a line of status
constexpr std::size_t kMaxPath = 4000;       // below PATH_MAX
constexpr std::size_t kMaxSocketPath = 107;  // sockaddr_un
constexpr std::size_t kMaxSubject = 1024;

// What the spool needs beside its journal before it can take anything: the index, its reserve, a record.
constexpr std::uint64_t kRoomBesideJournal = 16ull << 20;

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

bool is_printable(char c) {
  return c > 0x20 && c < 0x7f;
}

std::string in_quotes(std::string_view word) {
  return '"' + std::string(word) + '"';
}

template <typename Named>
void check_names(const std::vector<Named>& all, const char* what, Findings& findings) {
  std::set<std::string_view> seen;
  for (const Named& one : all) {
    if (one.name.empty() || seen.insert(one.name).second) continue;
    findings.error(one.line, std::string(what) + ".name",
                   in_quotes(one.name) + " is used twice; give each " + what + " a name of its own");
  }
}

void check_address(const NatsAddress& address, const std::string& owner, int line, Findings& findings) {
  if (!address.creds_file.empty() && !address.nkey_file.empty())
    findings.error(line, owner + ".nkey_file", "cannot be used together with creds_file; keep one of them");
  if (address.tls_cert.empty() != address.tls_key.empty())
    findings.error(line, owner + (address.tls_key.empty() ? ".tls_key" : ".tls_cert"),
                   "is missing; tls_cert and tls_key go together");
  for (const NatsEndpoint& endpoint : parse_nats_url(address.url).value_or(std::vector<NatsEndpoint>())) {
    if (endpoint.login.empty()) continue;
    findings.warning(line, owner + ".url",
                     "holds a login that who reads this file can read; creds_file or nkey_file keeps it apart");
    break;
  }
}

bool is_required(const Config& config, std::string_view name) {
  return std::any_of(config.targets.begin(), config.targets.end(),
                     [&](const TargetConfig& target) { return target.name == name && target.required; });
}

bool is_target(const Config& config, std::string_view name) {
  return std::any_of(config.targets.begin(), config.targets.end(),
                     [&](const TargetConfig& target) { return target.name == name; });
}

void check_route_targets(const Config& config, const RouteConfig& route, Findings& findings) {
  std::set<std::string_view> seen;
  bool required = route.targets.empty();  // an empty list has been complained about
  bool known = true;
  for (const std::string& name : route.targets) {
    if (!seen.insert(name).second)
      findings.error(route.line, "route.targets", in_quotes(name) + " is named twice; name each target once");
    if (!is_target(config, name)) {
      known = false;
      findings.error(
          route.line, "route.targets",
          in_quotes(name) + " is no target of this file; add a [[target]] of that name or correct the route");
    }
    required = required || is_required(config, name);
  }
  if (known && !required)
    findings.error(route.line, "route.targets",
                   "has no required target, so its records could never leave; add one with required = true");
}

bool covered_by(const std::vector<std::string>& patterns, std::string_view subject) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return pattern_covers(pattern, subject); });
}

bool overlaps(const std::vector<std::string>& patterns, std::string_view subject) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return patterns_overlap(pattern, subject); });
}

// An earlier route takes everything that this one could.
void warn_of_unreachable_routes(const Config& config, Findings& findings) {
  std::vector<std::string> earlier;
  for (const RouteConfig& route : config.routes) {
    const bool hidden = !route.subjects.empty() && std::all_of(route.subjects.begin(), route.subjects.end(),
                                                               [&](const auto& s) { return covered_by(earlier, s); });
    if (hidden)
      findings.warning(route.line, "route.subjects", "no message reaches this route: the ones before it take them all");
    earlier.insert(earlier.end(), route.subjects.begin(), route.subjects.end());
  }
}

void warn_of_idle_routes(const Config& config, Findings& findings) {
  std::vector<std::string> incoming;
  for (const SourceConfig& source : config.sources) {
    if (source.consumer.subjects.empty()) return;  // takes whatever its stream has: nothing can be said
    incoming.insert(incoming.end(), source.consumer.subjects.begin(), source.consumer.subjects.end());
  }
  for (const RouteConfig& route : config.routes) {
    for (const std::string& subject : route.subjects) {
      if (!incoming.empty() && !overlaps(incoming, subject))
        findings.warning(route.line, "route.subjects", "no source brings " + in_quotes(subject));
    }
  }
}

void warn_of_unrouted_subjects(const Config& config, Findings& findings) {
  if (config.routes.empty()) return;
  std::vector<std::string> routed;
  for (const RouteConfig& route : config.routes)
    routed.insert(routed.end(), route.subjects.begin(), route.subjects.end());
  for (const SourceConfig& source : config.sources) {
    for (const std::string& subject : source.consumer.subjects) {
      if (!overlaps(routed, subject)) {
        findings.warning(
            source.line, "source.subjects",
            "no route can match " + in_quotes(subject) + "; its messages will go to quarantine as no_route");
      } else if (!covered_by(routed, subject)) {
        findings.warning(
            source.line, "source.subjects",
            "no one route takes all of " + in_quotes(subject) + "; what none takes will go to quarantine as no_route");
      }
    }
  }
}

// One name at one site is one stream, in every key.
void check_streams(const Config& config, Findings& findings) {
  for (std::size_t i = 0; i < config.sources.size(); ++i) {
    const SourceConfig& source = config.sources[i];
    for (std::size_t k = 0; k < i; ++k) {
      const SourceConfig& earlier = config.sources[k];
      if (source.stream.empty() || source.stream != earlier.stream) continue;
      if (source.address.url == earlier.address.url && source.domain == earlier.domain) {
        if (source.consumer.name == earlier.consumer.name)
          findings.error(source.line, "source.consumer",
                         in_quotes(source.consumer.name) + " is the consumer of source " + in_quotes(earlier.name) +
                             ", too; give each a consumer of its own, or its messages go now to one, now to the other");
        continue;
      }
      findings.error(source.line, "source.stream",
                     in_quotes(source.stream) + " is the stream of source " + in_quotes(earlier.name) +
                         ", too, on another server or in another domain: the two would be one in every key");
    }
  }
}

void check_source(const SourceConfig& source, Findings& findings) {
  check_address(source.address, "source", source.line, findings);
  const ConsumerWish& consumer = source.consumer;
  if (consumer.max_deliver > 0)
    findings.warning(source.line, "source.max_deliver",
                     "limits how often a message is tried: it can be lost while the spool is full");
  if (consumer.max_deliver > 0 && static_cast<std::size_t>(consumer.max_deliver) <= consumer.backoff.size())
    findings.error(source.line, "source.backoff", "must be shorter than max_deliver, or a server refuses it");
  const bool own = std::any_of(consumer.subjects.begin(), consumer.subjects.end(), [&](const std::string& pattern) {
    return subject_matches(pattern, source.dead_letter);
  });
  if (!source.dead_letter.empty() && own)
    findings.error(source.line, "source.dead_letter",
                   "is one of the source's own subjects: dead letters would come round");
  if (!source.dead_letter.empty() && consumer.subjects.empty())
    findings.warning(source.line, "source.dead_letter",
                     "comes round if the stream takes it, too; name the source's subjects to be sure that it does not");
}

bool is_of_payload(const IdentityRule& identity) {
  return identity.strategy == Strategy::payload_field || identity.strategy == Strategy::payload_hash;
}

void check_omitted_payloads(const Config& config, Findings& findings) {
  for (const SourceConfig& source : config.sources) {
    if (!source.consumer.headers_only) continue;
    const bool of_route = std::any_of(config.routes.begin(), config.routes.end(), [](const RouteConfig& route) {
      return route.identity && is_of_payload(*route.identity);
    });
    if (is_of_payload(source.identity))
      findings.error(source.line, "source.headers_only", "leaves out the payload, which this identity is made of");
    if (of_route)
      findings.warning(source.line, "source.headers_only",
                       "leaves out the payload, which the identity of a route is made of; what takes it is refused");
  }
}

void check_spool(const Config& config, Findings& findings) {
  const SpoolOptions& spool = config.spool;
  if (spool.limits.max_bytes < spool.journal_bytes + kRoomBesideJournal)
    findings.error(config.spool_line, "spool.max_bytes",
                   "leaves no room for records beside the journal; must be at least " +
                       bytes_text(spool.journal_bytes + kRoomBesideJournal) + " with this journal_bytes");
  if (spool.limits.quarantine_max_bytes > spool.limits.max_bytes)
    findings.warning(config.spool_line, "spool.quarantine_max_bytes", "is above max_bytes, which is reached first");
}

}  // namespace

const char* name_rule(std::string_view value) {
  const bool right =
      !value.empty() && value.size() <= kMaxName && std::all_of(value.begin(), value.end(), is_name_character);
  return right ? nullptr : "must be 1 to 64 letters, digits, '-', '_' or '.'";
}

const char* site_rule(std::string_view value) {
  const bool right = !value.empty() && value.size() <= kMaxName &&
                     std::all_of(value.begin(), value.end(), is_printable) &&
                     value.find('/') == std::string_view::npos;  // it is in names of files
  return right ? nullptr : "must be 1 to 64 printable ASCII characters without a space or '/', like \"truck-07\"";
}

const char* path_rule(std::string_view value) {
  const bool right = value.starts_with('/') && value.size() <= kMaxPath && value.find('\0') == std::string_view::npos;
  return right ? nullptr : "must be an absolute path";
}

const char* socket_rule(std::string_view value) {
  const bool right = path_rule(value) == nullptr && value.size() <= kMaxSocketPath && !value.ends_with('/');
  return right ? nullptr : "must be an absolute path of at most 107 bytes";
}

const char* nats_name_rule(std::string_view value) {
  const bool right = !value.empty() && value.size() <= 255 && std::all_of(value.begin(), value.end(), is_printable) &&
                     value.find_first_of(".*>/\\") == std::string_view::npos;
  return right ? nullptr
               : "must be a name as JetStream takes it: printable, without spaces, '.', '*', '>', '/' or '\\'";
}

const char* nats_url_rule(std::string_view value) {
  if (parse_nats_url(value)) return nullptr;
  return "must be like \"nats://host:4222\" or \"tls://host:4222\", several with commas between them";
}

const char* pattern_rule(std::string_view value) {
  const bool right = value.size() <= kMaxSubject && valid_pattern(value);
  return right ? nullptr
               : "must be a subject, like \"telemetry.>\": tokens between dots, '*' for one token, a last '>' for all "
                 "that follow";
}

const char* subject_rule(std::string_view value) {
  const bool right = pattern_rule(value) == nullptr && value.find_first_of("*>") == std::string_view::npos &&
                     !value.starts_with('$');  // the server's own: a message there may be a command
  return right ? nullptr : "must be a subject without wildcards or a '$' before it, like \"dead.telemetry\"";
}

const char* subject_template_rule(std::string_view value) {
  const auto parsed = SubjectTemplate::parse(value);
  const bool right = parsed && value.size() <= kMaxSubject && valid_subject(parsed->shape());
  return right ? nullptr
               : "must be a subject with {subject}, {site}, {stream}, {key} or {1} to {99} in it, like "
                 "\"site.{site}.{subject}\"";
}

const char* bucket_rule(std::string_view value) {
  return valid_bucket_name(value) ? nullptr : "must be the name of a bucket: letters, digits, '-' and '_'";
}

const char* key_template_rule(std::string_view value) {
  const bool right = value.size() <= kMaxSubject && valid_key_template(value);
  return right ? nullptr
               : "must be a key with {key}, {subject}, {site}, {stream} or {1} to {99} in it, like \"{site}/{2}\": "
                 "letters, digits, '-', '_', '/' and single dots between them";
}

const char* deliver_policy_rule(std::string_view value) {
  for (const char* policy : {"all", "new", "last", "by_start_sequence", "by_start_time"}) {
    if (value == policy) return nullptr;
  }
  return "must be one of \"all\", \"new\", \"last\", \"by_start_sequence\", \"by_start_time\"";
}

const char* time_rule(std::string_view value) {
  return parse_time(value) ? nullptr : "must be a time like \"2026-01-31T12:00:00Z\"";
}

const char* duration_rule(std::string_view value) {
  const auto time = parse_duration(value);
  const bool right = time && *time >= std::chrono::seconds(1) && *time <= std::chrono::hours(24);
  return right ? nullptr : "must be a duration from 1s to 24h";
}

const char* credential_rule(std::string_view value) {
  return name_rule(value) == nullptr && value != "." && value != ".."
             ? nullptr
             : "must be the name of a systemd credential, like \"spool.key\", not a path";
}

void check_rules(const Config& config, Findings& findings) {
  check_names(config.sources, "source", findings);
  check_names(config.targets, "target", findings);
  for (const SourceConfig& source : config.sources) check_source(source, findings);
  check_streams(config, findings);
  check_omitted_payloads(config, findings);
  for (const TargetConfig& target : config.targets) {
    const auto* nats = std::get_if<NatsTargetConfig>(&target.settings);
    if (nats != nullptr) check_address(nats->address, "target", target.line, findings);
    if (const auto* http = std::get_if<HttpTargetConfig>(&target.settings)) check_http(target, *http, findings);
    const auto* sql = std::get_if<SqlTargetConfig>(&target.settings);
    if (sql != nullptr) check_sql(*sql, target.line, findings);
    if (const auto* s3 = std::get_if<S3TargetConfig>(&target.settings)) check_s3(target, *s3, findings);
  }
  for (const RouteConfig& route : config.routes) check_route_targets(config, route, findings);
  check_spool(config, findings);

  const bool any_required = std::any_of(config.targets.begin(), config.targets.end(),
                                        [](const TargetConfig& target) { return target.required; });
  if (config.targets.empty()) {
    findings.error(0, "target", "there is none, so no record could ever leave; add a [[target]]");
  } else if (config.routes.empty() && !any_required) {
    findings.error(config.targets.front().line, "target.required",
                   "no target is required, so no record could ever leave; set required = true on one");
  }
  if (config.sources.empty()) findings.warning(0, "source", "there is none: nothing will be taken in");
  warn_of_unreachable_routes(config, findings);
  warn_of_idle_routes(config, findings);
  warn_of_unrouted_subjects(config, findings);
}

}  // namespace holdfast
