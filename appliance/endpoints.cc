#include "appliance/endpoints.h"

#include "appliance/nats_source.h"
#include "forwarder/file_target.h"
#include "forwarder/nats_target.h"

namespace holdfast {
namespace {

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

std::unique_ptr<Target> make(const NatsTargetConfig& config, const std::string& name, const std::string& site) {
  NatsTargetOptions options;
  options.site = site;
  options.nats = nats_options(config.address, name);
  return std::make_unique<NatsTarget>(std::move(options));
}

std::unique_ptr<Target> make(const FileTargetConfig& config, const std::string& name, const std::string& site) {
  FileTargetOptions options;
  options.format = config.format;
  options.writer = site + '-' + name;
  return std::make_unique<FileTarget>([directory = config.directory] { return open_posix_file_system(directory); },
                                      std::move(options));
}

std::unique_ptr<Target> make(const HttpTargetConfig& config, const std::string& name, const std::string& site) {
  HttpTargetOptions options = config.options;
  options.site = site;
  options.client.user_agent = "holdfast-" + name;
  return std::make_unique<HttpTarget>(std::move(options));
}

std::unique_ptr<Target> make(const S3TargetConfig& config, const std::string& name, const std::string& site) {
  S3TargetOptions options = config.options;
  options.naming.site = site;
  options.client.user_agent = "holdfast-" + name;
  return std::make_unique<S3Target>(std::move(options));
}

}  // namespace

std::unique_ptr<Source> make_source(const SourceConfig& config, Spool& spool) {
  NatsSourceOptions options;
  options.name = config.name;
  options.nats = nats_options(config.address, config.name);
  options.stream = config.stream;
  options.consumer = config.consumer;
  options.domain = config.domain;
  options.bind_only = config.mode == ConsumerMode::bind;
  options.confirmed = config.ack == AckMode::confirmed;
  options.batch = config.batch;
  StreamMemory memory;
  memory.last_committed = [&spool, stream = config.stream](std::uint64_t at_or_below) {
    return spool.last_committed(stream, at_or_below);
  };
  memory.first_committed = [&spool, stream = config.stream] { return spool.first_committed(stream); };
  memory.note = [&spool, source = config.name](const StreamFloor& floor) { spool.note_stream(source, floor); };
  return std::make_unique<NatsSource>(std::move(options), std::move(memory));
}

std::unique_ptr<DeadLetters> make_dead_letters(const SourceConfig& config, const std::string& site) {
  if (config.dead_letter.empty()) return std::make_unique<DeadLetters>(nullptr, "");
  NatsTargetOptions options;
  options.site = site;
  options.nats = nats_options(config.address, config.name + "-dead-letters");
  return std::make_unique<DeadLetters>(std::make_unique<NatsTarget>(std::move(options)), config.dead_letter);
}

std::unique_ptr<Target> make_target(const TargetConfig& config, const std::string& site) {
  return std::visit([&](const auto& settings) { return make(settings, config.name, site); }, config.settings);
}

}  // namespace holdfast
