// Where an HTTP server is, as its URL says it (RFC 3986). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace holdfast {

struct HttpUrl {
  std::string scheme;  // in lower case
  std::string host;    // a name or an address, without brackets
  std::string port;    // empty: the scheme's own
  std::string rest;    // from the path on

  // This machine's own, by what it is called: no byte leaves the box.
  bool is_loopback() const;
};

// scheme://host:port/path?query. Nothing: it is no such, or holds a login, a fragment, or what a URL may not.
std::optional<HttpUrl> parse_http_url(std::string_view url);

bool is_http_in_the_clear(std::string_view url);

}  // namespace holdfast
