#include "forwarder/resolve.h"

#include <fmt/format.h>
#include <netdb.h>

#include <cstring>
#include <memory>

namespace holdfast {

void resolve(const NatsEndpoint& endpoint, std::size_t most, std::vector<Candidate>& out) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const auto place = endpoint.through.empty() ? endpoint : parse_place(endpoint.through);
  if (!place) return;
  if (::getaddrinfo(place->host.c_str(), std::to_string(place->port).c_str(), &hints, &found) != 0) return;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  for (const addrinfo* at = found; at != nullptr && out.size() < most; at = at->ai_next) {
    char text[NI_MAXHOST];
    Candidate candidate{endpoint, {}, {}, place->port};
    if (at->ai_addrlen > sizeof candidate.address.address) continue;
    if (::getnameinfo(at->ai_addr, at->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) continue;
    std::memcpy(&candidate.address.address, at->ai_addr, at->ai_addrlen);
    candidate.address.size = at->ai_addrlen;
    candidate.literal = at->ai_family == AF_INET6 ? fmt::format("[{}]", text) : text;
    out.push_back(std::move(candidate));
  }
}

}  // namespace holdfast
