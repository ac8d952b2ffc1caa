#include "appliance/certified_endpoints.h"

#include "appliance/target_options.h"
#include "forwarder/file_readback.h"
#include "forwarder/http_readback.h"
#include "forwarder/http_url.h"
#include "forwarder/nats_conditions.h"
#include "forwarder/nats_readback.h"
#include "forwarder/nats_url.h"
#include "forwarder/sql_readback.h"

namespace holdfast {
namespace {

constexpr auto kSlack = std::chrono::seconds(2);  // of a connect beyond its limit

// A record that no server takes: it is refused here, and nothing is sent.
void make_oversize(DueRecord& record) {
  constexpr std::size_t kAboveAnyServer = (64u << 20) + 1;  // nats-server allows max_payload up to 64 MiB
  record.envelope.payload.assign(kAboveAnyServer, '.');
}

CertifiedTarget certified(const NatsTargetConfig& config, const std::string& name, const std::string& site,
                          const std::string& subject) {
  CertifiedTarget target;
  const NatsTargetOptions options = target_options(config, name, site);
  target.make = [options](const std::string& connect_to) {
    NatsTargetOptions led = options;
    led.nats.connect_to = connect_to;
    return std::make_unique<NatsTarget>(std::move(led));
  };
  const auto endpoints = parse_nats_url(config.address.url);
  if (endpoints) target.upstream_address = host_and_port(endpoints->front());
  target.readback = make_nats_readback(options);
  target.keeps_order = true;
  target.deadline = options.nats.connect_limit + options.progress_limit + kSlack;
  target.conditions = [options, subject] { return ask_nats_conditions(options, subject); };
  target.provocations.push_back(
      {"oversize", make_oversize, OutcomeKind::rejected, "a record that no server takes is refused before it is sent"});
  return target;
}

// Two that write to one directory need two names.
template <typename Kind, typename Options>
CertifiedTarget certified_directory(const FileTargetConfig& config, const Options& options) {
  CertifiedTarget target;
  int writers = 0;
  target.make = [config, options, writers](const std::string&) mutable {
    Options own = options;
    own.writer += "-certify-" + std::to_string(++writers);
    return std::make_unique<Kind>(opens(config), std::move(own));
  };
  target.local = true;
  return target;
}

// Of an archive each writer has files of its own: what another process makes of a repeat cannot be tried.
CertifiedTarget certified(const FileTargetConfig& config, const std::string& name, const std::string& site,
                          const std::string&) {
  if (!config.archive) {
    const FileTargetOptions options = target_options(config, name, site);
    CertifiedTarget target = certified_directory<FileTarget>(config, options);
    target.readback = make_file_readback(opens(config), options);
    return target;
  }
  ArchiveOptions options = archive_options(config, name, site);
  options.writer += "-certify";
  CertifiedTarget target;
  target.make = [config, options](const std::string&) {
    return std::make_unique<ArchiveTarget>(opens(config), options);
  };
  target.local = true;
  target.readback = make_archive_readback(opens(config), options);
  return target;
}

// host:port of a URL, its scheme's own port where it names none.
std::string address_of(const HttpUrl& url, const std::string& host_name) {
  const std::string host = host_name.find(':') == std::string::npos ? host_name : '[' + host_name + ']';
  const std::string port = !url.port.empty() ? url.port : url.scheme == "https" ? "443" : "80";
  return host + ':' + port;
}

CertifiedTarget certified(const HttpTargetConfig& config, const std::string& name, const std::string& site,
                          const std::string&) {
  CertifiedTarget target;
  const HttpTargetOptions options = target_options(config, name, site);
  const auto url = parse_http_url(options.url);
  // A proxy is what is connected to, and would be asked for the address of ours.
  if (url && options.client.proxy.empty()) target.upstream_address = address_of(*url, url->host);
  target.make = [options, address = target.upstream_address](const std::string& connect_to) {
    HttpTargetOptions led = options;
    if (!connect_to.empty()) led.client.connect_to = {address + ':' + connect_to};
    return std::make_unique<HttpTarget>(std::move(led));
  };
  if (!config.verify_url.empty()) target.readback = make_http_readback(config.verify_url, options);
  target.to_see = "give it a verify_url";
  target.deadline = options.client.connect_limit + options.client.deadline + kSlack;
  return target;
}

CertifiedTarget certified(const S3TargetConfig& config, const std::string& name, const std::string& site,
                          const std::string&) {
  CertifiedTarget target;
  const S3TargetOptions options = target_options(config, name, site);
  const auto url = parse_s3_endpoint(options.place.endpoint);
  if (url && options.client.proxy.empty()) {
    const std::string bucket_before = options.place.virtual_host ? options.place.bucket + '.' : "";
    target.upstream_address = address_of(*url, bucket_before + url->host);
  }
  target.make = [options, address = target.upstream_address](const std::string& connect_to) {
    S3TargetOptions led = options;
    if (!connect_to.empty()) led.client.connect_to = {address + ':' + connect_to};
    return std::make_unique<S3Target>(std::move(led));
  };
  target.readback = make_s3_readback(options);
  target.deadline = options.client.connect_limit + options.client.deadline + kSlack;
  return target;
}

CertifiedTarget certified(const SqlTargetConfig& config, const std::string& name, const std::string& site,
                          const std::string&) {
  CertifiedTarget target;
  const SqlTargetOptions options = target_options(config, name, site);
  const SqlServer& server = options.server;
  const bool is_socket = server.host.starts_with('/');
  // A certificate that MariaDB's library compares with the name of the proxy says nothing of the server.
  const bool name_is_lost = config.dialect == SqlDialect::mysql && server.tls != SqlTls::off;
  if (!is_socket && !name_is_lost) {
    const std::string host = server.host.find(':') == std::string::npos ? server.host : '[' + server.host + ']';
    target.upstream_address = server.connect_to.empty() ? host + ':' + std::to_string(server.port) : server.connect_to;
  }
  target.make = [options, dialect = config.dialect](const std::string& connect_to) {
    SqlTargetOptions led = options;
    if (!connect_to.empty()) led.server.connect_to = connect_to;
    return std::make_unique<SqlTarget>(dialect, std::move(led));
  };
  target.readback =
      config.dialect == SqlDialect::postgres ? make_postgres_readback(options) : make_mysql_readback(options);
  target.deadline = server.connect_limit + server.statement_limit + server.statement_limit / 2 + kSlack;
  return target;
}

}  // namespace

CertifiedTarget make_certified_target(const TargetConfig& config, const std::string& site, const std::string& subject) {
  return std::visit([&](const auto& settings) { return certified(settings, config.name, site, subject); },
                    config.settings);
}

}  // namespace holdfast
