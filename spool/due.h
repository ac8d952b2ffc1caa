// What a target is given, and what it says of each: a record that is due and its settlement. Values.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "crypto/digest.h"
#include "spool/envelope.h"
#include "spool/index.h"
#include "spool/priority.h"
#include "spool/reason.h"

namespace holdfast {

// Where one target's reading stands. A value of the caller's: a fresh one begins at the oldest.
struct DueCursor {
  std::array<Sequence, kPriorities> after{};
  std::uint64_t generation = 0;  // the spool rewinds a cursor of an earlier generation (retarget, what was found again)
};

enum class Drain : std::uint8_t { fifo, priority };

struct DueRecord {
  Sequence sequence = 0;
  RecordId id;
  Priority priority = 0;
  std::string key;  // canonical
  Envelope envelope;
  std::int64_t accepted_wall_ns = 0;
  bool clock_trusted = false;
  bool surely_unsent = false;  // taken in this life and handed out for this target for the first time
  std::size_t bytes = 0;       // what it costs in a window
};

enum class Fate : std::uint8_t { delivered, duplicate, duplicate_unexpected, rejected };

struct Settlement {
  Sequence sequence = 0;
  Fate fate = Fate::delivered;
  Reason reason = Reason::none;  // rejected: why
  std::string words;             // rejected: the target's own, at most 1 KiB is kept, sealed
};

}  // namespace holdfast
