#include "forwarder/file_name.h"

#include <algorithm>

#include "crypto/digest.h"

namespace holdfast {
namespace {

constexpr std::size_t kMaxName = 200;  // of 255; the suffix comes on top

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string escape(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (std::size_t n = 0; n < text.size(); ++n) {
    const char c = text[n];
    const bool at_end = n == 0 || n + 1 == text.size();
    if ((c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_' || (c == '.' && !at_end)) {
      out.push_back(c);
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out.push_back('%');
    out.push_back(kDigits[byte >> 4]);
    out.push_back(kDigits[byte & 0xf]);
  }
  return out;
}

std::string temporary_prefix(std::string_view writer) {
  return ".tmp-" + escape(writer) + "-";
}

}  // namespace

std::string record_file_name(std::string_view wire_key, std::string_view suffix) {
  std::string name = escape(wire_key);
  if (name.size() > kMaxName) name = escape("h:" + to_hex(sha256(as_bytes(wire_key))));
  return name.append(suffix);
}

std::string temporary_file_name(std::string_view writer, std::size_t n) {
  return temporary_prefix(writer) + std::to_string(n);
}

bool is_temporary_file_of(std::string_view writer, std::string_view name) {
  const std::string prefix = temporary_prefix(writer);
  if (!name.starts_with(prefix) || name.size() == prefix.size()) return false;
  name.remove_prefix(prefix.size());
  return std::all_of(name.begin(), name.end(), is_digit);
}

}  // namespace holdfast
