#include "appliance/endpoints.h"

#include "appliance/nats_source.h"
#include "appliance/target_options.h"

namespace holdfast {
namespace {

std::unique_ptr<Target> make(const NatsTargetConfig& config, const std::string& name, const std::string& site) {
  return std::make_unique<NatsTarget>(target_options(config, name, site));
}

std::unique_ptr<Target> make(const FileTargetConfig& config, const std::string& name, const std::string& site) {
  if (config.archive) return std::make_unique<ArchiveTarget>(opens(config), archive_options(config, name, site));
  return std::make_unique<FileTarget>(opens(config), target_options(config, name, site));
}

std::unique_ptr<Target> make(const HttpTargetConfig& config, const std::string& name, const std::string& site) {
  return std::make_unique<HttpTarget>(target_options(config, name, site));
}

std::unique_ptr<Target> make(const SqlTargetConfig& config, const std::string& name, const std::string& site) {
  return std::make_unique<SqlTarget>(config.dialect, target_options(config, name, site));
}

std::unique_ptr<Target> make(const S3TargetConfig& config, const std::string& name, const std::string& site) {
  return std::make_unique<S3Target>(target_options(config, name, site));
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
