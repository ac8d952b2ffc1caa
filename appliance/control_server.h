// The control socket's server: HTTP/1.1 over a Unix socket.
//
//     GET  /v1/status            a command without arguments
//     POST /v1/spool/list        {"after": 17}
//
// Answers are JSON; a failure is {"error": {"kind": ..., "text": ...}} with a fitting status. Everything is bounded:
// connections, what a request may weigh, how long a peer may take. Requests are read and answered in the loop; the
// handler runs on threads of the server's own, so that a long command (an audit of a million records) holds up nothing
// else.
//
// Threads: construction, stop and destruction in the loop's thread or while the loop does not run.
#pragma once

#include <functional>
#include <memory>

#include "appliance/control_loop.h"
#include "appliance/control_socket.h"
#include "appliance/control_wire.h"

namespace holdfast {

inline constexpr std::size_t kMaxRequestBytes = 64u << 10;
inline constexpr std::size_t kMaxConnections = 16;

// What came of a call, and the HTTP status it goes out with when that is not status_of(error).
struct CallAnswer {
  Result<Json> result;
  int status = 0;
};
using CallHandler = std::function<CallAnswer(const CommandCall& call, const Peer& peer)>;

class ControlServer {
 public:
  // Takes over the listening socket (listen_at). How long a peer may take to send a request and to read an answer:
  // `patience`.
  ControlServer(ControlLoop& loop, int listening, CallHandler handler, Nanoseconds patience = std::chrono::seconds(10));
  ~ControlServer();

  // Accepts nothing more and waits for the commands under way, at most until `deadline` (steady clock). False: one is
  // not over; then neither this nor anything that it touches may be destroyed.
  bool stop(Nanoseconds deadline);

 private:
  struct Parts;
  std::shared_ptr<Parts> parts_;
};

}  // namespace holdfast
