// Where a NATS server is, as its URL says it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

struct NatsEndpoint {
  bool tls = false;   // tls://
  std::string login;  // "user:password" or a token, as it was written; a secret
  std::string host;   // a name or an address, without brackets
  std::uint16_t port = 4222;
  std::string through = {};  // "host:port" to connect to in its place; the host is still whose certificate must show
  bool operator==(const NatsEndpoint&) const = default;
};

// One or more URLs with commas between them: nats://host, tls://user:password@[::1]:4222. Nothing when one of them is
// not such.
std::optional<std::vector<NatsEndpoint>> parse_nats_url(std::string_view url);

// "host:port", "[v6]:port", or nothing when it is not that.
std::optional<NatsEndpoint> parse_place(std::string_view place);

// "host:port", an address of version 6 in brackets.
std::string host_and_port(const NatsEndpoint& endpoint);

// For texts: scheme, host and port; never the login.
std::string place_of(const NatsEndpoint& endpoint);

}  // namespace holdfast
