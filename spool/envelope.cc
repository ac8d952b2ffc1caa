#include "spool/envelope.h"

#include <algorithm>
#include <limits>

#include "crypto/text.h"
#include "spool/ascii.h"
#include "spool/check.h"

namespace holdfast {
namespace {

constexpr std::uint8_t kBodyVersion = 1;
constexpr std::uint8_t kFlagPayloadOmitted = 1u << 0;
constexpr std::uint8_t kKnownFlags = kFlagPayloadOmitted;

constexpr std::size_t kPrefix = 4;                               // u32 length before every text
constexpr std::size_t kFixedSize = 2 + 5 * kPrefix + 3 * 8 + 4;  // version, flags; 5 texts; 3 numbers; header count
constexpr std::size_t kSmallestHeader = 2 * kPrefix;

// Room for `more` bytes. Grows by doubling, so that many bodies appended to one buffer do not copy it each time.
void make_room(Bytes& out, std::size_t more) {
  const std::size_t needed = out.size() + more;
  if (needed > out.capacity()) out.reserve(std::max(needed, 2 * out.capacity()));
}

std::string prefixed_text(ByteReader& in) {
  return std::string(as_text(in.prefixed()));
}

// Decimal digits, white space around them forgiven; no sign, nothing else.
std::optional<std::uint64_t> parse_size(std::string_view text) {
  constexpr std::string_view kSpace = " \t";
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  text = text.substr(0, text.find_last_not_of(kSpace) + 1);
  return parse_decimal<std::uint64_t>(text);
}

}  // namespace

std::size_t encoded_size(const std::string& key, const Envelope& envelope) {
  std::size_t size = kFixedSize + key.size() + envelope.source.size() + envelope.subject.size() +
                     envelope.origin.stream.size() + envelope.payload.size();
  for (const Header& header : envelope.headers) size += kSmallestHeader + header.name.size() + header.value.size();
  return size;
}

void encode_body(const std::string& key, const Envelope& envelope, Bytes& out) {
  const std::size_t size = encoded_size(key, envelope);
  CHECK(size <= std::numeric_limits<std::uint32_t>::max());
  CHECK(!envelope.payload_omitted || envelope.payload.empty());
  make_room(out, size);
  ByteWriter writer(out);
  writer.u8(kBodyVersion);
  writer.u8(envelope.payload_omitted ? kFlagPayloadOmitted : 0);
  writer.prefixed(as_bytes(key));
  writer.prefixed(as_bytes(envelope.source));
  writer.prefixed(as_bytes(envelope.subject));
  writer.prefixed(as_bytes(envelope.origin.stream));
  writer.u64(envelope.origin.sequence);
  writer.u64(static_cast<std::uint64_t>(envelope.origin.timestamp_ns));
  writer.u64(envelope.original_size);
  writer.u32(static_cast<std::uint32_t>(envelope.headers.size()));
  for (const Header& header : envelope.headers) {
    writer.prefixed(as_bytes(header.name));
    writer.prefixed(as_bytes(header.value));
  }
  writer.prefixed(envelope.payload);
}

std::optional<RecordBody> decode_body(ByteView bytes) {
  ByteReader in(bytes);
  if (in.u8() != kBodyVersion) return std::nullopt;
  const std::uint8_t flags = in.u8();
  if ((flags & ~kKnownFlags) != 0) return std::nullopt;

  RecordBody body;
  Envelope& envelope = body.envelope;
  body.key = prefixed_text(in);
  envelope.source = prefixed_text(in);
  envelope.subject = prefixed_text(in);
  envelope.origin.stream = prefixed_text(in);
  envelope.origin.sequence = in.u64();
  envelope.origin.timestamp_ns = static_cast<std::int64_t>(in.u64());
  envelope.original_size = in.u64();
  const std::uint32_t headers = in.u32();
  // So that a lying count cannot make us reserve more than the bytes that are there could hold.
  if (headers > in.remaining() / kSmallestHeader) return std::nullopt;
  envelope.headers.reserve(headers);
  for (std::uint32_t i = 0; i < headers && in.good(); ++i) {
    std::string name = prefixed_text(in);
    envelope.headers.push_back({std::move(name), prefixed_text(in)});
  }
  const ByteView payload = in.prefixed();
  envelope.payload_omitted = (flags & kFlagPayloadOmitted) != 0;
  if (!in.done() || (envelope.payload_omitted && !payload.empty())) return std::nullopt;
  envelope.payload.assign(payload.begin(), payload.end());
  return body;
}

std::optional<std::string_view> find_header(const Envelope& envelope, std::string_view name) {
  for (const Header& header : envelope.headers) {
    if (equal_ignoring_case(header.name, name)) return header.value;
  }
  return std::nullopt;
}

void note_omitted_payload(Envelope& envelope) {
  const auto text = find_header(envelope, "Nats-Msg-Size");
  const auto size = text ? parse_size(*text) : std::nullopt;
  envelope.payload_omitted = size.has_value() && envelope.payload.empty();
  envelope.original_size = envelope.payload_omitted ? *size : 0;
}

}  // namespace holdfast
