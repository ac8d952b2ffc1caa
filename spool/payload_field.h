// One field of a message's payload, by its path: what the payload_field identity is made of (spool/IDENTITY.md).
//
// A payload that is not JSON, all of it and strictly, has the fields of the envelope that nats-sinks puts around such a
// payload, and no others. Time is linear in the payload, memory in the field; the payload is not copied, but for once
// where it has an exponent above 2^31. Pure; nothing is thrown.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "crypto/bytes.h"
#include "spool/field_path.h"
#include "spool/reason.h"

namespace holdfast {

// Objects and arrays inside each other. Above, a payload is no JSON to us: reading takes a piece of the stack for each.
inline constexpr std::size_t kMaxJsonDepth = 256;

// Of a string, in bytes. It becomes a key, in which each byte may take three, and which is kept beside its payload:
// this is what a NATS server takes as one message where nobody told it otherwise.
inline constexpr std::size_t kMaxFieldText = 1u << 20;

enum class FieldType : std::uint8_t { string, number, boolean };

struct FieldValue {
  FieldType type = FieldType::string;
  std::string text;  // a string's own bytes; a plain decimal; true or false
  bool operator==(const FieldValue&) const = default;
};

// The field, or why there is none that could name a message.
std::variant<FieldValue, Reason> find_field(const FieldPath& path, ByteView payload) noexcept;

}  // namespace holdfast
