// Stops the program at a bug of the caller's: what must be true here is not. Stays on in every build.
//
// This room may not include the spool's CHECK, so it has this, the smallest form of it. Never for bytes that came from
// a disk or a network: those are refused with a value.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace holdfast {

inline void require(bool truth, const char* what) {
  if (truth) [[likely]]
    return;
  std::fprintf(stderr, "holdfast: bug: %s\n", what);
  std::abort();
}

}  // namespace holdfast
