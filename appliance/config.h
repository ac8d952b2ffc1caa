// The configuration as values, all defaults included (holdfast.toml(5)). Who holds a Config from load_config()
// without errors holds one that was checked: names are unique, routes name targets that exist, sizes are possible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "appliance/consumer_fit.h"
#include "forwarder/compression.h"
#include "forwarder/file_content.h"
#include "forwarder/file_name.h"
#include "forwarder/http_target.h"
#include "forwarder/nats_bucket.h"
#include "forwarder/s3_target.h"
#include "forwarder/sql_options.h"
#include "spool/identity.h"
#include "spool/priority.h"
#include "spool/spool.h"

namespace holdfast {

// automatic: for the journal where there is one, else text.
enum class LogFormat : std::uint8_t { automatic, text, json };
enum class LogLevel : std::uint8_t { debug, info, warning, error };

struct ApplianceConfig {
  std::string site;  // scopes identities
  std::string state_dir = "/var/lib/holdfast";
  LogLevel log_level = LogLevel::info;
  LogFormat log_format = LogFormat::automatic;
};

// Just one of the two is set: a file, or the name of a systemd credential.
struct KeyPlace {
  std::string file;
  std::string credential;
};

// How a NATS server is reached. Paths are absolute, empty when not given.
struct NatsAddress {
  std::string url;
  std::string creds_file;
  std::string nkey_file;
  std::string tls_ca;
  std::string tls_cert;
  std::string tls_key;
};

enum class ConsumerMode : std::uint8_t { create, bind };  // bind: one that is not there is waited for
enum class AckMode : std::uint8_t { sent, confirmed };

struct SourceConfig {
  std::string name;
  NatsAddress address;
  std::string domain;  // of JetStream
  std::string stream;
  ConsumerWish consumer;
  ConsumerMode mode = ConsumerMode::create;
  AckMode ack = AckMode::sent;
  IdentityRule identity;
  OnConflict on_conflict = OnConflict::quarantine;
  OnDuplicate on_duplicate = OnDuplicate::skip;
  std::string dead_letter;  // a subject; empty: what is refused goes to quarantine
  std::size_t batch = 256;
  int line = 0;  // of the file, for what is said about it
};

struct NatsTargetConfig {
  NatsAddress address;
  std::string stream;   // the only one that may take the records; empty: whichever does
  std::string subject;  // a SubjectTemplate; empty: as it is
  std::string bucket;   // of keys and values; empty: a stream
  std::string key;      // a SubjectTemplate; empty: the wire key
  ExistingValue existing = ExistingValue::fail;
};

struct FileTargetConfig {
  std::string directory;  // absolute
  FileFormat format = FileFormat::json;
  FileLayout layout = FileLayout::flat;
  Compression compression = Compression::none;
  bool archive = false;  // format = "ndjson": lines of a file that is rotated
  std::uint64_t rotate_bytes = 64u << 20;
  Nanoseconds rotate_after = std::chrono::hours(1);
};

struct HttpTargetConfig {
  HttpTargetOptions options;  // all but the site
  std::string verify_url;     // where certification asks for copies; empty: not at all
};

struct SqlTargetConfig {
  SqlDialect dialect = SqlDialect::postgres;
  SqlServer server;
  std::vector<SqlTable> tables;
  std::size_t batch = SqlTargetOptions().batch;
  std::size_t batch_bytes = SqlTargetOptions().batch_bytes;
};

struct S3TargetConfig {
  S3TargetOptions options;  // all but the site
};

using TargetSettings =
    std::variant<NatsTargetConfig, FileTargetConfig, HttpTargetConfig, S3TargetConfig, SqlTargetConfig>;

struct TargetConfig {
  std::string name;
  bool required = true;
  Drain order = Drain::fifo;
  std::size_t window = 1024;
  std::size_t window_bytes = 16u << 20;
  TargetSettings settings;
  int line = 0;
};

struct RouteConfig {
  std::vector<std::string> subjects;
  std::vector<std::string> targets;
  Priority priority = kNormalPriority;
  std::optional<IdentityRule> identity;  // none: that of the source
  int line = 0;
};

struct ControlConfig {
  std::string socket = "/run/holdfast/control.sock";
};

struct Config {
  ApplianceConfig appliance;
  KeyPlace key;
  SpoolOptions spool;  // `site` is appliance.site
  int spool_line = 0;
  std::vector<SourceConfig> sources;
  std::vector<TargetConfig> targets;
  std::vector<RouteConfig> routes;  // none were written: one that sends everything everywhere
  ControlConfig control;
};

inline std::string spool_directory(const Config& config) {
  return config.appliance.state_dir + "/spool";
}

}  // namespace holdfast
