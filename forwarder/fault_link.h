// One connection through a fault proxy: two sockets, and the bytes between them. A step, not a loop: the proxy's thread
// asks what to wait for, waits, and lets it carry.
//
// Threads: that one.
#pragma once

#include <poll.h>

#include <deque>
#include <optional>
#include <span>

#include "crypto/bytes.h"
#include "forwarder/bounded_call.h"
#include "forwarder/fault_proxy.h"
#include "forwarder/own_socket.h"

namespace holdfast {

// What the links of a proxy share. `answers` counts from when the fault was set.
struct FaultState {
  Fault fault;
  std::uint64_t generation = 0;  // of the fault
  std::uint64_t answers = 0;
  FaultCounts counts;
};

class FaultLink {
 public:
  // Takes the client's socket, and begins to connect to the first of the addresses that accepts.
  FaultLink(int client, std::span<const PeerAddress> upstreams);
  ~FaultLink();  // resets both, unless both have ended well
  FaultLink(FaultLink&&) = delete;

  // Appends two. Returns when to look again all the same, where a byte waits for its time.
  std::optional<Moment> watch(const FaultState& state, std::vector<pollfd>& into) const;
  // False: it is over.
  bool step(FaultState& state, Moment now);

 private:
  struct Chunk {
    Bytes bytes;
    std::size_t sent = 0;
    Moment due;
  };
  struct Way {
    std::deque<Chunk> chunks;
    std::size_t held = 0;  // bytes in them
    bool ended = false;    // its reader saw the end
    bool told = false;     // and its writer passed it on
  };

  bool connect_next();
  bool await_connection();
  bool read(int from, Way& way, Moment due, bool& any);
  bool write(int to, Way& way, Moment now, std::uint64_t& count);
  bool withholds(FaultState& state);
  bool held_back(const FaultState& state) const;

  const int client_;
  int server_ = -1;
  HeldSocket own_;  // so that it is nobody else's
  std::span<const PeerAddress> upstreams_;
  bool connected_ = false;
  bool speaking_ = false;                    // the upstream, since the client did
  bool ended_well_ = false;                  // both sides
  std::optional<std::uint64_t> held_under_;  // the fault that keeps something here
  Way up_, down_;
};

}  // namespace holdfast
