// Neighbours among sequences. A backlog leaves in their order, and what is said once of neighbours costs a fraction of
// saying it of each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace holdfast {

// First and last of each run; a sequence that is named twice counts once.
inline std::vector<std::pair<std::uint64_t, std::uint64_t>> runs_of(std::vector<std::uint64_t> sequences) {
  std::ranges::sort(sequences);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> runs;
  for (const std::uint64_t sequence : sequences) {
    if (!runs.empty() && sequence <= runs.back().second + 1) {
      runs.back().second = sequence;
    } else {
      runs.emplace_back(sequence, sequence);
    }
  }
  return runs;
}

}  // namespace holdfast
