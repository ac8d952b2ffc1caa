// The note behind a record in a quarantine file: why it is there (FORMAT.md, "Note body"). Sealed like a record.
#pragma once

#include <optional>
#include <string>

#include "crypto/bytes.h"
#include "spool/manifest.h"
#include "spool/reason.h"

namespace holdfast {

inline constexpr std::size_t kMaxWords = 1024;  // of what a target said

struct Note {
  Reason reason = Reason::none;
  TargetNumber target{};  // who rejected it; 0 for none
  std::string words;      // the target's own, at most kMaxWords
};

void encode_note(const Note& note, Bytes& out);
std::optional<Note> decode_note(ByteView bytes);

}  // namespace holdfast
