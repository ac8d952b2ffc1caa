#include "spool/frame_reader.h"

#include <utility>

namespace holdfast {

std::variant<OpenedBody, Reason> open_record(ByteView frame, const Keyring& keyring) {
  Bytes plain;
  return open_record(frame, keyring, plain);
}

std::variant<OpenedBody, Reason> open_record(ByteView frame, const Keyring& keyring, Bytes& plain) {
  const auto header = read_header(frame, keyring.namer());
  if (!header || header->kind != FrameKind::put) return Reason::damaged;
  const SecretKey* key = keyring.data_key(header->data_key_id);
  if (key == nullptr) return read_body(*header, frame, keyring.namer()) ? Reason::unopenable : Reason::damaged;
  if (const auto reject = open_frame_into(plain, *header, frame, *key, keyring.namer()))
    return *reject == Reject::bad_seal ? Reason::unopenable : Reason::damaged;
  auto body = decode_body(plain);
  if (!body) return Reason::undecodable;
  return OpenedBody{*header, std::move(*body)};
}

bool FrameReader::is_frame_of(ByteView bytes, Sequence sequence) const {
  const auto header = read_header(bytes, namer_);
  return header && header->sequence == sequence && read_body(*header, bytes, namer_);
}

Result<void> FrameReader::read(Sequence sequence, const RecordId& id, const std::optional<FrameSpot>& spot,
                               Bytes& frame) const {
  if (spot) {
    HOLDFAST_TRY(journal_.read(*spot, frame));
    if (is_frame_of(frame, sequence)) return {};
  }
  return files_.read(id, frame);
}

}  // namespace holdfast
