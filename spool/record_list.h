// Records as an operator sees them, in a list or opened, and which of them he means. Values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "crypto/digest.h"
#include "spool/envelope.h"
#include "spool/index.h"
#include "spool/manifest.h"
#include "spool/priority.h"
#include "spool/reason.h"

namespace holdfast {

// One record as an operator sees it in a list: nothing that needs opening (I7).
struct RecordSummary {
  Sequence sequence = 0;
  RecordId id;
  RouteNumber route{};
  Priority priority = 0;
  std::uint64_t size = 0;
  std::int64_t accepted_wall_ns = 0;
  std::vector<TargetNumber> waiting;
  bool in_file = false;
};

// A record opened for an operator.
struct OpenedRecord {
  RecordSummary summary;
  RecordBody body;
  Reason reason = Reason::none;  // quarantine only
  std::string words;
};

struct RecordFilter {
  std::optional<TargetNumber> target;    // that still waits for it
  std::optional<std::string> id_prefix;  // hex digits
  std::optional<std::string> subject;    // a pattern; records are opened to find out
  std::optional<Sequence> sequence;
  bool everything = false;  // an empty filter matches nothing unless this says so

  bool is_narrow() const { return target || id_prefix || subject || sequence; }
  // As far as it can be told without the subject and the target.
  bool may_match(Sequence of_sequence, const RecordId& id) const;
};

}  // namespace holdfast
