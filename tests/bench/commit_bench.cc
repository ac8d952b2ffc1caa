// What a commit costs, against the least that durable and sealed can cost.
#include <algorithm>
#include <filesystem>

#include "tests/bench/bench_spool.h"
#include "tests/bench/figures.h"
#include "tests/bench/plain_writer.h"
#include "tests/support/remove_tree.h"

namespace holdfast {
namespace {

constexpr std::size_t kBatches = 40;  // of a round: they fit one segment
constexpr int kLap = 5;  // rounds until each segment of the ring is there: it is made once, as the plain log is
constexpr std::uint64_t kLogBytes = 64u << 20;
constexpr std::size_t kMostAtOnce = 4u << 20;

double commit_rate(BenchSpool& box, std::size_t size) {
  const std::size_t batches = std::max<std::size_t>(2, kBatches * kPayload / std::max(size, kPayload));
  std::vector<std::vector<Arrival>> arrivals;
  for (std::size_t i = 0; i < batches; ++i) arrivals.push_back(box.batch(kBatch, size));
  const Nanoseconds began = system_clock().monotonic();
  for (const auto& batch : arrivals) box.put(batch);
  const double rate = static_cast<double>(batches * kBatch) / seconds_since(began);
  box.drain();
  return rate;
}

// The same bytes: what a record says, its envelope and key. No more is written at once than the spool writes.
double plain_rate(BenchSpool& box, PlainLog& log, PlainSealer& sealer, std::size_t size) {
  const std::size_t batches = std::max<std::size_t>(2, kBatches * kPayload / std::max(size, kPayload));
  const Arrival arrival = box.batch(1, size).front();
  Bytes body, batch;
  encode_body(arrival.identity.key, arrival.envelope, body);
  const Nanoseconds began = system_clock().monotonic();
  for (std::size_t i = 0; i < batches; ++i) {
    for (std::size_t record = 0; record < kBatch; ++record) {
      sealer.seal(body, batch);
      if (record + 1 < kBatch && batch.size() < kMostAtOnce) continue;
      log.append(batch);
      batch.clear();
    }
  }
  return static_cast<double>(batches * kBatch) / seconds_since(began);
}

double naive_rate(const std::string& directory, int records) {
  std::filesystem::create_directories(directory);
  const Bytes payload(kPayload, 'x');
  const Nanoseconds began = system_clock().monotonic();
  for (int i = 0; i < records; ++i) write_alone(directory, static_cast<std::uint64_t>(i), payload);
  const double rate = records / seconds_since(began);
  remove_tree(directory);
  return rate;
}

// Microseconds, the middle of many, ours and a plain write in turn.
Pair latency(BenchSpool& box, PlainLog& log, int times) {
  Bytes block(4096, 'x');
  return alternate(
      times,
      [&] {
        const auto one = box.batch(1);
        const Nanoseconds began = system_clock().monotonic();
        box.put(one);
        return seconds_since(began) * 1e6;
      },
      [&] {
        const Nanoseconds began = system_clock().monotonic();
        log.append(block);
        return seconds_since(began) * 1e6;
      });
}

}  // namespace

void measure_commits(const Scale& scale) {
  const std::string directory = scale.directory + "/commit";
  BenchSpool box(directory + "/spool");
  PlainLog log(directory + "/log", kLogBytes);
  PlainSealer sealer;
  Pair kibibyte;
  for (int round = 0; round < kLap; ++round) (void)commit_rate(box, kPayload);
  for (const std::size_t size : {kPayload, std::size_t{128}, std::size_t{65536}}) {
    const int rounds = size == kPayload ? (scale.quick ? 7 : 25) : (scale.quick ? 3 : 11);
    const Pair pair = alternate(
        rounds, [&] { return commit_rate(box, size); }, [&] { return plain_rate(box, log, sealer, size); });
    report(size == kPayload ? "commit_throughput" : "commit_throughput_" + std::to_string(size), pair.ours, pair.limit,
           "records/s");
    if (size == kPayload) kibibyte = pair;
  }
  const Pair delay = latency(box, log, scale.quick ? 200 : 2000);
  report("commit_latency", delay.ours, delay.limit, "us");
  report("naive_speedup", kibibyte.ours, naive_rate(directory + "/naive", scale.quick ? 300 : 2000), "records/s");
  box.drain();
  box.close();
  remove_tree(directory);
}

}  // namespace holdfast
