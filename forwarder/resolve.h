// The addresses behind the host of a URL. May take as long as the resolver likes: for a thread that can be left behind.
#pragma once

#include <string>
#include <vector>

#include "forwarder/nats_url.h"
#include "forwarder/own_socket.h"

namespace holdfast {

struct Candidate {
  NatsEndpoint endpoint;
  PeerAddress address;
  std::string literal;  // the address as text, in brackets where a URL wants them
  std::uint16_t port = 0;
};

// Appends, to at most `most`; nothing when the name is not known.
void resolve(const NatsEndpoint& endpoint, std::size_t most, std::vector<Candidate>& out);

}  // namespace holdfast
