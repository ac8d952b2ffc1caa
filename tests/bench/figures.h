// What a benchmark measures and prints: ours and the limit, from the same run.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "spool/clock.h"

namespace holdfast {

struct Scale {
  bool quick = false;
  std::string directory;  // on the file system that is measured
};

double seconds_since(Nanoseconds began);
double median(std::vector<double> values);

// One line of JSON. `ratio` is ours by limit, whichever of the two should be larger.
void report(const std::string& name, double ours, double limit, const std::string& unit);

// Both sides in turn, as many rounds; the median of each.
struct Pair {
  double ours = 0;
  double limit = 0;
};
Pair alternate(int rounds, const std::function<double()>& ours, const std::function<double()>& limit);

// The benchmarks, each by its file.
void measure_commits(const Scale& scale);
void measure_device_writes(const Scale& scale);
void measure_servers(const Scale& scale);
void measure_http(const Scale& scale);
void measure_databases(const Scale& scale);
void measure_s3(const Scale& scale);
void measure_identities(const Scale& scale);  // not with --quick
void measure_backlog(const Scale& scale);     // and what a start costs with it

}  // namespace holdfast
