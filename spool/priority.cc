#include "spool/priority.h"

#include <array>

#include "spool/ascii.h"
#include "spool/check.h"

namespace holdfast {
namespace {

struct Named {
  std::string_view name;
  Priority rank;
};

constexpr std::array kNames{
    Named{"flash", 0},   Named{"immediate", 1}, Named{"urgent", 2}, Named{"high", 3}, Named{"normal", 5},
    Named{"routine", 5}, Named{"medium", 5},    Named{"none", 6},   Named{"low", 7},  Named{"deferred", 9},
};

// A rank that no word names shows as its digit.
constexpr std::array<std::string_view, kPriorities> kTexts{"flash",  "immediate", "urgent", "high", "4",
                                                           "normal", "none",      "low",    "8",    "deferred"};

}  // namespace

std::optional<Priority> priority_from_text(std::string_view name) {
  for (const Named& known : kNames) {
    if (equal_ignoring_case(known.name, name)) return known.rank;
  }
  return std::nullopt;
}

std::string_view priority_text(Priority priority) {
  CHECK(priority < kPriorities);
  return kTexts[priority];
}

}  // namespace holdfast
