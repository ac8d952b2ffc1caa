// The body of a `done` frame: which records were settled for which target (crypto/FORMAT.md, "Bodies"). Pure.
#pragma once

#include <vector>

#include "crypto/bytes.h"
#include "spool/index.h"

namespace holdfast {

// A settlement of one record by one target.
struct TargetSettlement {
  TargetNumber target{};
  Sequence sequence = 0;
  bool operator==(const TargetSettlement&) const = default;
};

// Appends; the order of `settlements` changes.
void write_done_list(std::vector<TargetSettlement>& settlements, Bytes& out);
std::size_t largest_done_list(std::size_t settlements);
// Appends to `settlements`; false, and nothing appended, when the bytes are not exactly such a list.
bool read_done_list(ByteView body, std::vector<TargetSettlement>& settlements);

}  // namespace holdfast
