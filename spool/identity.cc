#include "spool/identity.h"

#include <array>
#include <charconv>
#include <limits>

#include "crypto/digest.h"
#include "spool/ascii.h"

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

}  // namespace

std::string_view strategy_text(Strategy strategy) {
  switch (strategy) {
    case Strategy::stream_sequence:
      return "stream_sequence";
    case Strategy::message_id:
      return "message_id";
  }
  return "unknown";
}

std::variant<Identity, Reason> identify(const IdentityRule& rule, std::string_view site, const Envelope& envelope) {
  if (rule.strategy == Strategy::stream_sequence)
    return Identity{position_key("seq", site, envelope.origin), rule.strategy};
  const std::string_view id = message_id(envelope);
  if (id.empty()) return Reason::no_identity;
  return Identity{message_id_key(rule.scope, site, envelope.origin.stream, id), rule.strategy};
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
