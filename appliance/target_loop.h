// One target at work: its forwarder on a thread of its own, so that what hangs there hangs alone.
//
// Threads: any, except that the owner makes it, stops it and lets it go.
#pragma once

#include <atomic>
#include <memory>

#include "appliance/appliance_status.h"
#include "appliance/commands.h"
#include "appliance/progress.h"
#include "appliance/rate_meter.h"
#include "appliance/source_loop.h"
#include "appliance/worker.h"
#include "forwarder/forwarder.h"

namespace holdfast {

class TargetLoop {
 public:
  // The spool outlives it.
  TargetLoop(std::unique_ptr<Target> target, Spool& spool, ForwarderOptions options, EndOfLife end);

  const std::string& name() const { return name_; }
  void wake() { worker_->wake(); }
  void order(TargetOrder order);

  void stop() { worker_->stop(); }              // a delivery under way is finished
  void interrupt() { forwarder_.interrupt(); }  // or not
  bool ended_by(Nanoseconds deadline) { return worker_->ended_by(deadline); }

  // A step that is overdue, and nothing settled meanwhile: a slow link that moves is not hung.
  bool hung(Nanoseconds now) const;
  TargetView look(Nanoseconds now);
  TargetView view() const;

 private:
  std::optional<Nanoseconds> step();

  const std::string name_;
  const std::unique_ptr<Target> target_;
  Forwarder forwarder_;
  Progress progress_;
  const EndOfLife end_;
  RateMeter meter_;
  std::atomic<double> per_second_{0};
  std::unique_ptr<Worker> worker_;  // made last: its first step finds everything in place
};

}  // namespace holdfast
