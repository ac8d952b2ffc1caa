// One incoming message as a value, and its strict byte layout inside a sealed record (spool/FORMAT.md, "Record body").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "crypto/bytes.h"

namespace holdfast {

struct Header {
  std::string name;
  std::string value;
  bool operator==(const Header&) const = default;
};

// Where the message stood in its stream.
struct Origin {
  std::string stream;
  std::uint64_t sequence = 0;
  std::int64_t timestamp_ns = 0;  // the stream's own time for it, since 1970
  bool operator==(const Origin&) const = default;
};

struct Envelope {
  std::string source;  // the name of the source in the configuration
  std::string subject;
  std::vector<Header> headers;  // in the order they came, names as they were spelled
  Bytes payload;
  Origin origin;
  // A headers-only consumer left the payload out: `payload` is empty, `original_size` says what it had.
  // (Nats-Msg-Size: a valid non-negative integer, and no body.)
  bool payload_omitted = false;
  std::uint64_t original_size = 0;
  bool operator==(const Envelope&) const = default;
};

// What is sealed: the message and the canonical key it is known by.
struct RecordBody {
  std::string key;
  Envelope envelope;
  bool operator==(const RecordBody&) const = default;
};

// Appends. `encoded_size` says beforehand how many bytes: at most 4 GiB - 1 (the caller has refused larger ones as
// too_large).
void encode_body(const std::string& key, const Envelope& envelope, Bytes& out);
std::size_t encoded_size(const std::string& key, const Envelope& envelope);
// Nothing when the bytes are not exactly one body of a version that is known.
std::optional<RecordBody> decode_body(ByteView bytes);

// The first header whose name equals `name` without regard to case; nothing when there is none.
std::optional<std::string_view> find_header(const Envelope& envelope, std::string_view name);

// Sets payload_omitted and original_size (0 where nothing was left out) from what came. A source calls it once, when
// headers and payload are in.
void note_omitted_payload(Envelope& envelope);

}  // namespace holdfast
