#include "forwarder/nats_headers.h"

#include <algorithm>

#include "crypto/text.h"

namespace holdfast {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kBlank = " \t";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// What is before the next line end, which goes too; nothing when there is none.
std::optional<std::string_view> take_line(std::string_view& rest) {
  const std::size_t end = rest.find(kLineEnd);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end + kLineEnd.size());
  return line;
}

bool read_version_line(std::string_view line, NatsHead& head) {
  constexpr std::string_view kVersion = "NATS/1.0";
  constexpr std::size_t kStatusDigits = 3;
  if (!line.starts_with(kVersion)) return false;
  line.remove_prefix(kVersion.size());
  if (!line.empty() && kBlank.find(line.front()) == std::string_view::npos) return false;
  line = trimmed(line);
  head.status = parse_decimal<int>(line.substr(0, kStatusDigits)).value_or(0);
  if (head.status > 0) head.description = trimmed(line.substr(std::min(line.size(), kStatusDigits)));
  return true;
}

bool read_header_line(std::string_view line, std::vector<Header>& headers) {
  if (kBlank.find(line.front()) != std::string_view::npos) {
    if (headers.empty()) return false;
    headers.back().value.append(" ").append(trimmed(line));
    return true;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  headers.push_back({std::string(line.substr(0, colon)), std::string(trimmed(line.substr(colon + 1)))});
  return true;
}

}  // namespace

std::string_view NatsHead::value(std::string_view name) const {
  for (const Header& header : headers) {
    if (header.name == name) return header.value;
  }
  return {};
}

std::optional<NatsHead> parse_nats_head(std::string_view block) {
  NatsHead head;
  if (block.empty()) return head;
  const auto version = take_line(block);
  if (!version || !read_version_line(*version, head)) return std::nullopt;
  for (;;) {
    const auto line = take_line(block);
    if (!line) return std::nullopt;
    if (line->empty()) break;
    if (!read_header_line(*line, head.headers)) return std::nullopt;
  }
  if (!block.empty()) return std::nullopt;
  return head;
}

}  // namespace holdfast
