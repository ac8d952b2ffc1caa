// What one put_batch call brings to a commit. Private to this room.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "crypto/digest.h"
#include "spool/arrival.h"
#include "spool/ledger.h"
#include "spool/result.h"

namespace holdfast {

// An arrival with what can be computed of it without a lock.
struct Prepared {
  const Arrival* arrival = nullptr;
  RecordId id;
  std::optional<ContentDigest> content;  // made when it is needed first: of a new record when it is sealed
  std::optional<StreamPosition> position;
  bool positional = false;      // as LedgerEntry
  std::uint64_t other_tag = 0;  // that the place would have if it were the identity, or were not
  std::size_t frame_size = 0;
  std::string own_key;  // not the arrival's: of a conflict, of a duplicate that is kept

  const std::string& key() const { return own_key.empty() ? arrival->identity.key : own_key; }
  std::optional<StreamPosition> looked_up_by() const { return positional ? position : std::nullopt; }
  LedgerEntry ledger_entry() const { return {id, position, positional, content.value_or(ContentDigest{})}; }
  // Of a message that is no record: where it stood, and nothing of what it was.
  LedgerEntry witness() const { return {RecordId{}, position, true, ContentDigest{}}; }
};

struct CommitRequest {
  std::vector<Prepared> prepared;
  std::vector<Verdict> verdicts;
  std::optional<Error> error;
  bool done = false;
};

}  // namespace holdfast
