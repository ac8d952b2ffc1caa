// A client library's connect, held to our deadline though it may hang for ever.
//
// It runs on a thread of its own, address after address, each with an even share of the time that is left, so that one
// that hangs hides no other. Who waits ends a late one by shutting down its socket, found by its peer; a thread that
// does not return even then is left behind. One connect at a time to one URL: so that a socket to it that nobody holds
// is that of the connect in progress.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "forwarder/resolve.h"
#include "spool/clock.h"

namespace holdfast {

enum class ConnectEnd : std::uint8_t {
  returned,     // `attempt` said true, or every address was tried, or the time was over
  unresolved,   // no address is known by that name
  busy,         // another connect to the URL took all the time
  left_behind,  // it hangs; what `attempt` holds is still in use
};

// Called on another thread; must own all that it touches. True: connected.
using ConnectAttempt = std::function<bool(const Candidate& to, Nanoseconds share)>;

// Within `limit` and two seconds of grace; sooner when a stop is requested.
ConnectEnd connect_guarded(const std::string& url, std::vector<NatsEndpoint> endpoints, Nanoseconds limit,
                           const std::stop_token& stop, ConnectAttempt attempt);

}  // namespace holdfast
