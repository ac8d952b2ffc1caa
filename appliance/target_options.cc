#include "appliance/target_options.h"

namespace holdfast {

NatsOptions nats_options(const NatsAddress& address, const std::string& name) {
  NatsOptions options;
  options.url = address.url;
  options.creds_file = address.creds_file;
  options.nkey_file = address.nkey_file;
  options.tls_ca = address.tls_ca;
  options.tls_cert = address.tls_cert;
  options.tls_key = address.tls_key;
  options.client_name = "holdfast-" + name;
  return options;
}

NatsTargetOptions target_options(const NatsTargetConfig& config, const std::string& name, const std::string& site) {
  NatsTargetOptions options;
  options.site = site;
  options.nats = nats_options(config.address, name);
  options.to.stream = config.stream;
  options.to.subject = SubjectTemplate::parse(config.subject);  // nothing of an empty one
  if (!config.bucket.empty())
    options.to.bucket = NatsBucket{config.bucket, SubjectTemplate::parse(config.key), config.existing};
  return options;
}

FileTargetOptions target_options(const FileTargetConfig& config, const std::string& name, const std::string& site) {
  FileTargetOptions options;
  options.format = config.format;
  options.layout = config.layout;
  options.compression = config.compression;
  options.writer = site + '-' + name;
  return options;
}

ArchiveOptions archive_options(const FileTargetConfig& config, const std::string& name, const std::string& site) {
  ArchiveOptions options;
  options.writer = site + '-' + name;
  options.rotate_bytes = config.rotate_bytes;
  options.rotate_after = config.rotate_after;
  return options;
}

HttpTargetOptions target_options(const HttpTargetConfig& config, const std::string& name, const std::string& site) {
  HttpTargetOptions options = config.options;
  options.site = site;
  options.client.user_agent = "holdfast-" + name;
  return options;
}

S3TargetOptions target_options(const S3TargetConfig& config, const std::string& name, const std::string& site) {
  S3TargetOptions options = config.options;
  options.naming.site = site;
  options.client.user_agent = "holdfast-" + name;
  return options;
}

SqlTargetOptions target_options(const SqlTargetConfig& config, const std::string& name, const std::string& site) {
  SqlTargetOptions options;
  options.site = site;
  options.server = config.server;
  options.server.client_name = "holdfast-" + name;
  options.tables = config.tables;
  options.batch = config.batch;
  options.batch_bytes = config.batch_bytes;
  return options;
}

OpenDirectory opens(const FileTargetConfig& config) {
  return [directory = config.directory] { return open_posix_file_system(directory); };
}

}  // namespace holdfast
