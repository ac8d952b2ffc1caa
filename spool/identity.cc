#include "spool/identity.h"

#include <array>
#include <charconv>
#include <limits>

#include "crypto/digest.h"
#include "spool/ascii.h"
#include "spool/payload_field.h"

namespace holdfast {
namespace {

// What a message broker takes for a header value without trouble (spool/IDENTITY.md, "On the wire").
constexpr std::size_t kMaxWireKey = 200;

constexpr std::array<std::string_view, 3> kMessageIdHeaders{"Nats-Msg-Id", "Nats-Message-Id", "message-id"};

bool stays_as_it_is(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x21 && byte <= 0x7e && byte != '%' && byte != ':';
}

void append_escaped(std::string& out, std::string_view component) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  for (const char c : component) {
    if (stays_as_it_is(c)) {
      out.push_back(c);
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out.push_back('%');
    out.push_back(kDigits[byte >> 4]);
    out.push_back(kDigits[byte & 0xf]);
  }
}

template <typename Integer>
void append_decimal(std::string& out, Integer number) {
  std::array<char, std::numeric_limits<Integer>::digits10 + 3> text;
  const auto result = std::to_chars(text.data(), text.data() + text.size(), number);
  out.append(text.data(), result.ptr);
}

// `{prefix}:{site}:{stream}:{sequence}:{timestamp_ns}`. Made once per message: one allocation in the usual case.
std::string position_key(std::string_view prefix, std::string_view site, const Origin& origin) {
  constexpr std::size_t kRoomForNumbers = 48;
  std::string key;
  key.reserve(prefix.size() + site.size() + origin.stream.size() + kRoomForNumbers);
  key.append(prefix);
  key.push_back(':');
  append_escaped(key, site);
  key.push_back(':');
  append_escaped(key, origin.stream);
  key.push_back(':');
  append_decimal(key, origin.sequence);
  key.push_back(':');
  append_decimal(key, origin.timestamp_ns);
  return key;
}

// The names in their order; of one that came several times the first value that is not empty.
std::string_view message_id(const Envelope& envelope) {
  for (const std::string_view name : kMessageIdHeaders) {
    for (const Header& header : envelope.headers) {
      if (!header.value.empty() && equal_ignoring_case(header.name, name)) return header.value;
    }
  }
  return {};
}

std::string message_id_key(MessageIdScope scope, std::string_view site, std::string_view stream, std::string_view id) {
  std::string key = "msg:";
  if (scope != MessageIdScope::global) {
    append_escaped(key, site);
    key.push_back(':');
  }
  if (scope == MessageIdScope::stream) {
    append_escaped(key, stream);
    key.push_back(':');
  }
  append_escaped(key, id);
  return key;
}

const char* type_text(FieldType type) {
  switch (type) {
    case FieldType::string:
      return "string";
    case FieldType::number:
      return "number";
    case FieldType::boolean:
      return "boolean";
  }
  return "";
}

std::string field_key(const FieldPath& path, const FieldValue& value) {
  std::string key = "field:";
  append_escaped(key, path.text);
  key.append(":").append(type_text(value.type)).push_back(':');
  append_escaped(key, value.text);
  return key;
}

std::string hash_key(std::string_view subject, ByteView payload) {
  std::string key = "hash:";
  append_escaped(key, subject);
  return key + ":" + to_hex(sha256(payload));
}

using KeyOrReason = std::variant<std::string, Reason>;

KeyOrReason key_of_field(const FieldPath& path, ByteView payload) {
  const auto found = find_field(path, payload);
  if (const Reason* reason = std::get_if<Reason>(&found)) return *reason;
  return field_key(path, std::get<FieldValue>(found));
}

KeyOrReason key_of(const IdentityRule& rule, std::string_view site, const Envelope& envelope) {
  switch (rule.strategy) {
    case Strategy::stream_sequence:
      return position_key("seq", site, envelope.origin);
    case Strategy::message_id: {
      const std::string_view id = message_id(envelope);
      if (id.empty()) return Reason::no_identity;
      return message_id_key(rule.scope, site, envelope.origin.stream, id);
    }
    case Strategy::payload_field:
      if (envelope.payload_omitted) return Reason::payload_omitted;
      return key_of_field(rule.field, envelope.payload);
    case Strategy::payload_hash:
      if (envelope.payload_omitted) return Reason::payload_omitted;
      return hash_key(envelope.subject, envelope.payload);
  }
  return Reason::no_identity;
}

}  // namespace

std::string_view strategy_text(Strategy strategy) {
  switch (strategy) {
    case Strategy::stream_sequence:
      return "stream_sequence";
    case Strategy::message_id:
      return "message_id";
    case Strategy::payload_field:
      return "payload_field";
    case Strategy::payload_hash:
      return "payload_hash";
  }
  return "unknown";
}

std::variant<Identity, Reason> identify(const IdentityRule& rule, std::string_view site, const Envelope& envelope) {
  auto key = key_of(rule, site, envelope);
  if (const Reason* reason = std::get_if<Reason>(&key)) return *reason;
  return Identity{std::get<std::string>(std::move(key)), rule.strategy};
}

std::string refused_key(std::string_view site, const Envelope& envelope) {
  return position_key("refused", site, envelope.origin);
}

std::string escape_component(std::string_view component) {
  std::string escaped;
  escaped.reserve(component.size());
  append_escaped(escaped, component);
  return escaped;
}

std::string wire_key(std::string_view key) {
  if (key.size() <= kMaxWireKey) return std::string(key);
  return "h:" + to_hex(sha256(as_bytes(key)));
}

}  // namespace holdfast
