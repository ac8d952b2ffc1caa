// The size of the backlog does not matter to the memory of the process (I9), nor to how many files it has open.
// HOLDFAST_LONG_TESTS=1: a million records.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
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

// For this process and the programs that it starts.
void allow_few_descriptors() {
  const rlimit few{256, 256};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
}

// Page by page, as somebody with a terminal would.
std::uint64_t count_by_listing(Appliance& box) {
  std::uint64_t listed = 0;
  for (std::uint64_t after = 0;;) {
    const Json answer = box.ask("spool list", Json::Fields{{"after", after}, {"limit", std::uint64_t{1000}}});
    const auto& records = answer["records"].list();
    if (records.empty()) return listed;
    listed += records.size();
    after = records.back()["sequence"].count();
  }
}

TEST(Memory, OfALargeBacklog_IsThatOfASmallOne) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's memory is not the program's";
#endif
  const std::uint64_t records = is_long() ? 1'000'000 : 50'000;
  const Nanoseconds patience = is_long() ? std::chrono::minutes(30) : kPatience;
  allow_few_descriptors();
  Scene scene;
  Appliance& box = scene.box;
  scene.hub.kill();
  box.start();
  scene.publish(1, records, 256);
  const auto all_in_files = [&] { return box.status()["backlog"]["in_files"].count() == records; };
  ASSERT_TRUE(eventually(all_in_files, patience)) << pretty_json_text(box.status());
  const std::uint64_t waiting = memory_of(box.pid(), "VmRSS");
  std::cout << records << " records wait: " << waiting << " KiB" << std::endl;
  EXPECT_LT(waiting, kMostKiB);

  // Recovery, looking at all of it, and the whole way out.
  box.kill9();
  box.start();
  EXPECT_EQ(count_by_listing(box), records);
  const ProgramAnswer verified = box.command({"spool", "verify", "--json"}, patience);
  EXPECT_EQ(verified.code, 0) << verified.out << verified.err;
  scene.hub.start();
  const auto all_delivered = [&] { return box.status()["accounting"]["delivered"].count() == records; };
  ASSERT_TRUE(eventually(all_delivered, patience)) << pretty_json_text(box.status());
  const std::uint64_t most = memory_of(box.pid(), "VmHWM");
  EXPECT_LT(most, kMostKiB);
  std::cout << "the life that delivered them: " << most << " KiB at most" << std::endl;
  EXPECT_EQ(arrivals(scene.hub, kHubStream, records), kEachOnce);
  const ProgramAnswer audit = box.command({"audit"}, patience);
  EXPECT_EQ(audit.code, 0) << audit.out << audit.err;
}

}  // namespace
}  // namespace holdfast
