#include "tests/powercut/box.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <map>
#include <random>
#include <thread>

namespace holdfast {
namespace {

using Dice = std::mt19937;
using std::chrono::milliseconds;

constexpr std::array<Upstream, 2> kUpstreams{Upstream::hub, Upstream::shore};
constexpr std::array<const char*, 2> kNames{"hub", "shore"};
constexpr std::size_t kPage = 256;
constexpr std::uint64_t kManyWaiting = 1500;
constexpr std::uint64_t kRedeliveredRecent = 300;
constexpr std::uint64_t kRedeliveredOthers = 700;

SpoolOptions small_options() {
  SpoolOptions options;
  options.site = kSite;
  options.journal_bytes = 4 * (256u << 10);  // turns over every second or so
  options.linger = milliseconds(200);
  options.data_key_bytes = 2u << 20;
  options.limits.min_free_bytes = 8u << 20;
  options.limits.max_bytes = 64u << 20;
  return options;
}

}  // namespace

struct Box::Parts {
  Parts(std::string directory_in, Outside& outside_in, std::function<void(const std::string&)> wrong_in)
      : directory(std::move(directory_in)), outside(outside_in), wrong(std::move(wrong_in)) {}

  const std::string directory;
  Outside& outside;
  const std::function<void(const std::string&)> wrong;
  std::unique_ptr<FileSystem> fs;
  SecretKey key = SecretKey::copy_of(std::array<std::uint8_t, SecretKey::kSize>{7});
  std::unique_ptr<Spool> spool;
  std::array<TargetNumber, 2> targets{};
  RouteNumber route{};

  std::mutex mutex;
  std::condition_variable ended;
  bool end = false;
  std::array<std::vector<std::uint64_t>, 2> settled;  // each by its own thread

  TargetNumber target(Upstream upstream) const { return targets[static_cast<std::size_t>(upstream)]; }
  bool ends_within(Nanoseconds time) {
    std::unique_lock lock(mutex);
    return ended.wait_for(lock, time, [&] { return end; });
  }
  bool refused(const char* what, const Error& error) {
    if (error.kind == ErrorKind::full || error.kind == ErrorKind::unavailable) return false;
    wrong(fmt::format("{}: {}", what, error.text));
    return true;
  }

  using Waiting = std::array<std::vector<bool>, 2>;
  std::vector<bool> look_at_due(Upstream upstream);
  void expect_here_or_there(const Waiting& waiting);
  void expect_account(const Waiting& waiting);
  void expect_remembered(const Waiting& waiting, Dice& dice);
  void redeliver(const std::vector<std::uint64_t>& numbers);
  void take_in(std::uint32_t seed, const std::function<void(std::uint64_t)>& acknowledged);
  void deliver(Upstream upstream, std::uint32_t seed);
  void keep_house();
};

Box::Box(const std::string& directory, Outside& outside, std::function<void(const std::string&)> wrong)
    : parts_(std::make_unique<Parts>(directory, outside, std::move(wrong))) {}
Box::~Box() = default;

bool Box::open() {
  Parts& parts = *parts_;
  auto fs = open_posix_file_system(parts.directory);
  if (!fs) return parts.wrong("the directory: " + fs.error().text), false;
  parts.fs = std::move(*fs);
  auto opened = Spool::open(*parts.fs, system_clock(), small_options(), parts.key);
  if (!opened) return parts.wrong("open: " + opened.error().text), false;
  parts.spool = std::move(*opened);
  std::vector<RouteTarget> targets;
  for (const Upstream upstream : kUpstreams) {
    auto number = parts.spool->target_number(kNames[static_cast<std::size_t>(upstream)]);
    if (!number) return parts.wrong("a target: " + number.error().text), false;
    parts.targets[static_cast<std::size_t>(upstream)] = *number;
    targets.push_back({*number, true});
  }
  auto route = parts.spool->route_number(targets);
  if (!route) return parts.wrong("a route: " + route.error().text), false;
  parts.route = *route;
  parts.spool->set_active_targets({parts.targets.begin(), parts.targets.end()});
  return true;
}

void Box::check(std::uint32_t seed) {
  Parts& parts = *parts_;
  while (parts.spool->status().reconciling) {
    auto rest = parts.spool->maintain();
    if (!rest) return parts.wrong("after the start: " + rest.error().text);
  }
  Dice dice(seed);
  Parts::Waiting waiting;
  for (const Upstream upstream : kUpstreams) waiting[static_cast<std::size_t>(upstream)] = parts.look_at_due(upstream);
  parts.expect_here_or_there(waiting);
  parts.expect_account(waiting);
  parts.expect_remembered(waiting, dice);
}

// What is due, each opened and compared with what was sent.
std::vector<bool> Box::Parts::look_at_due(Upstream upstream) {
  std::vector<bool> found(kOutsideBytes, false);
  DueCursor cursor;
  for (;;) {
    auto due = spool->due(target(upstream), Drain::fifo, cursor, kPage, 4u << 20);
    if (!due) return wrong("due: " + due.error().text), found;
    if (due->empty()) return found;
    for (const DueRecord& record : *due) {
      const std::uint64_t number = number_of(record.key, record.envelope);
      if (number == 0) {
        wrong(fmt::format("sequence {} is not a message that was sent", record.sequence));
      } else if (found[number]) {
        wrong(fmt::format("message {} waits twice", number));
      } else {
        found[number] = true;
      }
    }
  }
}

// I1: what was acknowledged is in custody, or left as it may.
void Box::Parts::expect_here_or_there(const Waiting& waiting) {
  std::uint64_t missing = 0, back = 0, first_missing = 0, first_back = 0;
  const std::uint64_t acknowledged = outside.acknowledged();
  for (std::uint64_t number = 1; number <= acknowledged; ++number) {
    if (is_refused(number)) continue;
    for (const Upstream upstream : kUpstreams) {
      const bool waits = waiting[static_cast<std::size_t>(upstream)][number];
      const bool may_be_aside = upstream == Upstream::shore && is_rejected(number);
      if (!waits && !outside.has(upstream, number) && !may_be_aside && missing++ == 0) first_missing = number;
      if (waits && outside.settled(upstream, number) && back++ == 0) first_back = number;
    }
  }
  if (missing > 0) wrong(fmt::format("{} acknowledged messages are missing, from {}", missing, first_missing));
  if (back > 0) wrong(fmt::format("{} delivered messages came back after a clean stop, from {}", back, first_back));
}

// I3, and that what must be in quarantine is.
void Box::Parts::expect_account(const Waiting& waiting) {
  const SpoolStatus status = spool->status();
  if (status.totals.lost != 0) wrong(fmt::format("{} are said to be lost", status.totals.lost));
  for (const std::string& notice : status.notices) {
    if (notice.starts_with("LOST")) wrong(notice);
  }
  auto audit = spool->audit();
  if (!audit) return wrong("audit: " + audit.error().text);
  if (!audit->balanced() || audit->files_without_row != 0) {
    wrong(
        fmt::format("the account: taken {} delivered {} in custody {} quarantined {} lost {}, {} files without row, "
                    "{} rows without file",
                    audit->taken, audit->delivered, audit->in_custody, audit->quarantined, audit->lost,
                    audit->files_without_row, audit->rows_without_file));
  }
  std::uint64_t aside = 0;
  const std::uint64_t acknowledged = outside.acknowledged();
  for (std::uint64_t number = 1; number <= acknowledged; ++number) {
    const bool left = is_rejected(number) && !waiting[1][number] && !outside.has(Upstream::shore, number);
    aside += is_refused(number) || left ? 1u : 0u;
  }
  if (audit->quarantined < aside)
    wrong(fmt::format("{} are in quarantine, where {} must be", audit->quarantined, aside));
}

// I5: a redelivery makes no second record.
void Box::Parts::expect_remembered(const Waiting& waiting, Dice& dice) {
  const std::uint64_t acknowledged = outside.acknowledged();
  if (acknowledged == 0) return;
  std::vector<std::uint64_t> numbers;
  const std::uint64_t recent = acknowledged > kRedeliveredRecent ? acknowledged - kRedeliveredRecent : 0;
  for (std::uint64_t number = recent + 1; number <= acknowledged; ++number) numbers.push_back(number);
  for (std::uint64_t i = 0; i < kRedeliveredOthers; ++i) numbers.push_back(1 + dice() % acknowledged);
  for (std::uint64_t number = 1, added = 0; number <= acknowledged && added < kRedeliveredOthers; ++number) {
    if (!waiting[0][number] && !waiting[1][number]) continue;
    numbers.push_back(number);
    ++added;
  }
  redeliver(numbers);
}

void Box::Parts::redeliver(const std::vector<std::uint64_t>& numbers) {
  std::vector<Arrival> arrivals;
  for (const std::uint64_t number : numbers) arrivals.push_back(message(number, route));
  auto verdicts = spool->put_batch(arrivals);
  if (!verdicts) {
    refused("a redelivery", verdicts.error());
    return;
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if ((*verdicts)[i].kind != VerdictKind::duplicate)
      return wrong(fmt::format("message {} was taken a second time", numbers[i]));
  }
}

void Box::work(std::uint32_t seed, Nanoseconds time, const std::function<void(std::uint64_t)>& acknowledged) {
  Parts& parts = *parts_;
  std::vector<std::thread> threads;
  threads.emplace_back([&] { parts.take_in(seed, acknowledged); });
  for (const Upstream upstream : kUpstreams) threads.emplace_back([&, upstream] { parts.deliver(upstream, seed); });
  threads.emplace_back([&] { parts.keep_house(); });
  parts.ends_within(time);
  {
    const std::lock_guard lock(parts.mutex);
    parts.end = true;
  }
  parts.ended.notify_all();
  for (std::thread& thread : threads) thread.join();
}

// As an intake does: acknowledged only when the verdicts are there; what was not is sent again, and some things are
// sent again though they were.
void Box::Parts::take_in(std::uint32_t seed, const std::function<void(std::uint64_t)>& acknowledged) {
  Dice dice(seed);
  while (!outside.full()) {
    const std::uint64_t done = outside.acknowledged();
    const std::uint64_t size = dice() % 8 == 0 ? 256 : 1 + dice() % 48;
    std::vector<std::uint64_t> numbers;
    for (std::uint64_t i = 0; i < size; ++i) {
      numbers.push_back(done + 1 + i);
      if (done > 0 && dice() % 16 == 0) numbers.push_back(1 + dice() % done);
    }
    std::vector<Arrival> arrivals;
    for (const std::uint64_t number : numbers) arrivals.push_back(message(number, route));
    auto verdicts = spool->put_batch(arrivals);
    if (!verdicts && refused("put_batch", verdicts.error())) return;
    if (verdicts) {
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        if (numbers[i] <= done && (*verdicts)[i].kind != VerdictKind::duplicate)
          wrong(fmt::format("message {} was taken a second time", numbers[i]));
      }
      outside.acknowledge(done + size);
      acknowledged(done + size);
    }
    const bool crowded = !verdicts || spool->status().in_custody > kManyWaiting;
    if (ends_within(milliseconds(crowded ? 30 : dice() % 4))) return;
  }
}

// As a target does: the upstream has it before the spool hears of it, and sometimes the spool never does.
void Box::Parts::deliver(Upstream upstream, std::uint32_t seed) {
  Dice dice(seed + 1 + static_cast<std::uint32_t>(upstream));
  DueCursor cursor;
  for (;;) {
    if (dice() % 24 == 0 && ends_within(milliseconds(100 + dice() % 900))) return;  // down
    auto due = spool->due(target(upstream), dice() % 2 == 0 ? Drain::fifo : Drain::priority, cursor, 1 + dice() % 100,
                          1u << 20);
    if (!due && refused("due", due.error())) return;
    std::vector<std::uint64_t> taken;
    std::vector<Settlement> settlements;
    for (const DueRecord& record : due ? *due : std::vector<DueRecord>()) {
      const std::uint64_t number = number_of(record.key, record.envelope);
      if (number == 0) return wrong(fmt::format("sequence {} is not a message that was sent", record.sequence));
      const bool rejects = upstream == Upstream::shore && is_rejected(number);
      if (!rejects) taken.push_back(number);
      settlements.push_back(
          {record.sequence, rejects ? Fate::rejected : Fate::delivered, rejects ? Reason::rejected : Reason::none, {}});
    }
    outside.deliver(upstream, taken);
    if (dice() % 16 == 0) {
      cursor = {};
    } else if (auto heard = spool->settle(target(upstream), settlements); heard) {
      auto& said = settled[static_cast<std::size_t>(upstream)];
      said.insert(said.end(), taken.begin(), taken.end());
    } else if (refused("settle", heard.error())) {
      return;
    }
    if (ends_within(milliseconds(settlements.empty() ? 10 : dice() % 5))) return;
  }
}

void Box::Parts::keep_house() {
  for (;;) {
    auto rest = spool->maintain();
    if (!rest && refused("maintain", rest.error())) return;
    if (ends_within(std::min<Nanoseconds>(rest ? *rest : milliseconds(20), milliseconds(20)))) return;
  }
}

bool Box::close() {
  Parts& parts = *parts_;
  auto closed = parts.spool->close(system_clock().monotonic() + std::chrono::seconds(20));
  if (!closed) return parts.wrong("close: " + closed.error().text), false;
  for (const Upstream upstream : kUpstreams)
    parts.outside.settle(upstream, std::exchange(parts.settled[static_cast<std::size_t>(upstream)], {}));
  parts.spool.reset();
  return true;
}

std::string Box::summary() const {
  const SpoolStatus status = parts_->spool->status();
  return fmt::format("boot {} acknowledged {} in custody {} quarantined {} delivered twice {}", status.boot,
                     parts_->outside.acknowledged(), status.in_custody, status.quarantined, parts_->outside.repeats());
}

}  // namespace holdfast
