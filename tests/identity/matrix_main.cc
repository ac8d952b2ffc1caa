// Every strategy under every fault, one line a cell (tests/identity/matrix.sh).
//
//     identity_matrix [NAME]...      a name: of strategies or faults; none: all
//
// Exit status 0: every cell is ok; 1: one is not, and why is on the standard error; 2: no such name.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <vector>

#include "tests/identity/cell.h"

namespace holdfast {
namespace {

// Of the names given, those of this kind; none of this kind: all are meant.
template <typename Named>
std::vector<Named> chosen(std::span<const Named> all, const std::vector<std::string_view>& names) {
  std::vector<Named> found;
  for (const Named& one : all) {
    if (std::find(names.begin(), names.end(), one.name) != names.end()) found.push_back(one);
  }
  return found.empty() ? std::vector<Named>(all.begin(), all.end()) : found;
}

bool is_known(std::string_view name) {
  const auto named = [&](const auto& one) { return one.name == name; };
  return std::any_of(strategies().begin(), strategies().end(), named) ||
         std::any_of(faults().begin(), faults().end(), named);
}

std::string line_of(const Strategy& strategy, const Fault& fault, const Cell& cell) {
  std::string line = fmt::format(
      "{:<15} {:<25} messages={} events={} records={} hub={} resent={} accepted={} duplicates={} conflicts={} "
      "refused={} {}",
      strategy.name, fault.name, cell.messages, cell.events, cell.records, cell.hub, cell.resent, cell.counts.accepted,
      cell.counts.duplicates, cell.counts.conflicts, cell.counts.refused, cell.flaws.empty() ? "ok" : "FAIL");
  if (!cell.why.empty()) line += ": " + cell.why;
  return line;
}

int run(const std::vector<std::string_view>& names) {
  for (const std::string_view name : names) {
    if (is_known(name)) continue;
    fmt::print(stderr, "identity_matrix: {} is neither a strategy nor a fault\n", name);
    return 2;
  }
  int status = 0;
  for (const Strategy& strategy : chosen(strategies(), names)) {
    for (const Fault& fault : chosen(faults(), names)) {
      const Cell cell = play(strategy, fault);
      fmt::print("{}\n", line_of(strategy, fault, cell));
      std::fflush(stdout);
      if (cell.flaws.empty()) continue;
      status = 1;
      for (const std::string& flaw : cell.flaws) fmt::print(stderr, "  {}\n", flaw);
      fmt::print(stderr, "  the log of the program:\n{}\n", cell.log);
    }
  }
  return status;
}

}  // namespace
}  // namespace holdfast

int main(int count, char** words) {
  return holdfast::run({words + 1, words + count});
}
