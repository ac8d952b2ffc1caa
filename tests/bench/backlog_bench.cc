// A long outage: what it costs to take everything into files, what a start costs with all of it there, and in what
// memory.
#include <fmt/format.h>

#include "spool/check.h"
#include "tests/bench/bench_spool.h"
#include "tests/bench/figures.h"
#include "tests/bench/meter.h"
#include "tests/bench/plain_writer.h"
#include "tests/support/appliance.h"
#include "tests/support/jetstream_client.h"
#include "tests/support/nats_server.h"
#include "tests/support/patience.h"
#include "tests/support/remove_tree.h"

namespace holdfast {
namespace {

constexpr std::size_t kFullJournal = 36'000;  // records: three of the journal's four segments
constexpr std::size_t kQuickJournal = kFullJournal / 3;
constexpr Nanoseconds kPatience = std::chrono::minutes(5);

// Records a second, until all are in files; the directory stays. And of each tenth, as it is committed.
struct Taken {
  double rate = 0;
  std::vector<double> tenths;
};
Taken take_into_files(const std::string& directory, const std::string& key_file, std::uint64_t records) {
  BenchSpool box(directory, key_file);
  box.keep_house();
  Taken taken;
  const Nanoseconds began = system_clock().monotonic();
  for (std::uint64_t put = 0, tenth = 1; tenth <= 10; ++tenth) {
    const Nanoseconds tenth_began = system_clock().monotonic();
    const std::uint64_t first = put;
    for (; put < records * tenth / 10; put += kBatch)
      box.put(box.batch(std::min<std::uint64_t>(kBatch, records - put)));
    taken.tenths.push_back(static_cast<double>(put - first) / seconds_since(tenth_began));
  }
  box.close();
  taken.rate = static_cast<double>(records) / seconds_since(began);
  return taken;
}

// A clean stop with so many records in the journal: all of it goes into files.
double stop_with_journal(const std::string& directory, std::size_t records) {
  BenchSpool box(directory);
  for (std::size_t put = 0; put < records; put += kBatch) box.put(box.batch(kBatch));
  const Nanoseconds began = system_clock().monotonic();
  box.close();
  return seconds_since(began);
}

double write_plain_files(const std::string& directory, std::uint64_t records) {
  PlainFiles files(directory);
  // As large as a record file of the same message.
  const Bytes content(kPayload + 256, 'x');
  const Nanoseconds began = system_clock().monotonic();
  for (std::uint64_t written = 0; written < records;) {
    for (std::size_t i = 0; i < kBatch && written < records; ++i) files.write(written++, content);
    files.sync_all();
  }
  return static_cast<double>(records) / seconds_since(began);
}

// The program with that backlog: from its start to the first message at the hub, and its memory while none can leave.
void measure_start(Appliance& box, NatsServer& hub, std::uint64_t records, const std::string& suffix) {
  hub.kill();
  box.start();
  CHECK(eventually([&] { return !box.status()["reconciling"].flag(); }, kPatience));
  CHECK(box.status()["backlog"]["in_files"].count() == records);
  report("rss_" + suffix, mebibytes_of(box.pid()), 64, "MiB");
  box.kill9();

  hub.start();
  JetStreamClient(hub.url()).make_stream("HUB", {"telemetry.>"});
  JetStreamClient client(hub.url());
  const Nanoseconds began = system_clock().monotonic();
  box.launch();
  CHECK(eventually([&] { return client.stream("HUB").messages > 0; }, kPatience));
  report("restart_" + suffix, seconds_since(began), 2, "s");
  box.kill9();
}

}  // namespace

void measure_backlog(const Scale& scale) {
  const std::uint64_t records = scale.quick ? 100'000 : 1'000'000;
  NatsServer hub;
  Appliance box(HOLDFAST_BINARY, {nats_source("nats://127.0.0.1:1", "EDGE") + nats_target("hub", hub.url()),
                                  "max_bytes = \"100GiB\"", scale.directory + "/state"});
  // Removed only at the end: ext4 looks long for an inode where many have just been deleted.
  const double limit = write_plain_files(scale.directory + "/plain", scale.quick ? records / 8 : records);
  const Taken ours = take_into_files(box.spool(), box.key_file(), records);
  report("backlog_intake", ours.rate, limit, "records/s");
  // What comes first goes into the journal; from the middle on each record makes room for itself.
  report("backlog_growth", ours.tenths[9], ours.tenths[5], "records/s");
  report("clean_stop", stop_with_journal(scale.directory + "/stop", scale.quick ? kQuickJournal : kFullJournal), 20,
         "s");
  measure_start(box, hub, records, scale.quick ? "100k" : "1m");
  remove_tree(box.state());
  remove_tree(scale.directory + "/plain");
}

}  // namespace holdfast
