// The spool is cut at every single step of everything it does, and must keep its promises afterwards.
//
// A scenario is run once to count its steps, then once for each step with the power going there, and once for each step
// with the call failing; after each the disk loses what it likes of the unsynced, a new life recovers, and what was
// acknowledged must be there or have been delivered (I1, I2), the accounting must balance (I3), no sync may follow a
// failed one (I4), and no plaintext may be found (I7).

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

#include "tests/support/spool_world.h"

namespace holdfast {
namespace {

// Without sanitizers every step; with them, ten times slower, every seventh.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kStride = 7;
#else
constexpr std::uint64_t kStride = 1;
#endif

struct Scenario {
  const char* name;
  std::function<void(SpoolWorld&)> run;  // stops early once the world is dead
  bool two_targets = false;
};

// A scenario goes on as long as things go well; every helper says whether they do.
void commits(SpoolWorld& world) {
  if (!world.open()) return;
  for (std::uint64_t i = 0; i < 3; ++i) {
    if (!world.put(i * 3 + 1, 3)) return;
  }
  if (world.deliver(world.hub, 4) < 0) return;
  world.clock.advance(std::chrono::milliseconds(300));
  if (!world.maintain()) return;
  world.put(10, 3);
}

void flushes(SpoolWorld& world) {
  if (!world.open() || !world.put(1, 6)) return;
  world.clock.advance(std::chrono::seconds(2));
  if (!world.maintain(3) || !world.put(7, 2)) return;
  if (world.deliver(world.hub, 3) < 0 || !world.maintain(2)) return;
  if (world.deliver(world.hub, 4) < 0) return;
  world.clock.advance(std::chrono::seconds(2));
  world.maintain(3);
}

// The smallest journal turns over: segments are reused, identities go to the ledger.
void turns_over(SpoolWorld& world) {
  if (!world.open()) return;
  for (std::uint64_t i = 0; i < 66; ++i) {
    if (!world.put(i * 2 + 1, 2)) return;
    if (i % 4 == 0 && world.deliver(world.hub, 5) < 0) return;
    if (i % 8 == 0 && !world.maintain()) return;
  }
}

void stops_cleanly(SpoolWorld& world) {
  if (!world.open() || !world.put(1, 5)) return;
  if (world.deliver(world.hub, 2) < 0 || !world.close()) return;
  if (!world.open() || !world.put(4, 4)) return;
  if (world.deliver(world.hub, 2) < 0) return;
  world.close();
}

void sets_aside(SpoolWorld& world) {
  if (!world.open() || !world.put(1, 4)) return;
  if (world.deliver(world.hub, 1, Fate::rejected) < 0 || !world.maintain()) return;
  if (!world.spool->put_batch(std::vector<Arrival>{world.message(1, "other")}).ok()) return;
  world.clock.advance(std::chrono::seconds(2));
  if (!world.maintain(2)) return;
  if (world.deliver(world.hub, 1, Fate::rejected) < 0 || !world.maintain(2)) return;
  RecordFilter all;
  all.everything = true;
  if (!world.spool->requeue(all, [&](const Envelope&) { return std::optional(world.route); }).ok()) return;
  world.maintain();
}

void two_targets(SpoolWorld& world) {
  if (!world.open() || !world.put(1, 5)) return;
  if (world.deliver(world.hub, 3) < 0) return;
  world.clock.advance(std::chrono::seconds(2));
  if (!world.maintain(2) || world.deliver(world.shore, 4) < 0 || !world.maintain(2)) return;
  if (!world.put(6, 3) || world.deliver(world.hub, 5) < 0) return;
  world.clock.advance(std::chrono::milliseconds(300));
  world.maintain(2);
}

void large_records(SpoolWorld& world) {
  if (!world.open() || !world.put(1, 2)) return;
  std::vector<Arrival> arrivals{world.message(3), world.message(4), world.message(5)};
  arrivals[1].envelope.payload.resize(30'000, 'y');
  if (!world.spool->put_batch(arrivals).ok()) return;
  for (std::uint64_t i = 3; i <= 5; ++i) world.acknowledged.insert(i);
  if (world.deliver(world.hub, 4) < 0) return;
  world.maintain(2);
}

const std::vector<Scenario> kScenarios{
    {"commits", commits},
    {"flushes", flushes},
    {"turns_over", turns_over},
    {"stops_cleanly", stops_cleanly},
    {"sets_aside", sets_aside},
    {"two_targets", two_targets, true},
    {"large_records", large_records},
};

class SpoolCrash : public ::testing::TestWithParam<Scenario> {
 protected:
  static std::uint64_t steps_of(const Scenario& scenario) {
    SpoolWorld world;
    world.two_targets = scenario.two_targets;
    scenario.run(world);
    return world.fs.steps();
  }
};

constexpr Loss kLosses[] = {Loss::drop_all, Loss::keep_all, Loss::keep_names, Loss::keep_names_and_sizes,
                            Loss::keep_bytes};

void lose(SpoolWorld& world, std::uint64_t way) {
  if (way < std::size(kLosses)) {
    world.fs.lose_power(kLosses[way]);
  } else {
    world.fs.lose_power(way * 7919);
  }
}

// The next life, whatever the last one did.
void recover_and_look(SpoolWorld& world, const std::string& when) {
  world.forget();
  world.fs.clear_faults();
  ASSERT_TRUE(world.open()) << when << ": " << world.last_error << "\n" << world.fs.trace();
  world.expect_promises(when);
}

TEST_P(SpoolCrash, PowerGoesAtEveryStep_NothingAcknowledgedIsLost) {
  const Scenario& scenario = GetParam();
  const std::uint64_t steps = steps_of(scenario);
  ASSERT_GT(steps, 20u);
  for (std::uint64_t step = 1; step <= steps; step += kStride) {
    for (std::uint64_t way = 0; way < 3; ++way) {
      SpoolWorld world;
      world.two_targets = scenario.two_targets;
      world.fs.fail_at(step, {FaultKind::power_cut, true, false});
      scenario.run(world);
      world.forget();
      world.fs.clear_faults();
      // The fixed ways of losing in turn, and two at random.
      lose(world, way == 0 ? step % std::size(kLosses) : std::size(kLosses) + step * 3 + way);
      recover_and_look(world, fmt::format("{}: cut at step {}, way {}", scenario.name, step, way));
      if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
  }
}

TEST_P(SpoolCrash, PowerGoesAgainWhileItRecovers_NothingAcknowledgedIsLost) {
  const Scenario& scenario = GetParam();
  const std::uint64_t steps = steps_of(scenario);
  for (std::uint64_t step = 2; step <= steps; step += 5 * kStride) {
    SpoolWorld world;
    world.two_targets = scenario.two_targets;
    world.fs.fail_at(step, {FaultKind::power_cut, true, false});
    scenario.run(world);
    world.forget();
    world.fs.clear_faults();
    world.fs.lose_power(step);
    // Three more lives, each cut somewhere in its recovery.
    for (std::uint64_t life = 1; life <= 3; ++life) {
      world.fs.fail_at(world.fs.steps() + 1 + (step * 31 + life * 17) % 40, {FaultKind::power_cut, true, false});
      if (world.open()) world.settle_down(50);
      world.forget();
      world.fs.clear_faults();
      world.fs.lose_power(step * 100 + life);
    }
    recover_and_look(world, fmt::format("{}: cut at step {}, and in three recoveries", scenario.name, step));
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
}

// The call fails, the process leaves or goes on as it sees fit; a restart with the page cache still there; then, after
// the new life has worked with what it saw, the power goes.
TEST_P(SpoolCrash, EveryCallFails_RestartThenPowerLoss_NothingAcknowledgedIsLost) {
  const Scenario& scenario = GetParam();
  const std::uint64_t steps = steps_of(scenario);
  for (std::uint64_t step = 1; step <= steps; step += kStride) {
    for (const Fault fault :
         {Fault{FaultKind::io, false, step % 2 == 0}, Fault{FaultKind::short_write, false, false}}) {
      SpoolWorld world;
      world.two_targets = scenario.two_targets;
      world.fs.fail_at(step, fault);
      scenario.run(world);
      world.forget();
      world.fs.clear_faults();
      world.fs.restart_without_power_loss();
      const std::string when = fmt::format("{}: step {} failed ({})", scenario.name, step,
                                           fault.kind == FaultKind::io ? "io" : "short write");
      ASSERT_TRUE(world.open()) << when << ": " << world.last_error;
      if (!world.put(1000, 2) || world.deliver(world.hub, 1) < 0) FAIL() << when << ": " << world.last_error;
      world.clock.advance(std::chrono::seconds(2));
      ASSERT_TRUE(world.maintain(4)) << when << ": " << world.last_error;
      world.forget();
      world.fs.lose_power(step % 4 == 0 ? step : 0);
      recover_and_look(world, when);
      if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
  }
}

TEST_P(SpoolCrash, NoRoomAtEveryStep_ThenRoomAgain_GoesOnWithoutARestart) {
  const Scenario& scenario = GetParam();
  const std::uint64_t steps = steps_of(scenario);
  for (std::uint64_t step = 1; step <= steps; step += kStride) {
    SpoolWorld world;
    world.two_targets = scenario.two_targets;
    world.fs.fail_at(step, {FaultKind::full, step % 3 == 0, false});
    scenario.run(world);
    world.fs.clear_faults();
    const std::string when = fmt::format("{}: no room at step {}", scenario.name, step);
    if (!world.spool) {
      ASSERT_TRUE(world.open()) << when << ": " << world.last_error;
    }
    world.clock.advance(std::chrono::seconds(2));
    ASSERT_TRUE(world.maintain(2)) << when << ": " << world.last_error;
    ASSERT_TRUE(world.put(1000, 2)) << when << ": " << world.last_error;
    world.expect_promises(when);
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
}

// Too many open files, an interrupted call: for a moment or from then on. Whoever is told so tries again later; a life
// that ends of it is followed by one that finds everything.
TEST_P(SpoolCrash, CallsUnavailableAtEveryStep_LoseNothing) {
  const Scenario& scenario = GetParam();
  const std::uint64_t steps = steps_of(scenario);
  for (std::uint64_t step = 1; step <= steps; step += kStride) {
    SpoolWorld world;
    world.two_targets = scenario.two_targets;
    world.fs.fail_at(step, {FaultKind::unavailable, step % 2 == 0, false});
    scenario.run(world);
    world.fs.clear_faults();
    const std::string when = fmt::format("{}: unavailable at step {}", scenario.name, step);
    if (step % 3 == 0) {
      world.forget();
      world.fs.lose_power(step);
    }
    if (!world.spool || !world.spool->maintain().ok()) {
      world.forget();
      ASSERT_TRUE(world.open()) << when << ": " << world.last_error;
    }
    world.expect_promises(when);
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
}

TEST_P(SpoolCrash, WithoutDirectReads_WhatIsReadIsWrittenAgain) {
  const Scenario& scenario = GetParam();
  const std::uint64_t steps = steps_of(scenario);
  for (std::uint64_t step = 3; step <= steps; step += 3 * kStride) {
    SpoolWorld world;
    world.two_targets = scenario.two_targets;
    world.fs.set_direct_reads(false);
    world.fs.fail_at(step, {FaultKind::io, false, false});
    scenario.run(world);
    world.forget();
    world.fs.clear_faults();
    world.fs.restart_without_power_loss();
    const std::string when = fmt::format("{}: step {} failed, no direct reads", scenario.name, step);
    ASSERT_TRUE(world.open()) << when << ": " << world.last_error;
    world.forget();
    world.fs.lose_power(Loss::drop_all);
    recover_and_look(world, when);
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
}

TEST_P(SpoolCrash, FileByFileSync_PowerGoesAtEveryStep) {
  const Scenario& scenario = GetParam();
  SpoolWorld counted;
  counted.two_targets = scenario.two_targets;
  counted.options.sync = SyncMode::files;
  scenario.run(counted);
  for (std::uint64_t step = 1; step <= counted.fs.steps(); step += 2 * kStride) {
    SpoolWorld world;
    world.two_targets = scenario.two_targets;
    world.options.sync = SyncMode::files;
    world.fs.fail_at(step, {FaultKind::power_cut, true, false});
    scenario.run(world);
    world.forget();
    world.fs.clear_faults();
    lose(world, step % 8);
    recover_and_look(world, fmt::format("{}: cut at step {}, file by file", scenario.name, step));
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Scenarios, SpoolCrash, ::testing::ValuesIn(kScenarios),
                         [](const auto& scenario) { return std::string(scenario.param.name); });

}  // namespace
}  // namespace holdfast
