// The size of the backlog does not matter to the memory of the process (I9). HOLDFAST_LONG_TESTS=1: a million records.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <limits>
#include <string_view>

#include "tests/integration/scene.h"

namespace holdfast {
namespace {

constexpr std::uint64_t kMostKiB = 64 * 1024;

bool is_long() {
  const char* set = std::getenv("HOLDFAST_LONG_TESTS");
  return set != nullptr && std::string_view(set) == "1";
}

// Of a line of /proc/PID/status, in KiB.
std::uint64_t memory_of(pid_t pid, const std::string& line) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  std::string name;
  std::uint64_t kib = 0;
  while (file >> name) {
    if (name == line + ":") file >> kib;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return kib;
}

TEST(Memory, OfALargeBacklog_IsThatOfASmallOne) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's memory is not the program's";
#endif
  const std::uint64_t records = is_long() ? 1'000'000 : 50'000;
  const Nanoseconds patience = is_long() ? std::chrono::minutes(30) : kPatience;
  Scene scene;
  scene.hub.kill();
  scene.box.start();
  scene.publish(1, records, 256);
  const auto all_in_files = [&] { return scene.box.status()["backlog"]["in_files"].count() == records; };
  ASSERT_TRUE(eventually(all_in_files, patience)) << pretty_json_text(scene.box.status());
  EXPECT_LT(memory_of(scene.box.pid(), "VmRSS"), kMostKiB);
  RecordProperty("rss_after_backlog_kib", std::to_string(memory_of(scene.box.pid(), "VmRSS")));

  // Recovery and the first deliveries, too.
  scene.box.kill9();
  scene.hub.start();
  scene.box.start();
  const auto flows = [&] { return scene.box.target("hub")["delivered"].count() > 10'000; };
  ASSERT_TRUE(eventually(flows, patience));
  EXPECT_LT(memory_of(scene.box.pid(), "VmHWM"), kMostKiB);
  RecordProperty("rss_peak_of_the_next_life_kib", std::to_string(memory_of(scene.box.pid(), "VmHWM")));
}

}  // namespace
}  // namespace holdfast
