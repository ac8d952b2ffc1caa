// A record's frame, wherever it lies, and what is in it. Threads: any.
#pragma once

#include <optional>
#include <variant>

#include "spool/envelope.h"
#include "spool/journal.h"
#include "spool/keyring.h"
#include "spool/reason.h"
#include "spool/record_files.h"

namespace holdfast {

// A body that was opened, or the reason why it cannot be.
struct OpenedBody {
  FrameHeader header;
  RecordBody body;
};
std::variant<OpenedBody, Reason> open_record(ByteView frame, const Keyring& keyring);
// With a buffer for the plaintext that is used again and again.
std::variant<OpenedBody, Reason> open_record(ByteView frame, const Keyring& keyring, Bytes& plain);

class FrameReader {
 public:
  FrameReader(const Namer& namer, Journal& journal, RecordFiles& files)
      : namer_(namer), journal_(journal), files_(files) {}

  // The bytes are that record's frame, whole.
  bool is_frame_of(ByteView bytes, Sequence sequence) const;
  // From the journal if it is still there, whole: a segment may have been reused since its place was looked up, and
  // what has rotted in the one place may be sound in the other. Else from its file; errors as RecordFiles::read.
  Result<void> read(Sequence sequence, const RecordId& id, const std::optional<FrameSpot>& spot, Bytes& frame) const;

 private:
  const Namer& namer_;
  Journal& journal_;
  RecordFiles& files_;
};

}  // namespace holdfast
