// Where a cell of the matrix is played: a producer, an edge server, a relay, the built program, a hub; all its own.
//
// A wait that was in vain is a flaw of the cell, kept until it is judged, and the play goes on.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/identity/hub_ear.h"
#include "tests/identity/strategy.h"
#include "tests/support/appliance.h"
#include "tests/support/jetstream_client.h"
#include "tests/support/nats_relay.h"
#include "tests/support/nats_server.h"

namespace holdfast {

// The program counts for one life; here is the sum of all.
struct Counts {
  std::uint64_t accepted = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t conflicts = 0;
  std::uint64_t refused = 0;
  std::uint64_t redelivered = 0;  // came with a delivery count above 1
};

class Stage {
 public:
  explicit Stage(const Strategy& strategy);

  NatsServer edge;
  NatsServer hub;
  NatsRelay relay{edge.port()};
  HubEar ear{hub.url()};
  Appliance box;

  // The producer. Each message is in the edge stream when this returns.
  void tell(Told told);
  void tell_new_events(std::uint64_t count);
  const std::vector<Told>& told() const { return told_; }
  Told new_event();

  // What this life counted so far; before it ends.
  void keep_counts();
  // The end of a life, and what it counted is kept.
  void kill9();
  void terminate();
  Counts counts();
  std::uint64_t taken() { return box.status()["accounting"]["taken"].count(); }

  void soon(const std::string& what, const std::function<bool()>& condition);
  // All that the edge stream has was handed out and acknowledged, and all that was taken has left.
  void soon_at_rest();
  bool at_rest();
  const std::vector<std::string>& flaws() const { return flaws_; }

  void make_edge_stream();

 private:
  std::vector<Told> told_;
  std::uint64_t events_ = 0;
  Counts earlier_;
  std::vector<std::string> flaws_;
};

inline constexpr const char* kEdge = "EDGE";
inline constexpr const char* kHub = "HUB";
inline constexpr const char* kConsumer = "holdfast";

}  // namespace holdfast
