// Many threads at the front door at once: what was acknowledged is delivered, and the books balance. Meant for the
// thread sanitizer.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/support/spool_world.h"

namespace holdfast {
namespace {

TEST(SpoolThreads, SourcesTargetsUpkeepAndOperator_AtOnce) {
  SpoolWorld world;
  world.two_targets = true;
  world.options.linger = std::chrono::milliseconds(1);
  world.options.helpers = 2;
  ASSERT_TRUE(world.open());
  Spool& spool = *world.spool;
  constexpr std::uint64_t kSources = 3, kBatches = 30, kBatch = 40;  // more than a thread seals alone
  std::atomic<bool> stop{false};
  std::atomic<int> sources{static_cast<int>(kSources)};
  std::atomic<std::uint64_t> woken{0};
  spool.on_due([&] { ++woken; });

  std::vector<std::thread> threads;
  for (std::uint64_t source = 0; source < kSources; ++source) {
    threads.emplace_back([&, source] {
      for (std::uint64_t batch = 0; batch < kBatches; ++batch) {
        std::vector<Arrival> arrivals;
        for (std::uint64_t i = 0; i < kBatch; ++i)
          arrivals.push_back(world.message((source * kBatches + batch) * kBatch + i + 1));
        if (batch % 7 == 3) arrivals[4].envelope.payload.resize(30'000, 'y');
        auto verdicts = spool.put_batch(arrivals);
        ASSERT_TRUE(verdicts.ok()) << verdicts.error().text;
        auto again = spool.put_batch(std::vector<Arrival>{arrivals[0]});
        ASSERT_TRUE(again.ok());
        EXPECT_EQ(again->front().kind, VerdictKind::duplicate);
      }
      --sources;
    });
  }
  std::atomic<std::uint64_t> delivered[2] = {0, 0};
  for (int which = 0; which < 2; ++which) {
    threads.emplace_back([&, which] {
      const TargetNumber target = which == 0 ? world.hub : world.shore;
      DueCursor cursor;
      while (delivered[which] < kSources * kBatches * kBatch) {
        auto due = spool.due(target, which == 0 ? Drain::fifo : Drain::priority, cursor, 50, 1u << 20);
        ASSERT_TRUE(due.ok()) << due.error().text;
        std::vector<Settlement> settlements;
        for (const DueRecord& record : *due)
          settlements.push_back({record.sequence, Fate::delivered, Reason::none, {}});
        ASSERT_TRUE(spool.settle(target, settlements).ok());
        delivered[which] += settlements.size();
        std::this_thread::yield();
      }
    });
  }
  threads.emplace_back([&] {
    while (!stop) {
      world.clock.advance(std::chrono::milliseconds(5));
      auto pause = spool.maintain();
      ASSERT_TRUE(pause.ok()) << pause.error().text;
      std::this_thread::yield();
    }
  });
  threads.emplace_back([&] {
    while (!stop) {
      (void)spool.status();
      (void)spool.pressure();
      ASSERT_TRUE(spool.list(0, 20).ok());
      auto audit = spool.audit();
      ASSERT_TRUE(audit.ok());
      EXPECT_TRUE(audit->balanced()) << "taken " << audit->taken << " delivered " << audit->delivered << " custody "
                                     << audit->in_custody;
      ASSERT_TRUE(spool.last_committed("TELEMETRY", 1'000'000).ok());
      std::this_thread::yield();
    }
  });
  for (std::size_t i = 0; i < kSources + 2; ++i) threads[i].join();
  stop = true;
  for (std::size_t i = kSources + 2; i < threads.size(); ++i) threads[i].join();
  EXPECT_GT(woken, 0u);
  ASSERT_TRUE(world.settle_down());
  auto audit = spool.audit();
  ASSERT_TRUE(audit.ok());
  EXPECT_TRUE(audit->balanced());
  EXPECT_EQ(audit->delivered, kSources * kBatches * kBatch);
  EXPECT_EQ(audit->in_custody, 0u);
}

}  // namespace
}  // namespace holdfast
