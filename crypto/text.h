// What crosses a border as text: bytes in base64, UTF-8, decimal numbers. Pure.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "crypto/bytes.h"

namespace holdfast {

// With padding (RFC 4648, section 4).
std::string to_base64(ByteView bytes);
// Nothing: not that, to the last character.
std::optional<Bytes> from_base64(std::string_view text);

// How many bytes the character at the front has; 0 when it is none (RFC 3629, section 4), or the text is empty.
std::size_t utf8_length(std::string_view text);
bool is_utf8(std::string_view text);

// The whole text, in decimal, within the range of the type; no white space, no plus.
template <typename Number>
std::optional<Number> parse_decimal(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace holdfast
