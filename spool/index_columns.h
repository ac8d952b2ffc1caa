// What the tables of the index hold, to and from SQLite. For the index's own sources.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "spool/index_rows.h"

namespace holdfast {

inline std::uint64_t number(TargetNumber target) {
  return static_cast<std::uint64_t>(target);
}
inline std::uint64_t number(RouteNumber route) {
  return static_cast<std::uint64_t>(route);
}
inline std::uint64_t number(Reason reason) {
  return static_cast<std::uint64_t>(reason);
}
inline std::uint64_t from_signed(std::int64_t value) {
  return static_cast<std::uint64_t>(value);
}

inline TargetNumber target_at(const Statement& row, int column) {
  return static_cast<TargetNumber>(static_cast<std::uint32_t>(row.u64(column)));
}
inline RouteNumber route_at(const Statement& row, int column) {
  return static_cast<RouteNumber>(static_cast<std::uint32_t>(row.u64(column)));
}
// All zeros where none was known.
inline RecordId id_at(const Statement& row, int column) {
  RecordId id;
  const ByteView bytes = row.blob(column);
  if (bytes.size() == id.bytes.size()) std::copy(bytes.begin(), bytes.end(), id.bytes.begin());
  return id;
}

// The columns of record, in their order; what it waits for stays empty.
inline IndexedRecord record_at(const Statement& row) {
  return {row.u64(0),
          id_at(row, 1),
          route_at(row, 2),
          static_cast<Priority>(row.u64(3)),
          row.u64(4),
          static_cast<std::int64_t>(row.u64(5)),
          {}};
}

// A limit that SQLite can hold; -1 would be none.
inline std::uint64_t bounded(std::size_t limit) {
  return std::min<std::uint64_t>(limit, std::numeric_limits<std::int32_t>::max());
}

// Calls `read` for each row until it says false.
template <typename Read>
Result<void> each_row(Statement& statement, Read read) {
  const ResetAtEnd reset(statement);
  for (;;) {
    const auto row = statement.step();
    if (!row.ok()) return row.error();
    if (!*row || !read()) return {};
  }
}

}  // namespace holdfast
