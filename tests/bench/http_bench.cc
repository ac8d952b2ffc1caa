// The HTTP target between the real program and a real nginx, against the same client library in a tight loop; and what
// the number of requests at once is worth, near and far.
#include <fmt/format.h>

#include "forwarder/http_target.h"
#include "spool/check.h"
#include "tests/bench/bench_spool.h"
#include "tests/bench/figures.h"
#include "tests/bench/meter.h"
#include "tests/support/appliance.h"
#include "tests/support/http_stub.h"
#include "tests/support/jetstream_client.h"
#include "tests/support/nats_server.h"
#include "tests/support/nginx_server.h"
#include "tests/support/patience.h"

namespace holdfast {
namespace {

constexpr Nanoseconds kPatience = std::chrono::minutes(5);

NginxOptions without_a_log() {
  NginxOptions options;
  options.logs = false;
  return options;
}

class HttpDrain {
 public:
  explicit HttpDrain(std::uint64_t count) : count_(count), nginx_(without_a_log()) {
    JetStreamClient client(edge_.url());
    client.make_stream("EDGE", {"telemetry.>"});
    client.publish_many("telemetry.a", 1, count, kPayload);
  }

  // Records a second, from a backlog in files.
  double ours() {
    nginx_.stop();
    const std::string target = fmt::format("[[target]]\nname = \"api\"\ntype = \"http\"\nurl = \"{}\"\n", nginx_.url());
    Appliance box(HOLDFAST_BINARY,
                  {nats_source(edge_.url(), "EDGE", fmt::format("consumer = \"h{}\"", ++consumers_)) + target, ""});
    box.start();
    CHECK(eventually([&] { return box.status()["backlog"]["in_files"].count() == count_; }, kPatience));
    nginx_.start();
    Meter meter(count_);
    watch(meter, [&] { return box.target("api")["delivered"].count(); });
    box.kill9();
    return meter.rate();
  }

  // The same requests from memory, in the same window.
  double plain() {
    HttpClientOptions options;
    options.https_only = false;
    HttpClient client(options);
    DueRecord record;
    record.sequence = 1;
    record.envelope.subject = "telemetry.a";
    record.envelope.origin = {"EDGE", 1, 1};
    record.envelope.payload = Bytes(kPayload, 'x');
    const Delivery delivery{&record, "seq:bench:EDGE:1:1"};
    HttpRequest request;
    request.method = "POST";
    request.url = nginx_.url();
    request.headers = http_record_headers(delivery, kBenchSite, HttpBody::raw);
    request.headers.push_back({"Idempotency-Key", delivery.wire_key});
    request.headers.push_back({"Content-Type", "application/octet-stream"});
    request.body = record.envelope.payload;
    Meter meter(count_);
    std::uint64_t sent = 0, answered = 0;
    CHECK(client
              .carry(
                  [&]() -> std::optional<HttpRequest> {
                    if (sent == count_) return std::nullopt;
                    ++sent;
                    return request;
                  },
                  [&](std::size_t, const HttpResponse& response) {
                    CHECK(response.status == 204);
                    meter.see(++answered);
                  })
              .ok());
    return meter.rate();
  }

 private:
  const std::uint64_t count_;
  NatsServer edge_;
  NginxServer nginx_;
  int consumers_ = 0;
};

// Records a second through the target alone, with so many requests at once.
double rate_of(const std::string& url, std::size_t in_flight, std::size_t count) {
  HttpTargetOptions options;
  options.site = kBenchSite;
  options.url = url;
  options.client.https_only = false;
  options.client.window = in_flight;
  HttpTarget target(options);
  std::vector<DueRecord> records(count);
  std::vector<Delivery> window;
  for (std::size_t i = 0; i < count; ++i) {
    records[i].sequence = i + 1;
    records[i].envelope.subject = "telemetry.a";
    records[i].envelope.payload = Bytes(kPayload, 'x');
    window.push_back({&records[i], fmt::format("msg:{}", i)});
  }
  const auto began = system_clock().monotonic();
  std::size_t delivered = 0;
  CHECK(target
            .deliver(window,
                     [&](std::size_t, const Outcome& outcome) { delivered += outcome.kind == OutcomeKind::delivered; })
            .ok());
  CHECK(delivered == count);
  return static_cast<double>(count) / seconds_since(began);
}

}  // namespace

void measure_http(const Scale& scale) {
  if (!why_no_nginx().empty()) return;
  {
    HttpDrain drain(scale.quick ? 6'000 : 30'000);
    const Pair pair = alternate(
        scale.quick ? 1 : 5, [&] { return drain.ours(); }, [&] { return drain.plain(); });
    report("drain_http", pair.ours, pair.limit, "records/s");
  }
  if (scale.quick) return;
  NginxServer near(without_a_log());
  HttpStub far([](const StubRequest&) { return StubAnswer{204, {}, "", std::chrono::milliseconds(100)}; });
  for (const std::size_t in_flight : {1, 4, 8, 16, 32, 64, 128}) {
    const std::string name = fmt::format("http_in_flight_{}", in_flight);
    report(name, rate_of(near.url(), in_flight, 10'000), rate_of(near.url(), 32, 10'000), "records/s");
    report(name + "_100ms", rate_of(far.url(), in_flight, in_flight * 20), static_cast<double>(in_flight) * 10,
           "records/s");
  }
}

}  // namespace holdfast
