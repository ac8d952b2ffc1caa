#include "appliance/surroundings.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "appliance/key_file.h"
#include "appliance/quantity.h"
#include "forwarder/nkey_file.h"
#include "forwarder/secret_file.h"
#include "spool/file_system.h"
#include "spool/path.h"

namespace holdfast {
namespace {

void check_key(const Config& config, Findings& findings) {
  const bool elsewhere = !config.key.credential.empty() && std::getenv("CREDENTIALS_DIRECTORY") == nullptr;
  if (elsewhere) return;  // only the service is given it
  const std::string spool = spool_directory(config);
  struct stat facts {};
  const uid_t owner = ::stat(spool.c_str(), &facts) == 0 ? facts.st_uid : ::geteuid();
  const auto key = read_key(config.key, owner);
  if (key.ok()) return;
  const char* name = config.key.file.empty() ? "spool.credential" : "spool.key_file";
  // Another user's to read, perhaps: this one cannot tell.
  const bool hidden = !config.key.file.empty() && ::access(config.key.file.c_str(), R_OK) != 0 && errno == EACCES;
  if (hidden) return findings.warning(config.spool_line, name, key.error().text);
  findings.error(config.spool_line, name, key.error().text);
}

void check_file(const std::string& path, const std::string& key, int line, Findings& findings) {
  if (path.empty() || ::access(path.c_str(), R_OK) == 0) return;
  findings.warning(line, key, path + " cannot be read: " + std::strerror(errno));
}

void check_address(const NatsAddress& address, const std::string& owner, int line, Findings& findings) {
  check_file(address.creds_file, owner + ".creds_file", line, findings);
  check_file(address.nkey_file, owner + ".nkey_file", line, findings);
  if (::access(address.creds_file.c_str(), R_OK) == 0 && !holds_credentials(address.creds_file))
    findings.error(line, owner + ".creds_file", address.creds_file + " holds no user's credentials (JWT and seed)");
  if (::access(address.nkey_file.c_str(), R_OK) == 0 && !public_key_of_seed_file(address.nkey_file))
    findings.error(line, owner + ".nkey_file", address.nkey_file + " holds no seed of a user");
  check_file(address.tls_ca, owner + ".tls_ca", line, findings);
  check_file(address.tls_cert, owner + ".tls_cert", line, findings);
  check_file(address.tls_key, owner + ".tls_key", line, findings);
}

void check_secret(const std::string& path, const std::string& key, int line, Findings& findings) {
  check_file(path, key, line, findings);
  if (path.empty() || ::access(path.c_str(), R_OK) != 0 || SecretFile(path).read().ok()) return;
  findings.error(line, key, path + " holds no single line of printable characters");
}

void check_http(const HttpTargetOptions& http, int line, Findings& findings) {
  check_file(http.client.tls_ca, "target.tls_ca", line, findings);
  check_file(http.client.tls_cert, "target.tls_cert", line, findings);
  check_file(http.client.tls_key, "target.tls_key", line, findings);
  check_secret(http.bearer_file, "target.bearer_file", line, findings);
  check_secret(http.basic_file, "target.basic_file", line, findings);
  check_secret(http.proxy_login_file, "target.proxy_login_file", line, findings);
}

void check_server(const SqlServer& server, int line, Findings& findings) {
  check_file(server.password_file, "target.password_file", line, findings);
  check_file(server.tls_ca, "target.tls_ca", line, findings);
  check_file(server.tls_cert, "target.tls_cert", line, findings);
  check_file(server.tls_key, "target.tls_key", line, findings);
}

void check_s3(const S3TargetOptions& s3, int line, Findings& findings) {
  check_file(s3.client.tls_ca, "target.tls_ca", line, findings);
  check_file(s3.client.tls_cert, "target.tls_cert", line, findings);
  check_file(s3.client.tls_key, "target.tls_key", line, findings);
  check_secret(s3.proxy_login_file, "target.proxy_login_file", line, findings);
  check_file(s3.credentials_file, "target.credentials_file", line, findings);
  if (::access(s3.credentials_file.c_str(), R_OK) != 0) return;
  if (S3CredentialsFile(s3.credentials_file, s3.profile).refresh().ok()) return;
  findings.error(
      line, "target.credentials_file",
      s3.credentials_file + " holds no aws_access_key_id and aws_secret_access_key under [" + s3.profile + "]");
}

// The directory, or the nearest above it that is there.
std::string nearest(std::string path) {
  struct stat facts {};
  while (path.size() > 1 && ::stat(path.c_str(), &facts) != 0) path = parent_path(path);
  return path.empty() ? "/" : path;
}

void check_room(const Config& config, Findings& findings) {
  const auto files = open_posix_file_system(nearest(spool_directory(config)));
  if (!files) return;
  const auto space = (*files)->space();
  if (!space) return;
  const SpoolLimits& limits = config.spool.limits;
  const int line = config.spool_line;
  if (!space->safe && !config.spool.allow_unsafe_fs)
    findings.warning(line, "appliance.state_dir",
                     "is on " + space->type +
                         ", whose syncs cannot be believed; `run` will refuse it without allow_unsafe_fs = true");
  if (limits.max_bytes + limits.min_free_bytes > space->total_bytes)
    findings.warning(line, "spool.max_bytes",
                     "with min_free_bytes is more than the file system has, " + bytes_text(space->total_bytes) +
                         "; the disk will be full first");
  if (space->total_inodes != 0 && limits.max_records > space->total_inodes)
    findings.warning(line, "spool.max_records",
                     "is more than the file system has inodes, " + count_text(space->total_inodes) +
                         "; each waiting record takes one");
}

}  // namespace

void check_surroundings(const Config& config, Findings& findings) {
  check_key(config, findings);
  check_room(config, findings);
  for (const SourceConfig& source : config.sources) check_address(source.address, "source", source.line, findings);
  for (const TargetConfig& target : config.targets) {
    if (const auto* nats = std::get_if<NatsTargetConfig>(&target.settings))
      check_address(nats->address, "target", target.line, findings);
    if (const auto* file = std::get_if<FileTargetConfig>(&target.settings))
      check_file(file->directory, "target.directory", target.line, findings);
    if (const auto* http = std::get_if<HttpTargetConfig>(&target.settings))
      check_http(http->options, target.line, findings);
    if (const auto* sql = std::get_if<SqlTargetConfig>(&target.settings))
      check_server(sql->server, target.line, findings);
    if (const auto* s3 = std::get_if<S3TargetConfig>(&target.settings)) check_s3(s3->options, target.line, findings);
  }
}

}  // namespace holdfast
