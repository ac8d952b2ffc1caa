// The target seam: one upstream destination.
//
// deliver() carries a window of records away and reports each record's fate as soon as it is known, one by one. It does
// not sleep, retry or give up: that is the forwarder's. When it returns ok every record was reported. An error
// (`unavailable`) says that nothing is known of those not reported: they are delivered again under the same keys, and
// the failure counts against the target, not the records. A record that was reported is the forwarder's again, and its
// payload is gone.
//
// What a `delivered` outcome promises: the upstream has confirmed that record itself, durably by its own rules.
//
// Threads: one thread at a time calls deliver and probe; interrupt() may come from any, at any time, and makes a call
// in progress return soon.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "forwarder/outcome.h"
#include "spool/spool.h"

namespace holdfast {

// A record on its way, with what every target adds to it.
struct Delivery {
  const DueRecord* record = nullptr;
  std::string wire_key;
};

// Called once for a record of the window, by its place in it; from the thread that called deliver.
using Report = std::function<void(std::size_t place, Outcome outcome)>;

class Target {
 public:
  virtual ~Target() = default;
  virtual Result<void> deliver(std::span<const Delivery> window, const Report& report) = 0;
  // A cheap attempt to find out whether a failing target is back. The default of a target without one: ok.
  virtual Result<void> probe() { return {}; }
  virtual void interrupt() {}
};

}  // namespace holdfast
