// What is given to the spool, and what it says to each: an arrival and its verdict, and what a source knows of its
// stream. Values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "crypto/digest.h"
#include "spool/clock.h"
#include "spool/envelope.h"
#include "spool/identity.h"
#include "spool/index.h"
#include "spool/manifest.h"
#include "spool/priority.h"
#include "spool/reason.h"
#include "spool/spool_status.h"

namespace holdfast {

// What becomes of another message with an identity that is known.
enum class OnConflict : std::uint8_t {  // its content is another
  quarantine,
  forward,  // under a key of its own (spool/IDENTITY.md, "Conflicts")
};
enum class OnDuplicate : std::uint8_t {  // its content is the same; a redelivery is skipped in any case
  skip,
  quarantine,
};

struct Arrival {
  Envelope envelope;
  Identity identity;              // for a refused one: its refused_key
  Reason refused = Reason::none;  // otherwise: quarantined with this reason, in custody, in the same commit
  RouteNumber route{};
  Priority priority = kNormalPriority;
  OnConflict on_conflict = OnConflict::quarantine;
  OnDuplicate on_duplicate = OnDuplicate::skip;
};

// What can no longer be redelivered.
struct StreamFloor {
  std::string stream;
  std::uint64_t below = 0;         // sequences: acknowledged, and gone from the stream
  std::uint64_t acknowledged = 0;  // and those below which all are acknowledged
  // All that was committed so long ago, or before, is acknowledged. Nothing: not known.
  std::optional<Nanoseconds> acknowledged_ago;
};

enum class VerdictKind : std::uint8_t {
  accepted,   // a new record
  duplicate,  // the same identity and content is there or was there; with a sequence: kept in quarantine all the same
  conflict,   // the same identity with other content: the newcomer is in quarantine, or forwarded, under its own key
  refused,    // in quarantine with the reason it came with
};
enum class SeenIn : std::uint8_t { nowhere, batch, custody, ledger };

struct Verdict {
  VerdictKind kind = VerdictKind::accepted;
  SeenIn seen_in = SeenIn::nowhere;  // duplicate and conflict: where the earlier one was found
  Reason reason = Reason::none;
  RecordId id;
  Sequence sequence = 0;  // of the new record; 0: there is none
};

void count(const Verdict& verdict, VerdictCounts& counts);

}  // namespace holdfast
