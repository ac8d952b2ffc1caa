// The S3 target between the real program and a store of ours that keeps nothing, against the same client library in a
// tight loop over the same store: the difference is reading, signing and settling.
#include <fmt/format.h>

#include <fstream>

#include "forwarder/http_client.h"
#include "spool/check.h"
#include "tests/bench/bench_spool.h"
#include "tests/bench/figures.h"
#include "tests/bench/meter.h"
#include "tests/support/appliance.h"
#include "tests/support/http_stub.h"
#include "tests/support/jetstream_client.h"
#include "tests/support/nats_server.h"
#include "tests/support/patience.h"
#include "tests/support/temporary_directory.h"

namespace holdfast {
namespace {

constexpr Nanoseconds kPatience = std::chrono::minutes(5);

class S3Drain {
 public:
  explicit S3Drain(std::uint64_t count) : count_(count) {
    std::ofstream(credentials_) << "[default]\naws_access_key_id = A\naws_secret_access_key = s\n";
    JetStreamClient client(edge_.url());
    client.make_stream("EDGE", {"telemetry.>"});
    client.publish_many("telemetry.a", 1, count, kPayload);
  }

  // Records a second, from a backlog in files.
  double ours() {
    behave_as_store();
    store_.stop();
    const std::string target = fmt::format(
        "[[target]]\nname = \"bucket\"\ntype = \"s3\"\nendpoint = \"{}\"\nbucket = \"bench\"\ncredentials_file = "
        "\"{}\"\n",
        store_.url(""), credentials_);
    Appliance box(HOLDFAST_BINARY,
                  {nats_source(edge_.url(), "EDGE", fmt::format("consumer = \"s{}\"", ++consumers_)) + target, ""});
    box.start();
    CHECK(eventually([&] { return box.status()["backlog"]["in_files"].count() == count_; }, kPatience));
    store_.start();
    Meter meter(count_);
    watch(meter, [&] { return box.target("bucket")["delivered"].count(); });
    box.kill9();
    return meter.rate();
  }

  // The same puts from memory, signed once, in the same window.
  double plain() {
    behave_as_store();
    HttpClientOptions options;
    options.https_only = false;
    HttpClient client(options);
    const Bytes payload(kPayload, 'x');
    HttpRequest request;
    request.method = "PUT";
    request.url = store_.url("/bench/seq_3Abench_3AEDGE_3A1_3A1");
    request.headers = {{"Content-Type", "application/octet-stream"},
                       {"If-None-Match", "*"},
                       {"Authorization", std::string(300, 'a')},
                       {"x-amz-meta-holdfast-all", std::string(600, 'm')}};
    request.body = payload;
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
                    CHECK(response.status == 200 || response.status == 412);
                    meter.see(++answered);
                  })
              .ok());
    return meter.rate();
  }

 private:
  // Nothing has a name; the second put of a life is refused, which proves the condition.
  void behave_as_store() {
    store_.answer_with([puts = 0](const StubRequest& request) mutable {
      if (request.method != "PUT") return StubAnswer{404, {}, ""};
      if (++puts == 2) return StubAnswer{412, {}, ""};
      return StubAnswer{200, {{"ETag", "\"1\""}}, ""};
    });
  }

  const std::uint64_t count_;
  const TemporaryDirectory directory_;
  const std::string credentials_ = directory_ / "credentials";
  NatsServer edge_;
  HttpStub store_;
  int consumers_ = 0;
};

}  // namespace

void measure_s3(const Scale& scale) {
  S3Drain drain(scale.quick ? 6'000 : 30'000);
  const Pair pair = alternate(
      scale.quick ? 1 : 5, [&] { return drain.ours(); }, [&] { return drain.plain(); });
  report("drain_s3", pair.ours, pair.limit, "records/s");
}

}  // namespace holdfast
