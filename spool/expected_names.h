// How many names each directory of records/ must hold: one for each row. Rows that reconciliation has not looked at yet
// are not counted. Threads: any, but reconciliation is one.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "spool/index.h"

namespace holdfast {

class ExpectedNames {
 public:
  static constexpr unsigned kDirectories = 256;

  // Rows of this life are counted as they come, earlier ones when they have been looked at. Once, before any of them.
  void begin(Sequence first_of_this_life) { first_of_this_life_ = first_of_this_life; }
  void look_at(Sequence row) { looked_at_ = row; }
  Sequence looked_at() const { return looked_at_; }
  bool counts(Sequence row) const { return row >= first_of_this_life_ || row <= looked_at_; }

  void row_came(const RecordId& id, Sequence row) {
    if (counts(row)) ++names_[id.bytes[0]];
  }
  void row_left(const RecordId& id, Sequence row) {
    if (counts(row)) --names_[id.bytes[0]];
  }
  // Of a row that was counted.
  void name_left(const RecordId& id) { --names_[id.bytes[0]]; }

  std::int64_t in_directory(unsigned first_byte) const { return names_[first_byte]; }

 private:
  Sequence first_of_this_life_ = 0;
  std::atomic<Sequence> looked_at_{0};
  std::array<std::atomic<std::int64_t>, kDirectories> names_{};
};

}  // namespace holdfast
