#include "forwarder/file_name.h"

#include <algorithm>

#include "crypto/digest.h"
#include "forwarder/utc_time.h"

namespace holdfast {
namespace {

constexpr std::size_t kMaxName = 200;  // of 255; the suffix comes on top
constexpr std::size_t kMaxLevels = 8;  // keeps the longest path below half of PATH_MAX
constexpr char kDirectoryMark = '=';

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string escape(std::string_view text, char mark = '%') {
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
    out.push_back(mark);
    out.push_back(kDigits[byte >> 4]);
    out.push_back(kDigits[byte & 0xf]);
  }
  return out;
}

std::string directory_name(std::string_view token) {
  if (token.empty()) return std::string(1, kDirectoryMark);
  std::string name = escape(token, kDirectoryMark);
  if (name.size() > kMaxName) name = escape("h:" + to_hex(sha256(as_bytes(token))), kDirectoryMark);
  return name;
}

std::string temporary_prefix(std::string_view writer) {
  return ".tmp-" + escape(writer) + "-";
}

}  // namespace

std::string record_directory(FileLayout layout, const Envelope& envelope) {
  constexpr std::size_t kDay = std::string_view("2023-11-14").size();
  if (layout == FileLayout::flat) return {};
  if (layout == FileLayout::date) return format_time(envelope.origin.timestamp_ns).substr(0, kDay);
  std::string path;
  std::string_view rest = envelope.subject;
  for (std::size_t level = 1;; ++level) {
    const std::size_t dot = level < kMaxLevels ? rest.find('.') : std::string_view::npos;
    path.append(directory_name(rest.substr(0, dot)));
    if (dot == std::string_view::npos) return path;
    path.push_back('/');
    rest.remove_prefix(dot + 1);
  }
}

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
