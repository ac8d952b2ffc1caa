// A target as certification needs it: how to make it anew, led through a proxy or not, and how to see what its upstream
// holds. Every kind of target is described by one of these (appliance/certified_endpoints.h), and nothing else of
// certification knows a kind.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "forwarder/readback.h"
#include "forwarder/target.h"

namespace holdfast {

// What must hold at the upstream for it to be safe, and does not hold for sure.
struct Condition {
  std::string name;  // snake_case, as properties have it
  std::string text;
};

// A record that the target must refuse without asking its upstream, so that nobody is harmed by it.
struct Provocation {
  std::string name;  // of the property
  std::function<void(DueRecord&)> alter;
  OutcomeKind expected = OutcomeKind::rejected;
  std::string passed;  // what is then known
};

struct CertifiedTarget {
  // As a process that was just started would have it. `connect_to` is where to connect instead of the upstream's own
  // address; empty: there.
  std::function<std::unique_ptr<Target>(const std::string& connect_to)> make;
  std::string upstream_address;        // host:port behind the proxy; empty: its connection cannot be led through one
  bool local = false;                  // there is no connection that could be cut
  std::unique_ptr<Readback> readback;  // none: what the upstream holds cannot be seen
  std::string to_see;                  // what would make it visible ("give it a verify_url"); empty: nothing
  bool keeps_order = false;            // records of one window arrive in their order
  // A delivery to an upstream from which nothing comes ends by itself within so long, its connect included.
  Nanoseconds deadline = std::chrono::seconds(30);
  // What the upstream says of itself that bears on safety. Asked once; may be empty.
  std::function<Result<std::vector<Condition>>()> conditions;
  std::vector<Provocation> provocations;
};

}  // namespace holdfast
