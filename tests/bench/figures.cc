#include "tests/bench/figures.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "appliance/json.h"
#include "spool/check.h"

namespace holdfast {
namespace {

// Four digits that count.
double rounded(double value) {
  if (value == 0) return 0;
  const double scale = std::pow(10.0, 3 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

}  // namespace

double seconds_since(Nanoseconds began) {
  return std::chrono::duration<double>(system_clock().monotonic() - began).count();
}

double median(std::vector<double> values) {
  CHECK(!values.empty());
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

void report(const std::string& name, double ours, double limit, const std::string& unit) {
  Json line{Json::Fields()};
  line.set("name", name);
  line.set("ours", rounded(ours));
  line.set("limit", rounded(limit));
  line.set("ratio", rounded(ours / limit));
  line.set("unit", unit);
  std::puts(json_text(line).c_str());
  std::fflush(stdout);
}

Pair alternate(int rounds, const std::function<double()>& ours, const std::function<double()>& limit) {
  std::vector<double> of_ours, of_limit;
  for (int round = 0; round < rounds; ++round) {
    of_ours.push_back(ours());
    of_limit.push_back(limit());
  }
  return {median(of_ours), median(of_limit)};
}

}  // namespace holdfast
