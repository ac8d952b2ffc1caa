#include "appliance/base64.h"

namespace holdfast {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string to_base64(ByteView bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t left = bytes.size() - at;
    const std::uint32_t group = static_cast<std::uint32_t>(bytes[at] << 16) |
                                static_cast<std::uint32_t>((left > 1 ? bytes[at + 1] : 0) << 8) |
                                static_cast<std::uint32_t>(left > 2 ? bytes[at + 2] : 0);
    text += kDigits[group >> 18];
    text += kDigits[group >> 12 & 63];
    text += left > 1 ? kDigits[group >> 6 & 63] : '=';
    text += left > 2 ? kDigits[group & 63] : '=';
  }
  return text;
}

std::optional<Bytes> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  Bytes bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (std::size_t at = 0; at < text.size(); at += 4) {
    const bool last = at + 4 == text.size();
    const int padding = !last ? 0 : text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
    std::uint32_t group = 0;
    for (std::size_t digit = 0; digit < 4; ++digit) {
      const bool padded = digit + static_cast<std::size_t>(padding) >= 4;
      const std::size_t value = padded ? 0 : kDigits.find(text[at + digit]);
      if (value == std::string_view::npos) return std::nullopt;
      group = group << 6 | static_cast<std::uint32_t>(value);
    }
    if (padding > 0 && (group & (padding == 2 ? 0xffffu : 0xffu)) != 0) return std::nullopt;  // one text for one value
    for (int byte = 0; byte < 3 - padding; ++byte) bytes.push_back(static_cast<std::uint8_t>(group >> (16 - 8 * byte)));
  }
  return bytes;
}

}  // namespace holdfast
