#include "appliance/endpoints.h"

#include "appliance/nats_source.h"
#include "forwarder/file_readback.h"
#include "forwarder/file_target.h"
#include "forwarder/nats_conditions.h"
#include "forwarder/nats_readback.h"
#include "forwarder/nats_target.h"
#include "forwarder/nats_url.h"

namespace holdfast {
namespace {

constexpr auto kSlack = std::chrono::seconds(2);  // of a connect beyond its limit

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

NatsTargetOptions options_of(const NatsTargetConfig& config, const std::string& name, const std::string& site) {
  NatsTargetOptions options;
  options.site = site;
  options.nats = nats_options(config.address, name);
  return options;
}

std::unique_ptr<Target> make(const NatsTargetConfig& config, const std::string& name, const std::string& site) {
  return std::make_unique<NatsTarget>(options_of(config, name, site));
}

FileTargetOptions options_of(const FileTargetConfig& config, const std::string& name, const std::string& site) {
  FileTargetOptions options;
  options.format = config.format;
  options.writer = site + '-' + name;
  return options;
}

OpenDirectory opens(const FileTargetConfig& config) {
  return [directory = config.directory] { return open_posix_file_system(directory); };
}

std::unique_ptr<Target> make(const FileTargetConfig& config, const std::string& name, const std::string& site) {
  return std::make_unique<FileTarget>(opens(config), options_of(config, name, site));
}

// --- For certification: one function for each kind of target

// A record that no server takes: it is refused here, and nothing is sent.
void make_oversize(DueRecord& record) {
  constexpr std::size_t kAboveAnyServer = (64u << 20) + 1;  // nats-server allows max_payload up to 64 MiB
  record.envelope.payload.assign(kAboveAnyServer, '.');
}

CertifiedTarget certified(const NatsTargetConfig& config, const std::string& name, const std::string& site,
                          const std::string& subject) {
  CertifiedTarget target;
  const NatsTargetOptions options = options_of(config, name, site);
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
  target.conditions = [options, subject] { return ask_nats_conditions(options.nats, subject); };
  target.provocations.push_back(
      {"oversize", make_oversize, OutcomeKind::rejected, "a record that no server takes is refused before it is sent"});
  return target;
}

CertifiedTarget certified(const FileTargetConfig& config, const std::string& name, const std::string& site,
                          const std::string&) {
  CertifiedTarget target;
  const FileTargetOptions options = options_of(config, name, site);
  int writers = 0;
  // Two that write to one directory need two names.
  target.make = [config, options, writers](const std::string&) mutable {
    FileTargetOptions own = options;
    own.writer += "-certify-" + std::to_string(++writers);
    return std::make_unique<FileTarget>(opens(config), std::move(own));
  };
  target.local = true;
  target.readback = make_file_readback(opens(config), options);
  return target;
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

CertifiedTarget make_certified_target(const TargetConfig& config, const std::string& site, const std::string& subject) {
  return std::visit([&](const auto& settings) { return certified(settings, config.name, site, subject); },
                    config.settings);
}

}  // namespace holdfast
