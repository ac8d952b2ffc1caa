#include "forwarder/nats_url.h"

#include <fmt/format.h>

#include "crypto/text.h"

namespace holdfast {
namespace {

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
  const auto port = parse_decimal<std::uint16_t>(text);
  return port == 0 ? std::nullopt : port;
}

// Splits "host:port", "[v6]:port" or either without a port. False: it is none of these.
bool read_place(std::string_view text, NatsEndpoint& endpoint) {
  std::string_view port;
  if (take_prefix(text, "[")) {
    const std::size_t bracket = text.find(']');
    if (bracket == std::string_view::npos) return false;
    endpoint.host = text.substr(0, bracket);
    port = text.substr(bracket + 1);
  } else {
    const std::size_t colon = text.find(':');
    endpoint.host = text.substr(0, colon);
    if (colon != std::string_view::npos) port = text.substr(colon);
  }
  if (endpoint.host.empty() || endpoint.host.find_first_of("/?#@ \t[]") != std::string::npos) return false;
  if (port.empty()) return true;
  if (!take_prefix(port, ":")) return false;
  const auto number = parse_port(port);
  if (!number) return false;
  endpoint.port = *number;
  return true;
}

std::optional<NatsEndpoint> parse_one(std::string_view url) {
  NatsEndpoint endpoint;
  if (take_prefix(url, "tls://")) {
    endpoint.tls = true;
  } else if (!take_prefix(url, "nats://")) {
    return std::nullopt;
  }
  const std::size_t at = url.rfind('@');
  if (at != std::string_view::npos) {
    endpoint.login = url.substr(0, at);
    url.remove_prefix(at + 1);
    if (endpoint.login.find_first_of(" \t\r\n/") != std::string::npos) return std::nullopt;
  }
  if (url.ends_with('/')) url.remove_suffix(1);
  if (!read_place(url, endpoint)) return std::nullopt;
  return endpoint;
}

}  // namespace

std::optional<std::vector<NatsEndpoint>> parse_nats_url(std::string_view url) {
  std::vector<NatsEndpoint> endpoints;
  for (;;) {
    const std::size_t comma = url.find(',');
    auto endpoint = parse_one(url.substr(0, comma));
    if (!endpoint) return std::nullopt;
    endpoints.push_back(std::move(*endpoint));
    if (comma == std::string_view::npos) return endpoints;
    url.remove_prefix(comma + 1);
  }
}

std::optional<NatsEndpoint> parse_place(std::string_view place) {
  NatsEndpoint endpoint;
  if (!read_place(place, endpoint)) return std::nullopt;
  return endpoint;
}

std::string host_and_port(const NatsEndpoint& endpoint) {
  const bool v6 = endpoint.host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", v6 ? "[" : "", endpoint.host, v6 ? "]" : "", endpoint.port);
}

std::string place_of(const NatsEndpoint& endpoint) {
  return fmt::format("{}://{}", endpoint.tls ? "tls" : "nats", host_and_port(endpoint));
}

}  // namespace holdfast
