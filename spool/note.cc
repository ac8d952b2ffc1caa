#include "spool/note.h"

namespace holdfast {
namespace {

constexpr std::uint8_t kVersion = 1;

}  // namespace

void encode_note(const Note& note, Bytes& out) {
  ByteWriter writer(out);
  writer.u8(kVersion);
  writer.u16(static_cast<std::uint16_t>(note.reason));
  writer.u32(static_cast<std::uint32_t>(note.target));
  writer.prefixed(as_bytes(note.words));
}

std::optional<Note> decode_note(ByteView bytes) {
  ByteReader in(bytes);
  const std::uint8_t version = in.u8();
  Note note;
  note.reason = static_cast<Reason>(in.u16());
  note.target = static_cast<TargetNumber>(in.u32());
  note.words = as_text(in.prefixed());
  if (!in.done() || version != kVersion || note.words.size() > kMaxWords ||
      reason_from_text(reason_text(note.reason)) != note.reason)
    return {};
  return note;
}

}  // namespace holdfast
