// Identity: the stable name of a message across redeliveries. The canonical key strings are a contract with every
// upstream that recomputes them (spool/IDENTITY.md). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "spool/envelope.h"
#include "spool/field_path.h"
#include "spool/reason.h"

namespace holdfast {

enum class Strategy : std::uint8_t { stream_sequence, message_id, payload_field, payload_hash };

// As it is written in a configuration, and shown.
std::string_view strategy_text(Strategy strategy);

enum class MessageIdScope : std::uint8_t { global, site, stream };

struct IdentityRule {
  Strategy strategy = Strategy::stream_sequence;
  MessageIdScope scope = MessageIdScope::global;  // message_id only
  FieldPath field{};                              // payload_field only; it has keys then
  bool operator==(const IdentityRule&) const = default;
};

// A message's place in a stream: what the ledger keeps, packed, instead of a key where the key is made of nothing else.
struct StreamPosition {
  std::uint64_t stream_tag = 0;  // Namer::stream_tag over site and stream
  std::uint64_t sequence = 0;
  std::int64_t timestamp_ns = 0;
  bool operator==(const StreamPosition&) const = default;
};

struct Identity {
  std::string key;
  // That made it. Of a stream_sequence the ledger keeps the position instead of the key.
  Strategy strategy = Strategy::stream_sequence;
};

// The identity, or why the message has none under this rule.
std::variant<Identity, Reason> identify(const IdentityRule& rule, std::string_view site, const Envelope& envelope);

// The key of a message that was refused: `refused:{site}:{stream}:{sequence}:{timestamp_ns}`.
std::string refused_key(std::string_view site, const Envelope& envelope);

// Every byte outside 0x21-0x7E, and `%` and `:`, as %XX.
std::string escape_component(std::string_view component);

// What travels upstream as the key: itself up to 200 bytes, else "h:" and the SHA-256 of it in hexadecimal.
std::string wire_key(std::string_view key);

}  // namespace holdfast
