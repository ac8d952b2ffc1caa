#include "crypto/frame.h"

#include <sodium.h>

#include <algorithm>
#include <cstring>

#include "crypto/nonce.h"
#include "crypto/require.h"

namespace holdfast {
namespace {

constexpr std::array<std::uint8_t, 4> kMagic = {'H', 'F', 'R', '1'};
constexpr std::uint8_t kVersion = 1;
constexpr std::uint8_t kHighestPriority = 9;
constexpr std::uint16_t kClockTrusted = 1;

// Where each field begins (FORMAT.md, "Frame").
namespace at {
constexpr std::size_t version = 4, kind = 5, flags = 6, body_size = 8, data_key_id = 12, sequence = 16;
constexpr std::size_t wall = 24, mono = 32, boot = 40, route = 44, priority = 48, reserved = 49;
constexpr std::size_t id = 52, content = 84, nonce = 100, crc = 124, mac = 128;
}  // namespace at

// The associated data of the sealed body: everything before the CRC, which is of the sealed body itself.
constexpr std::size_t kAssociatedSize = at::crc;

static_assert(at::mac + sizeof(Mac) == kFrameHeaderSize);
static_assert(sizeof(FrameHeader::nonce) == crypto_aead_xchacha20poly1305_ietf_NPUBBYTES);
static_assert(kFrameTagSize == crypto_aead_xchacha20poly1305_ietf_ABYTES);

template <std::size_t kSize>
void store_array(std::uint8_t* to, const std::array<std::uint8_t, kSize>& bytes) {
  std::memcpy(to, bytes.data(), kSize);
}

template <std::size_t kSize>
std::array<std::uint8_t, kSize> load_array(const std::uint8_t* from) {
  std::array<std::uint8_t, kSize> bytes;
  std::memcpy(bytes.data(), from, kSize);
  return bytes;
}

bool all_zero(ByteView bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == 0; });
}

bool is_sealed(const FrameHeader& header) {
  return header.kind != FrameKind::done;
}

std::uint16_t flags_of(const FrameHeader& header) {
  return header.clock_trusted ? kClockTrusted : 0;
}

std::uint8_t* extend(Bytes& out, std::size_t size) {
  const std::size_t before = out.size();
  out.resize(before + size);
  return out.data() + before;
}

// Every field that is associated data of the body.
void store_facts(const FrameHeader& header, std::uint8_t* frame) {
  require(header.priority <= kHighestPriority, "a frame with a priority that there is not");
  store_array(frame, kMagic);
  store_le(frame + at::version, kVersion);
  store_le(frame + at::kind, static_cast<std::uint8_t>(header.kind));
  store_le(frame + at::flags, flags_of(header));
  store_le(frame + at::body_size, header.body_size);
  store_le(frame + at::data_key_id, header.data_key_id);
  store_le(frame + at::sequence, header.sequence);
  store_le(frame + at::wall, header.accepted_wall_ns);
  store_le(frame + at::mono, header.accepted_mono_ns);
  store_le(frame + at::boot, header.boot);
  store_le(frame + at::route, header.route);
  store_le(frame + at::priority, header.priority);
  store_array(frame + at::reserved, std::array<std::uint8_t, 3>{});
  store_array(frame + at::id, header.id.bytes);
  store_array(frame + at::content, header.content.bytes);
  store_array(frame + at::nonce, header.nonce);
}

// The two fields that can only be told once the body is in its place.
void finish(FrameHeader& header, const Namer& namer, std::uint8_t* frame) {
  header.body_crc = crc32c({frame + kFrameHeaderSize, header.body_size});
  store_le(frame + at::crc, header.body_crc);
  store_array(frame + at::mac, namer.header_mac({frame, at::mac}).bytes);
}

FrameHeader load_header(const std::uint8_t* frame) {
  const auto flags = load_le<std::uint16_t>(frame + at::flags);
  FrameHeader header;
  header.kind = static_cast<FrameKind>(frame[at::kind]);
  header.clock_trusted = (flags & kClockTrusted) != 0;
  header.body_size = load_le<std::uint32_t>(frame + at::body_size);
  header.data_key_id = load_le<std::uint32_t>(frame + at::data_key_id);
  header.sequence = load_le<std::uint64_t>(frame + at::sequence);
  header.accepted_wall_ns = load_le<std::int64_t>(frame + at::wall);
  header.accepted_mono_ns = load_le<std::uint64_t>(frame + at::mono);
  header.boot = load_le<std::uint32_t>(frame + at::boot);
  header.route = load_le<std::uint32_t>(frame + at::route);
  header.priority = frame[at::priority];
  header.id.bytes = load_array<32>(frame + at::id);
  header.content.bytes = load_array<16>(frame + at::content);
  header.nonce = load_array<24>(frame + at::nonce);
  header.body_crc = load_le<std::uint32_t>(frame + at::crc);
  return header;
}

// The reserved bytes, and the fields for which a frame of this form has no use.
bool has_zeros_in_place(const FrameHeader& header, const std::uint8_t* frame) {
  if (!all_zero({frame + at::reserved, 3})) return false;
  return is_sealed(header) || all_zero(header.nonce);
}

bool has_possible_size(const FrameHeader& header) {
  if (header.body_size > kMaxFrameBody) return false;
  return !is_sealed(header) || header.body_size >= kFrameTagSize;
}

}  // namespace

const char* reject_text(Reject reject) {
  switch (reject) {
    case Reject::short_header:
      return "short_header";
    case Reject::bad_magic:
      return "bad_magic";
    case Reject::unknown_version:
      return "unknown_version";
    case Reject::unknown_kind:
      return "unknown_kind";
    case Reject::unknown_flags:
      return "unknown_flags";
    case Reject::reserved_not_zero:
      return "reserved_not_zero";
    case Reject::bad_priority:
      return "bad_priority";
    case Reject::bad_size:
      return "bad_size";
    case Reject::bad_header_mac:
      return "bad_header_mac";
    case Reject::short_body:
      return "short_body";
    case Reject::trailing_bytes:
      return "trailing_bytes";
    case Reject::bad_crc:
      return "bad_crc";
    case Reject::bad_body_mac:
      return "bad_body_mac";
    case Reject::wrong_data_key:
      return "wrong_data_key";
    case Reject::bad_seal:
      return "bad_seal";
  }
  return "unknown_reject";
}

void seal_frame_at(std::span<std::uint8_t> place, FrameHeader& header, ByteView body, const SecretKey& data_key,
                   const Namer& namer) {
  require(is_sealed(header), "only a put or a note can be sealed");
  require(header.data_key_id != 0, "a sealed frame names its data key");
  require(body.size() <= kMaxFrameBody - kFrameTagSize, "a frame body over the limit");
  require(place.size() == sealed_frame_size(body.size()), "a sealed frame in a place of another size");
  header.body_size = static_cast<std::uint32_t>(body.size() + kFrameTagSize);
  header.nonce = fresh_nonce();

  std::uint8_t* frame = place.data();
  store_facts(header, frame);
  crypto_aead_xchacha20poly1305_ietf_encrypt(frame + kFrameHeaderSize, nullptr, body.data(), body.size(), frame,
                                             kAssociatedSize, nullptr, header.nonce.data(), data_key.bytes().data());
  finish(header, namer, frame);
}

void seal_frame(FrameHeader& header, ByteView body, const SecretKey& data_key, const Namer& namer, Bytes& out) {
  const std::size_t size = sealed_frame_size(body.size());
  seal_frame_at({extend(out, size), size}, header, body, data_key, namer);
}

void write_done_frame(FrameHeader& header, ByteView body, const Namer& namer, Bytes& out) {
  require(header.kind == FrameKind::done, "not the header of a done frame");
  require(body.size() <= kMaxFrameBody, "a frame body over the limit");
  header.body_size = static_cast<std::uint32_t>(body.size());
  header.data_key_id = 0;
  header.nonce = {};
  header.content.bytes = namer.body_mac(body).bytes;

  std::uint8_t* frame = extend(out, kFrameHeaderSize + body.size());
  store_facts(header, frame);
  std::copy(body.begin(), body.end(), frame + kFrameHeaderSize);
  finish(header, namer, frame);
}

Parsed<FrameHeader> read_header(ByteView bytes, const Namer& namer) {
  if (bytes.size() < kFrameHeaderSize) return Reject::short_header;
  const std::uint8_t* frame = bytes.data();
  if (std::memcmp(frame, kMagic.data(), kMagic.size()) != 0) return Reject::bad_magic;
  if (frame[at::version] != kVersion) return Reject::unknown_version;
  const std::uint8_t kind = frame[at::kind];
  if (kind < 1 || kind > 3) return Reject::unknown_kind;

  const FrameHeader header = load_header(frame);
  if ((load_le<std::uint16_t>(frame + at::flags) & ~kClockTrusted) != 0) return Reject::unknown_flags;
  if (!has_zeros_in_place(header, frame)) return Reject::reserved_not_zero;
  if (header.priority > kHighestPriority) return Reject::bad_priority;
  if (!has_possible_size(header)) return Reject::bad_size;
  const Mac stored{load_array<16>(frame + at::mac)};
  if (!same_mac(stored, namer.header_mac({frame, at::mac}))) return Reject::bad_header_mac;
  if (is_sealed(header) != (header.data_key_id != 0)) return Reject::wrong_data_key;
  return header;
}

Parsed<ByteView> read_body(const FrameHeader& header, ByteView bytes, const Namer& namer) {
  if (bytes.size() < kFrameHeaderSize) return Reject::short_header;
  const ByteView after_header = bytes.subspan(kFrameHeaderSize);
  if (after_header.size() < header.body_size) return Reject::short_body;
  const ByteView body = after_header.first(header.body_size);
  if (crc32c(body) != header.body_crc) return Reject::bad_crc;
  if (header.kind == FrameKind::done && !same_mac({header.content.bytes}, namer.body_mac(body)))
    return Reject::bad_body_mac;
  return body;
}

Parsed<ByteView> read_body_alone(const FrameHeader& header, ByteView bytes, const Namer& namer) {
  if (bytes.size() > kFrameHeaderSize + std::size_t{header.body_size}) return Reject::trailing_bytes;
  return read_body(header, bytes, namer);
}

Parsed<Bytes> open_frame(const FrameHeader& header, ByteView bytes, const SecretKey& data_key, const Namer& namer) {
  Bytes opened;
  if (const auto reject = open_frame_into(opened, header, bytes, data_key, namer)) return *reject;
  return opened;
}

std::optional<Reject> open_frame_into(Bytes& opened, const FrameHeader& header, ByteView bytes,
                                      const SecretKey& data_key, const Namer& namer) {
  if (!is_sealed(header) || header.data_key_id == 0) return Reject::wrong_data_key;
  const Parsed<ByteView> body = read_body(header, bytes, namer);
  if (!body) return body.reject();
  if (body->size() < kFrameTagSize) return Reject::bad_size;

  opened.resize(body->size() - kFrameTagSize);
  if (crypto_aead_xchacha20poly1305_ietf_decrypt(opened.data(), nullptr, nullptr, body->data(), body->size(),
                                                 bytes.data(), kAssociatedSize, header.nonce.data(),
                                                 data_key.bytes().data()) != 0)
    return Reject::bad_seal;
  return {};
}

}  // namespace holdfast
