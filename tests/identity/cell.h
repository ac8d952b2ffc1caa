// One cell of the matrix: a strategy under a fault, played on a stage of its own and judged.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/identity/fault.h"

namespace holdfast {

struct Cell {
  std::uint64_t messages = 0;  // told by the producer
  std::uint64_t events = 0;    // that they tell of: ids, as the producer gives them
  std::uint64_t records = 0;   // taken into custody
  std::uint64_t hub = 0;       // messages in the hub's stream
  std::uint64_t resent = 0;    // sent to the hub once more, under a key that it has
  Counts counts;
  std::string why;                 // the strategy does not promise that events are hub messages, and they are not
  std::vector<std::string> flaws;  // none: all that was promised was kept
  std::string log;                 // of the program, when there are flaws
};

Cell play(const Strategy& strategy, const Fault& fault);

}  // namespace holdfast
