#include "spool/stream_places.h"

namespace holdfast {

std::uint64_t StreamPlaces::tag(const std::string& stream, bool positional) const {
  return keyring_.namer().stream_tag(site_ + (positional ? ":" : " ") + stream);
}

void StreamPlaces::note(ByteView frame, LedgerEntry& entry) const {
  const auto opened = open_record(frame, keyring_);
  if (const OpenedBody* whole = std::get_if<OpenedBody>(&opened)) note(whole->body, entry);
}

// Its place is the identity only of a key that says nothing else: a conflict's key begins with it.
void StreamPlaces::note(const RecordBody& body, LedgerEntry& entry) const {
  const auto of_place = identify({Strategy::stream_sequence, {}}, site_, body.envelope);
  const Identity* identity = std::get_if<Identity>(&of_place);
  entry.positional = identity != nullptr && identity->key == body.key;
  entry.position = of(body.envelope.origin, entry.positional);
}

}  // namespace holdfast
