// From a body to a frame, sealed with the current data key, which wears. Threads: several may seal at once, as long as
// nobody exchanges the key: the spool does that under both locks of which a sealing thread holds one.
#pragma once

#include <atomic>
#include <span>
#include <string_view>
#include <vector>

#include "crypto/frame.h"
#include "spool/clock.h"
#include "spool/done_list.h"
#include "spool/keyring.h"
#include "spool/priority.h"
#include "spool/reason.h"

namespace holdfast {

// When a record was accepted, by both clocks.
struct Accepted {
  WallTime wall;
  Nanoseconds monotonic{0};
};

class Sealer {
 public:
  Sealer(const Keyring& keyring, const Clock& clock, std::uint32_t boot)
      : keyring_(keyring), clock_(clock), boot_(boot) {}

  Accepted now() const { return {clock_.wall(), clock_.monotonic()}; }
  // Without the content digest.
  FrameHeader header(const Accepted& accepted, Sequence sequence, const RecordId& id, RouteNumber route,
                     Priority priority) const;

  // Appends.
  void seal(FrameHeader& header, ByteView plain, Bytes& out);
  // Into a place of sealed_frame_size() bytes.
  void seal_at(std::span<std::uint8_t> frame, FrameHeader& header, ByteView plain);
  // Not sealed, and not to be forged. The order of `settlements` changes.
  void append_done(std::vector<TargetSettlement>& settlements, Bytes& out) const;
  // Why a record was set aside, behind its frame; of the words kMaxWords bytes.
  void append_note(const FrameHeader& record, Reason reason, TargetNumber target, std::string_view words, Bytes& out);

  // Bytes that were sealed with the current data key and are not in the manifest yet.
  std::uint64_t worn() const { return worn_; }
  void written_down(std::uint64_t bytes) { worn_ -= bytes; }

 private:
  const Keyring& keyring_;
  const Clock& clock_;
  const std::uint32_t boot_;
  std::atomic<std::uint64_t> worn_{0};
};

}  // namespace holdfast
