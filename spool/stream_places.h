// Where a message stood in its stream, as the ledger keeps it. Pure, but for the keys it is computed with.
// Threads: any.
#pragma once

#include <string>

#include "spool/frame_reader.h"
#include "spool/ledger.h"

namespace holdfast {

class StreamPlaces {
 public:
  // `site`: the one in keys.
  StreamPlaces(const Keyring& keyring, std::string site) : keyring_(keyring), site_(std::move(site)) {}

  // A place that is no identity is kept apart from those that are: it answers for the stream, not for a message.
  std::uint64_t tag(const std::string& stream, bool positional) const;
  StreamPosition of(const Origin& origin, bool positional) const {
    return {tag(origin.stream, positional), origin.sequence, origin.timestamp_ns};
  }

  // How the record was identified, from the record itself. Nothing is told by a frame that cannot be opened.
  void note(ByteView frame, LedgerEntry& entry) const;
  void note(const RecordBody& body, LedgerEntry& entry) const;

 private:
  const Keyring& keyring_;
  const std::string site_;
};

}  // namespace holdfast
