#include "tests/bench/meter.h"

#include <fmt/format.h>

#include <fstream>
#include <limits>

#include "tests/support/patience.h"

namespace holdfast {

void watch(Meter& meter, const std::function<std::uint64_t()>& count) {
  constexpr auto kBetween = std::chrono::milliseconds(20);
  constexpr auto kLimit = std::chrono::minutes(5);
  CHECK(eventually([&] { return meter.see(count()); }, kLimit, kBetween));
}

double mebibytes_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/status", pid));
  std::string name;
  std::uint64_t kib = 0;
  while (file >> name && name != "VmRSS:") file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  file >> kib;
  return static_cast<double>(kib) / 1024;
}

}  // namespace holdfast
