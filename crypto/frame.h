// The frame: the one form in which a record lies in the journal and in its file (FORMAT.md, "Frame").
//
// A plaintext header of fixed size, then a body. The header can be checked, ordered and counted without opening
// anything; the body of a `put` or a `note` is sealed with XChaCha20-Poly1305-IETF under a data key, with the header as
// associated data. The body of a `done` is plain and carries a keyed MAC.
//
// Pure: no file, clock or log. Threads: any.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "crypto/bytes.h"
#include "crypto/digest.h"
#include "crypto/require.h"
#include "crypto/secret.h"

namespace holdfast {

inline constexpr std::size_t kFrameHeaderSize = 144;
inline constexpr std::size_t kFrameTagSize = 16;  // what sealing adds to a body
inline constexpr std::uint32_t kMaxFrameBody = 256u << 20;

enum class FrameKind : std::uint8_t {
  put = 1,   // a record
  done = 2,  // spool sequences that were settled
  note = 3,  // why a record was set aside; stands behind the record's frame in a quarantine file
};

struct FrameHeader {
  FrameKind kind = FrameKind::put;
  bool clock_trusted = false;          // flag bit 0: the wall clock was synchronised when the record was accepted
  std::uint32_t body_size = 0;         // as stored, tag included
  std::uint32_t data_key_id = 0;       // 0 just where nothing is sealed: done
  std::uint64_t sequence = 0;          // spool sequence
  std::int64_t accepted_wall_ns = 0;   // since 1970, by the wall clock
  std::uint64_t accepted_mono_ns = 0;  // since boot
  std::uint32_t boot = 0;              // the spool's own count of its lives
  std::uint32_t route = 0;
  std::uint8_t priority = 0;
  RecordId id;
  ContentDigest content;  // for done: the MAC of the body
  std::array<std::uint8_t, 24> nonce{};
  std::uint32_t body_crc = 0;
};

// Why bytes are not a frame of ours. Each is a line of FORMAT.md's reject list, which also says in which order they are
// looked for.
enum class Reject : std::uint8_t {
  short_header,
  bad_magic,
  unknown_version,
  unknown_kind,
  unknown_flags,
  reserved_not_zero,
  bad_priority,
  bad_size,
  bad_header_mac,
  short_body,
  trailing_bytes,
  bad_crc,
  bad_body_mac,
  wrong_data_key,
  bad_seal,
};
// The name as it stands in that list, for people and vectors.
const char* reject_text(Reject reject);

// A value or the reason why there is none.
template <typename T>
class [[nodiscard]] Parsed {
 public:
  Parsed(T value) : value_(std::move(value)) {}
  Parsed(Reject reject) : reject_(reject) {}
  explicit operator bool() const { return value_.has_value(); }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  // Only where there is no value.
  Reject reject() const {
    require(!value_, "a value asked why it is none");
    return reject_;
  }

 private:
  std::optional<T> value_;
  Reject reject_ = Reject::short_header;
};

// Of a body of so many bytes.
constexpr std::size_t sealed_frame_size(std::size_t body) {
  return kFrameHeaderSize + body + kFrameTagSize;
}

// Writes a sealed frame of just that size to `frame`, where `body` must not lie. Kind put or note, data_key_id not 0.
// Sets body_size, nonce and body_crc of `header`. The body is sealed straight into its place: one pass, no copy.
void seal_frame_at(std::span<std::uint8_t> frame, FrameHeader& header, ByteView body, const SecretKey& data_key,
                   const Namer& namer);
// The same, appended to `out`.
void seal_frame(FrameHeader& header, ByteView body, const SecretKey& data_key, const Namer& namer, Bytes& out);

// Appends a done frame. Sets `content` to the body's MAC, data_key_id and nonce to zero, body_size and body_crc.
void write_done_frame(FrameHeader& header, ByteView body, const Namer& namer, Bytes& out);

// Checks everything about the header that needs no body, the keyed MAC included.
Parsed<FrameHeader> read_header(ByteView bytes, const Namer& namer);

// The stored body of a frame whose header was read from the same bytes; checks its length (`bytes` may go on) and its
// CRC, and for a done frame its MAC.
Parsed<ByteView> read_body(const FrameHeader& header, ByteView bytes, const Namer& namer);

// The same for bytes that must be this one frame and nothing more, as a record file is.
Parsed<ByteView> read_body_alone(const FrameHeader& header, ByteView bytes, const Namer& namer);

// Opens a sealed body. `bytes` begins with the header that `header` was read from, and may go on after the frame.
// A wrong key under the right number cannot be told from altered bytes: both are bad_seal. A frame that is not sealed
// is wrong_data_key.
Parsed<Bytes> open_frame(const FrameHeader& header, ByteView bytes, const SecretKey& data_key, const Namer& namer);
// The same into a buffer that is used again and again; what it holds means nothing when there is a reject.
std::optional<Reject> open_frame_into(Bytes& opened, const FrameHeader& header, ByteView bytes,
                                      const SecretKey& data_key, const Namer& namer);

}  // namespace holdfast
