#include "tests/bench/bench_spool.h"

#include <unistd.h>

#include <filesystem>

#include "appliance/key_file.h"
#include "spool/check.h"

namespace holdfast {
namespace {

constexpr std::size_t kWindow = 1024;

Bytes noise(std::uint64_t number, std::size_t size) {
  Bytes bytes(size);
  std::uint64_t state = number * 0x9e3779b97f4a7c15;
  for (std::uint8_t& byte : bytes) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    byte = static_cast<std::uint8_t>(state);
  }
  return bytes;
}

}  // namespace

BenchSpool::BenchSpool(const std::string& directory, const std::string& key_file) {
  CHECK(init_crypto());
  std::filesystem::create_directories(directory);
  std::filesystem::permissions(directory, std::filesystem::perms::owner_all);
  auto fs = open_posix_file_system(directory);
  CHECK(fs.ok());
  fs_ = std::move(*fs);
  SpoolOptions options;
  options.site = kBenchSite;
  options.limits.min_free_bytes = 0;
  options.limits.min_free_inodes_percent = 0;
  options.limits.max_bytes = 1ull << 40;
  options.allow_unsafe_fs = true;
  options.helpers = helpers_of_this_machine();
  options.removers = kRemovers;
  auto key = key_file.empty() ? Result<SecretKey>(SecretKey::random()) : read_key({key_file, ""}, ::geteuid());
  CHECK(key.ok());
  auto opened = Spool::open(*fs_, system_clock(), options, *key);
  CHECK(opened.ok());
  spool_ = std::move(*opened);
  hub_ = *spool_->target_number("hub");
  route_ = *spool_->route_number({{hub_, true}});
  spool_->set_active_targets({hub_});
  // As it is a moment after a start: files and index compared, the first segment ready.
  do {
    CHECK(spool_->maintain().ok());
  } while (spool_->status().reconciling);
}

BenchSpool::~BenchSpool() {
  end_threads();
}

void BenchSpool::end_threads() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
    woken_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

std::vector<Arrival> BenchSpool::batch(std::size_t count, std::size_t size) {
  std::vector<Arrival> arrivals(count);
  for (Arrival& arrival : arrivals) {
    ++number_;
    arrival.envelope.source = "edge";
    arrival.envelope.subject = "telemetry.a";
    arrival.envelope.payload = noise(number_, size);
    arrival.envelope.origin = {"EDGE", number_, static_cast<std::int64_t>(1'700'000'000'000'000'000 + number_ * 1000)};
    arrival.identity = std::get<Identity>(identify({Strategy::stream_sequence, {}}, kBenchSite, arrival.envelope));
    arrival.route = route_;
  }
  return arrivals;
}

void BenchSpool::put(const std::vector<Arrival>& arrivals) {
  CHECK(spool_->put_batch(arrivals).ok());
}

void BenchSpool::keep_house() {
  threads_.emplace_back([this] {
    for (bool end = false; !end;) {
      const auto rest = spool_->maintain();
      CHECK(rest.ok());
      std::unique_lock lock(mutex_);
      end = woken_.wait_for(lock, *rest, [this] { return end_; });
    }
  });
}

std::size_t BenchSpool::deliver_some(DueCursor& cursor) {
  auto due = spool_->due(hub_, Drain::fifo, cursor, kWindow, 16u << 20);
  CHECK(due.ok());
  std::vector<Settlement> settlements;
  for (const DueRecord& record : *due) settlements.push_back({record.sequence, Fate::delivered, Reason::none, {}});
  CHECK(spool_->settle(hub_, settlements).ok());
  return settlements.size();
}

void BenchSpool::deliver() {
  spool_->on_due([this] {
    const std::lock_guard lock(mutex_);
    due_ = true;
    woken_.notify_all();
  });
  threads_.emplace_back([this] {
    DueCursor cursor;
    for (bool end = false; !end;) {
      if (deliver_some(cursor) > 0) continue;
      std::unique_lock lock(mutex_);
      woken_.wait(lock, [this] { return end_ || due_; });
      due_ = false;
      end = end_;
    }
  });
}

void BenchSpool::drain() {
  DueCursor cursor;
  while (spool_->status().in_custody > 0) {
    deliver_some(cursor);
    CHECK(spool_->maintain().ok());
  }
}

void BenchSpool::close() {
  end_threads();
  CHECK(spool_->close(system_clock().monotonic() + std::chrono::minutes(10)).ok());
}

}  // namespace holdfast
