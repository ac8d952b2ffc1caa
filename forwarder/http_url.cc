#include "forwarder/http_url.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdint>

#include "crypto/text.h"
#include "spool/ascii.h"

namespace holdfast {
namespace {

bool is_host_character(char c) {
  const char lower = ascii_lower(c);
  return (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
}

// "host", "host:port", "[address]:port" into its two parts.
bool split_authority(std::string_view authority, HttpUrl& url) {
  std::string_view port;
  if (authority.starts_with('[')) {
    const std::size_t end = authority.find(']');
    if (end == std::string_view::npos) return false;
    url.host = authority.substr(1, end - 1);
    port = authority.substr(end + 1);
    in6_addr address{};
    if (::inet_pton(AF_INET6, url.host.c_str(), &address) != 1) return false;
  } else {
    const std::size_t colon = std::min(authority.find(':'), authority.size());
    url.host = authority.substr(0, colon);
    port = authority.substr(colon);
    if (url.host.empty() || !std::ranges::all_of(url.host, is_host_character)) return false;
  }
  if (port.empty()) return true;
  const auto number = port.starts_with(':') ? parse_decimal<std::uint16_t>(port.substr(1)) : std::nullopt;
  if (!number || *number == 0) return false;
  url.port = std::to_string(*number);
  return true;
}

}  // namespace

bool HttpUrl::is_loopback() const {
  if (equal_ignoring_case(host, "localhost") || host == "::1") return true;
  in_addr address{};
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 && (ntohl(address.s_addr) >> 24) == 127;
}

std::optional<HttpUrl> parse_http_url(std::string_view text) {
  constexpr std::size_t kMost = 4096;
  const auto is_printable = [](char c) { return c > 0x20 && c < 0x7f; };
  if (text.size() > kMost || !std::ranges::all_of(text, is_printable)) return std::nullopt;
  if (text.find_first_of("#\"<>\\^`{|}") != std::string_view::npos) return std::nullopt;
  const std::size_t scheme = text.find("://");
  if (scheme == std::string_view::npos) return std::nullopt;
  HttpUrl url;
  for (const char c : text.substr(0, scheme)) url.scheme.push_back(ascii_lower(c));
  text.remove_prefix(scheme + 3);
  const std::size_t end = std::min(text.find_first_of("/?"), text.size());
  url.rest = text.substr(end);
  if (!split_authority(text.substr(0, end), url)) return std::nullopt;
  return url;
}

bool is_http_in_the_clear(std::string_view text) {
  const auto url = parse_http_url(text);
  return url && url->scheme == "http";
}

}  // namespace holdfast
