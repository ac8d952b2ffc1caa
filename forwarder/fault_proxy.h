// A TCP proxy on the loopback that does to connections what a bad link does: for certification, which leads a target
// through it to its real upstream. Bytes pass as they are, so TLS goes through untouched.
//
// An *answer* is what an upstream sends until the client speaks again; its greeting is the first. So one that is
// counted out can be withheld whatever the protocol is: the client's bytes have arrived, and the link is gone before
// the answer.
//
// Bounds: kMostLinks connections, kMostHeld bytes on their way in each direction of each; then it reads no more. What a
// fault does to a connection happens within some milliseconds.
//
// Threads: one of its own carries; any may call. Its sockets are never taken for a client library's (own_socket.h).
// Addresses are looked up once, at the start.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "spool/clock.h"
#include "spool/result.h"

namespace holdfast {

enum class FaultKind : std::uint8_t {
  none,
  cut,      // the answer of that number, counted from when the fault was set, is withheld and its connection reset;
            // once: everything else passes
  silence,  // connections are accepted, and nothing passes either way
  delay,    // answers come later by so much; requests pass at once
  refuse,   // connections are reset before a byte passes, those that are there too
};

struct Fault {
  FaultKind kind = FaultKind::none;
  std::uint64_t answer = 1;  // cut
  Nanoseconds delay{0};      // delay
};

struct FaultCounts {
  std::uint64_t accepted = 0;  // connections
  std::uint64_t cut = 0;       // answers withheld by `cut`
  std::uint64_t up = 0;        // bytes of clients that the upstream's socket has
  std::uint64_t down = 0;      // bytes of the upstream that a client's socket has
};

class FaultProxy {
 public:
  static constexpr std::size_t kMostLinks = 64;
  static constexpr std::size_t kMostHeld = 1u << 20;

  // `upstream`: host:port, IPv6 in brackets. Errors: `invalid` it is not that; `unavailable` its name is not known, or
  // nothing can be listened on.
  static Result<std::unique_ptr<FaultProxy>> start(const std::string& upstream, Nanoseconds resolve_limit);
  ~FaultProxy();  // resets what is connected
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  const std::string& address() const { return address_; }  // host:port to connect to
  // For what comes from now on. What was held by silence or delay does not come any more: its connection is reset.
  void set(Fault fault);
  FaultCounts counts() const;

 private:
  class Relay;
  FaultProxy(std::string address, std::unique_ptr<Relay> relay);
  const std::string address_;
  const std::unique_ptr<Relay> relay_;
};

}  // namespace holdfast
