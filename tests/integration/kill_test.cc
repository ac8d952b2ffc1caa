// kill -9 at any moment, many times, under load, with the hub coming and going: nothing is lost, and nothing is on the
// hub twice. The moments are random; HOLDFAST_SEED repeats them.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <random>
#include <thread>

#include "tests/integration/scene.h"

namespace holdfast {
namespace {

constexpr int kKills = 60;
constexpr int kKillsPerHubState = 6;  // the hub is there for so many, and away for the next
constexpr std::uint64_t kPerKill = 300;

std::uint64_t seed() {
  const char* given = std::getenv("HOLDFAST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
}

// Publishes 1, 2, 3, ... in a thread of its own, as far as it was let.
class Publisher {
 public:
  explicit Publisher(const std::string& url) : thread_([this, url] { run(url); }) {}
  ~Publisher() {
    done_ = true;
    thread_.join();
  }
  void allow(std::uint64_t more) { allowed_ += more; }
  std::uint64_t allowed() const { return allowed_; }
  std::uint64_t published() const { return published_; }

 private:
  void run(const std::string& url) {
    JetStreamClient client(url);
    while (!done_) {
      if (!eventually([&] { return done_ || published_ < allowed_; }, std::chrono::minutes(5)) || done_) return;
      client.publish_many(kSubject, published_ + 1, 50, 700);
      published_ += 50;
    }
  }

  std::atomic<bool> done_ = false;
  std::atomic<std::uint64_t> allowed_ = 0;
  std::atomic<std::uint64_t> published_ = 0;
  std::thread thread_;  // last: it uses the others
};

TEST(Kill, ManyTimesUnderLoad_LosesNothing_AndNothingArrivesTwice) {
  const std::uint64_t with = seed();
  SCOPED_TRACE("HOLDFAST_SEED=" + std::to_string(with));
  std::mt19937_64 random(with);
  const auto up_to = [&](int milliseconds) {
    return std::chrono::milliseconds(std::uniform_int_distribution<int>(0, milliseconds)(random));
  };

  Scene scene("journal_bytes = \"4MiB\"\nlinger = \"200ms\"");
  Publisher publisher(scene.edge.url());
  std::uint64_t taken_before = 0;
  int progressed = 0;
  for (int kills = 0; kills < kKills; ++kills) {
    if (kills % kKillsPerHubState == 0) {
      if (scene.hub.running()) {
        scene.hub.stop();
      } else {
        scene.hub.start();
      }
    }
    publisher.allow(kPerKill);
    scene.box.launch();
    // One in three is killed while it starts, the others while they work.
    if (kills % 3 != 0) {
      std::uint64_t taken = 0;
      const auto more = [&] { return (taken = scene.box.status()["accounting"]["taken"].count()) > taken_before; };
      ASSERT_TRUE(eventually([&] { return !scene.box.running() || more(); }, kPatience));
      taken_before = std::max(taken_before, taken);
      ++progressed;
    }
    ASSERT_TRUE(stays([&] { return scene.box.running(); }, up_to(120))) << "left by itself, kill " << kills;
    scene.box.kill9();
  }
  EXPECT_GE(progressed, kKills / 2);

  if (!scene.hub.running()) scene.hub.start();
  scene.box.start();
  ASSERT_TRUE(eventually([&] { return publisher.published() == publisher.allowed(); }, kPatience));
  const std::uint64_t all = publisher.published();
  ASSERT_TRUE(delivered(scene.box, all)) << pretty_json_text(scene.box.status());
  EXPECT_EQ(arrivals(scene.hub, kHubStream, all), kEachOnce);
  const Json audit = scene.box.audit();
  EXPECT_TRUE(audit["balanced"].flag()) << pretty_json_text(audit);
  EXPECT_EQ(audit["lost"].count(), 0u);
  EXPECT_EQ(scene.box.status()["quarantine"]["records"].count(), 0u);
  EXPECT_TRUE(eventually([&] { return scene.box.record_files().empty(); }));
}

}  // namespace
}  // namespace holdfast
