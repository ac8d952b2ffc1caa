// The real program between real servers, against a client that does the same over the wire and keeps nothing.
#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

#include "appliance/nats_source.h"
#include "forwarder/nats_target.h"
#include "spool/check.h"
#include "tests/bench/bench_spool.h"
#include "tests/bench/figures.h"
#include "tests/bench/meter.h"
#include "tests/support/appliance.h"
#include "tests/support/jetstream_client.h"
#include "tests/support/nats_server.h"
#include "tests/support/patience.h"

namespace holdfast {
namespace {

constexpr Nanoseconds kPatience = std::chrono::minutes(5);
constexpr std::size_t kWindow = 1024;
// What fits into the journal's three quarters: beyond that it is not the intake alone that is measured.
constexpr std::uint64_t kJournalled = 40u << 20;

std::uint64_t messages_of(std::size_t size, bool quick) {
  const std::uint64_t most = quick ? 12'000 : 60'000;
  return std::min<std::uint64_t>(most, kJournalled / (size + 256));
}

// Microseconds of processor time that a process has had (proc(5): fields 14 and 15 of stat, in clock ticks).
double processor_time_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(file, text);
  std::istringstream fields(text.substr(std::min(text.rfind(')') + 1, text.size())));
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK)) * 1e6;
}

class Servers {
 public:
  Servers() {
    NatsServerOptions wide;
    edge_ = std::make_unique<NatsServer>(wide);
    hub_ = std::make_unique<NatsServer>(wide);
    JetStreamClient(hub_->url()).make_stream("HUB", {"telemetry.>"});
  }

  void fill(std::size_t size, std::uint64_t count) {
    JetStreamClient client(edge_->url());
    client.make_stream("EDGE", {"telemetry.>"});
    client.publish_many("telemetry.a", 1, count, size);
    count_ = count;
  }
  void empty() { JetStreamClient(edge_->url()).delete_stream("EDGE"); }

  // Messages a second that the program takes in; there is no uplink, and all of it stays in the journal.
  double intake() {
    Appliance box(
        HOLDFAST_BINARY,
        {nats_source(edge_->url(), "EDGE", consumer()) + nats_target("hub", "nats://127.0.0.1:1"), "linger = \"10m\""});
    box.start();
    Meter meter(count_);
    const double before = processor_time_of(box.pid());
    watch(meter, [&] { return box.status()["accounting"]["taken"].count(); });
    processor_time.ours.push_back((processor_time_of(box.pid()) - before) / static_cast<double>(count_));
    box.kill9();
    return meter.rate();
  }

  // The same pulls and acknowledgements, and nothing else.
  double plain_intake() {
    NatsSourceOptions options;
    options.name = "edge";
    options.nats.url = edge_->url();
    options.stream = "EDGE";
    options.consumer.name = fmt::format("c{}", ++consumers_);
    StreamMemory nothing;
    nothing.last_committed = [](std::uint64_t) { return std::vector<StreamPosition>(); };
    nothing.first_committed = [] { return std::optional<std::uint64_t>(); };
    nothing.note = [](const StreamFloor&) {};
    NatsSource source(options, nothing);
    Meter meter(count_);
    const double before = processor_time_of(::getpid());
    for (std::uint64_t taken = 0; !meter.see(taken);) {
      auto some = source.pull(kBatch, std::chrono::seconds(1));
      CHECK(some.ok());
      if (some->empty()) continue;
      CHECK(source.acknowledge(*some).ok());
      taken += some->size();
    }
    processor_time.plain.push_back((processor_time_of(::getpid()) - before) / static_cast<double>(count_));
    return meter.rate();
  }

  // Messages a second that reach the hub, from a backlog in files.
  double drain() {
    hub_->kill();
    Appliance box(HOLDFAST_BINARY,
                  {nats_source(edge_->url(), "EDGE", consumer()) + nats_target("hub", hub_->url()), ""});
    box.start();
    CHECK(eventually([&] { return box.status()["backlog"]["in_files"].count() == count_; }, kPatience));
    hub_->start();
    Meter meter(count_);
    watch(meter, [&] { return box.target("hub")["delivered"].count(); });
    box.kill9();
    return meter.rate();
  }

  // The same publishes with the same window, from memory, and nothing is settled.
  double plain_drain(std::size_t size) {
    NatsTargetOptions options;
    options.site = kBenchSite;
    options.nats.url = hub_->url();
    NatsTarget target(options);
    const std::vector<DueRecord> records = in_memory(size);
    Meter meter(count_);
    std::uint64_t sent = 0;
    for (std::uint64_t delivered = 0; !meter.see(delivered);) {
      std::vector<Delivery> window;
      for (std::size_t i = 0; i < std::min<std::uint64_t>(kWindow, count_ - sent); ++i)
        window.push_back({&records[i % records.size()], fmt::format("plain-{}-{}", keys_, ++sent)});
      CHECK(target
                .deliver(window,
                         [&](std::size_t, const Outcome& outcome) {
                           CHECK(outcome.kind == OutcomeKind::delivered);
                           meter.see(++delivered);
                         })
                .ok());
    }
    ++keys_;
    return meter.rate();
  }

  // Of the intake, microseconds a record; one of each for every round.
  struct {
    std::vector<double> ours, plain;
  } processor_time;

 private:
  std::string consumer() { return fmt::format("consumer = \"c{}\"", ++consumers_); }

  static std::vector<DueRecord> in_memory(std::size_t size) {
    std::vector<DueRecord> records(std::min<std::size_t>(kWindow, (16u << 20) / size));
    for (std::size_t i = 0; i < records.size(); ++i) {
      records[i].sequence = i + 1;
      records[i].envelope.subject = "telemetry.a";
      records[i].envelope.payload = Bytes(size, 'x');
      records[i].envelope.origin = {"EDGE", i + 1, 1};
    }
    return records;
  }

  std::unique_ptr<NatsServer> edge_, hub_;
  std::uint64_t count_ = 0;
  int consumers_ = 0, keys_ = 0;
};

}  // namespace

void measure_servers(const Scale& scale) {
  Servers servers;
  std::vector<std::size_t> sizes{kPayload};
  if (!scale.quick) sizes.insert(sizes.end(), {128, 65536});
  for (const std::size_t size : sizes) {
    const std::string suffix = size == kPayload ? "" : "_" + std::to_string(size);
    servers.fill(size, messages_of(size, scale.quick));
    const Pair intake = alternate(
        scale.quick ? 3 : 9, [&] { return servers.intake(); }, [&] { return servers.plain_intake(); });
    report("intake_throughput" + suffix, intake.ours, intake.limit, "records/s");
    auto& [ours, plain] = servers.processor_time;
    report("intake_cpu" + suffix, median(std::exchange(ours, {})), median(std::exchange(plain, {})), "us/record");
    const Pair drain = alternate(
        scale.quick ? 1 : 7, [&] { return servers.drain(); }, [&] { return servers.plain_drain(size); });
    report("drain_throughput" + suffix, drain.ours, drain.limit, "records/s");
    servers.empty();
  }
}

}  // namespace holdfast
