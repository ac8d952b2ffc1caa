#include "appliance/config_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>

#include "appliance/config_rules.h"
#include "appliance/config_target.h"
#include "appliance/quantity.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kKiB = 1ull << 10;
constexpr std::uint64_t kMiB = 1ull << 20;
constexpr std::uint64_t kGiB = 1ull << 30;
constexpr std::uint64_t kTiB = 1ull << 40;
constexpr Nanoseconds kYear = std::chrono::hours(24 * 365);

void read_appliance(ConfigTable& in, Config& config) {
  ApplianceConfig& appliance = config.appliance;
  in.required_text("site", appliance.site, site_rule);
  in.text("state_dir", appliance.state_dir, path_rule);
  in.choice<LogLevel>("log_level", appliance.log_level,
                      {{"debug", LogLevel::debug},
                       {"info", LogLevel::info},
                       {"warning", LogLevel::warning},
                       {"error", LogLevel::error}});
  in.choice<LogFormat>("log_format", appliance.log_format,
                       {{"auto", LogFormat::automatic}, {"text", LogFormat::text}, {"json", LogFormat::json}});
  config.spool.site = appliance.site;
}

void read_spool(ConfigTable& in, Config& config) {
  SpoolOptions& spool = config.spool;
  config.spool_line = in.line();
  in.text("key_file", config.key.file, path_rule);
  in.text("credential", config.key.credential, credential_rule);
  if (!in.has("key_file") && !in.has("credential"))
    in.complain("key_file",
                "is missing; name the file that `holdfast keygen` made, or a systemd credential with credential");
  if (in.has("key_file") && in.has("credential"))
    in.complain("credential", "cannot be used together with key_file; keep one of them");

  in.bytes("max_bytes", spool.limits.max_bytes, 32 * kMiB, 1024 * kTiB);
  in.count("max_records", spool.limits.max_records, 1, 1'000'000'000);
  in.bytes("max_record_bytes", spool.limits.max_record_bytes, kKiB, 128 * kMiB);
  in.bytes("min_free_bytes", spool.limits.min_free_bytes, 0, 1024 * kTiB);
  in.percent("min_free_inodes", spool.limits.min_free_inodes_percent);
  in.bytes("quarantine_max_bytes", spool.limits.quarantine_max_bytes, kMiB, 1024 * kTiB);
  in.duration("linger", spool.linger, 0ns, 1h);
  in.bytes("journal_bytes", spool.journal_bytes, 4 * kMiB, 4 * kGiB);
  if (spool.journal_bytes % (16 * kKiB) != 0)
    in.complain("journal_bytes", "must be a multiple of 16KiB: four segments of whole 4 KiB blocks");
  in.choice<SyncMode>("sync", spool.sync, {{"auto", SyncMode::automatic}, {"files", SyncMode::files}});
  in.flag("allow_unsafe_fs", spool.allow_unsafe_fs);
  in.duration("ledger_window", spool.ledger_window, 1s, 10 * kYear);
  in.count("ledger_max", spool.ledger_max, 1000, 1'000'000'000);
}

// Of a source, or of a route in its place; nothing where none is written.
std::optional<IdentityRule> read_identity(ConfigTable& in) {
  IdentityRule identity;
  if (in.inner("identity", [&](ConfigTable& table) { table.field_path("payload_field", identity.field); })) {
    identity.strategy = Strategy::payload_field;
  } else {
    in.choice<Strategy>("identity", identity.strategy,
                        {{"stream_sequence", Strategy::stream_sequence},
                         {"message_id", Strategy::message_id},
                         {"payload_field", Strategy::payload_field},
                         {"payload_hash", Strategy::payload_hash}});
    if (identity.strategy == Strategy::payload_field)
      in.complain("identity", "names no field; must be like { payload_field = \"order.id\" }");
  }
  in.choice<MessageIdScope>(
      "message_id_scope", identity.scope,
      {{"global", MessageIdScope::global}, {"site", MessageIdScope::site}, {"stream", MessageIdScope::stream}});
  if (in.has("message_id_scope") && identity.strategy != Strategy::message_id)
    in.complain("message_id_scope", "says nothing with this identity; it belongs to identity = \"message_id\"");
  if (!in.has("identity")) return std::nullopt;
  return identity;
}

// As JetStream calls it all. What says where to begin counts only when the consumer is made for the first time.
void read_consumer(ConfigTable& in, SourceConfig& source) {
  ConsumerWish& consumer = source.consumer;
  in.text("domain", source.domain, nats_name_rule);
  in.text("consumer", consumer.name, nats_name_rule);
  in.choice<ConsumerMode>("consumer_mode", source.mode,
                          {{"create", ConsumerMode::create}, {"bind", ConsumerMode::bind}});
  in.texts("subjects", consumer.subjects, pattern_rule, "is empty; name at least one, or leave the key out");
  in.text("deliver_policy", consumer.deliver_policy, deliver_policy_rule);
  in.count("start_sequence", consumer.start_sequence, 1, std::numeric_limits<std::int64_t>::max());
  in.text("start_time", consumer.start_time, time_rule);
  for (const auto& [key, policy] :
       {std::pair{"start_sequence", "by_start_sequence"}, {"start_time", "by_start_time"}}) {
    const bool given = in.has(key), wanted = consumer.deliver_policy == policy;
    if (given && !wanted) in.complain(key, std::string("belongs to deliver_policy = \"") + policy + '"');
    if (wanted && !given) in.complain(key, std::string("is missing; deliver_policy \"") + policy + "\" needs it");
  }
  in.flag("headers_only", consumer.headers_only);
  in.duration("ack_wait", consumer.ack_wait, 1s, 1h);
  in.count("max_ack_pending", consumer.max_ack_pending, 1, 1'000'000);
  in.count("max_deliver", consumer.max_deliver, 1, 1'000'000);
  std::vector<std::string> waits;
  in.texts("backoff", waits, duration_rule, "is empty; leave the key out for none");
  for (const std::string& wait : waits) consumer.backoff.push_back(parse_duration(wait).value_or(Nanoseconds(0)));
  in.choice<AckMode>("ack", source.ack, {{"sent", AckMode::sent}, {"confirmed", AckMode::confirmed}});
}

SourceConfig read_source(ConfigTable& in) {
  SourceConfig source;
  source.line = in.line();
  in.required_text("name", source.name, name_rule);
  enum class Type { nats } type{};
  in.required_choice<Type>("type", type, {{"nats", Type::nats}});
  read_address(in, source.address);
  in.required_text("stream", source.stream, nats_name_rule);
  read_consumer(in, source);
  source.identity = read_identity(in).value_or(IdentityRule());
  in.count("batch", source.batch, 1, 4096);
  in.choice<OnConflict>("on_conflict", source.on_conflict,
                        {{"quarantine", OnConflict::quarantine}, {"forward", OnConflict::forward}});
  in.choice<OnDuplicate>("on_duplicate", source.on_duplicate,
                         {{"skip", OnDuplicate::skip}, {"quarantine", OnDuplicate::quarantine}});
  in.text("dead_letter", source.dead_letter, subject_rule);
  return source;
}

RouteConfig read_route(ConfigTable& in) {
  RouteConfig route;
  route.line = in.line();
  if (!in.has("subjects")) in.complain("subjects", "is missing; name what this route takes, \">\" for everything");
  in.texts("subjects", route.subjects, pattern_rule, "is empty; name at least one");
  if (!in.has("targets")) in.complain("targets", "is missing; name where this route leads");
  in.texts("targets", route.targets, name_rule, "is empty; name at least one");
  std::string word = "normal";
  in.text("priority", word, [](std::string_view value) -> const char* {
    if (priority_from_text(value)) return nullptr;
    return "must be one of flash, immediate, urgent, high, normal, none, low, deferred";
  });
  route.priority = priority_from_text(word).value_or(kNormalPriority);
  route.identity = read_identity(in);
  return route;
}

void read_all(ConfigTable& top, Config& config) {
  top.section("appliance", true, [&](ConfigTable& in) { read_appliance(in, config); });
  top.section("spool", true, [&](ConfigTable& in) { read_spool(in, config); });
  top.section("control", false, [&](ConfigTable& in) { in.text("socket", config.control.socket, socket_rule); });
  top.each("source", [&](ConfigTable& in) { config.sources.push_back(read_source(in)); });
  top.each("target", [&](ConfigTable& in) { config.targets.push_back(read_target(in)); });
  top.each("route", [&](ConfigTable& in) { config.routes.push_back(read_route(in)); });
}

LoadedConfig failed(int line, std::string text) {
  LoadedConfig loaded;
  loaded.errors.push_back({line, "", std::move(text)});
  return loaded;
}

// All of the file, or why not.
Result<std::string> read_text(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return Error{ErrorKind::invalid, std::string("cannot be read: ") + std::strerror(errno)};
  struct stat facts {};
  std::string text;
  std::string wrong;
  if (::fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode)) {
    wrong = "is not a regular file";
  } else {
    text.resize(kMaxConfigBytes + 1);
    std::size_t filled = 0;
    ssize_t got = 0;
    while (filled < text.size() && (got = ::read(fd, text.data() + filled, text.size() - filled)) > 0)
      filled += static_cast<std::size_t>(got);
    text.resize(filled);
    if (got < 0) wrong = std::string("cannot be read: ") + std::strerror(errno);
  }
  ::close(fd);
  if (!wrong.empty()) return Error{ErrorKind::invalid, wrong};
  return text;
}

}  // namespace

LoadedConfig parse_config(std::string_view text) {
  if (text.size() > kMaxConfigBytes) return failed(1, "is larger than 1 MiB; that is no configuration");
  LoadedConfig loaded;
  Findings findings;
  const auto fault = ConfigTable::parse(text, findings, [&](ConfigTable& top) { read_all(top, loaded.config); });
  if (fault) return failed(fault->line, fault->text);
  check_rules(loaded.config, findings);
  loaded.errors = findings.errors();
  loaded.warnings = findings.warnings();
  loaded.errors_left_out = findings.left_out();
  return loaded;
}

LoadedConfig load_config(const std::string& path) {
  const Result<std::string> text = read_text(path);
  if (!text) return failed(1, text.error().text);
  return parse_config(*text);
}

}  // namespace holdfast
