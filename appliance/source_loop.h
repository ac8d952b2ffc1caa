// One source at work: its intake on a thread, and on another the messages in hand being kept alive.
//
// Threads: any, except that the owner makes it, stops it and lets it go.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "appliance/appliance_status.h"
#include "appliance/intake.h"
#include "appliance/rate_meter.h"
#include "appliance/worker.h"

namespace holdfast {

// Told of an error that ends this life; from any thread.
using EndOfLife = std::function<void(const Error&)>;

class SourceLoop {
 public:
  // Spool and router outlive it.
  SourceLoop(std::unique_ptr<Source> source, std::unique_ptr<DeadLetters> dead_letters, Spool& spool,
             const Router& router, IntakeRules rules, EndOfLife end);

  // Pulls nothing more; what is in hand is committed and acknowledged first.
  void stop();
  bool ended_by(Nanoseconds deadline);

  bool overdue(Nanoseconds now) const { return progress_.overdue(now); }
  // Took nothing for so long, and holds nothing.
  bool idle_for(Nanoseconds time, Nanoseconds now) const;
  // Also measures the rate; called by one thread every second.
  SourceView look(Nanoseconds now);
  SourceView view() const;

 private:
  std::optional<Nanoseconds> step();

  const std::unique_ptr<Source> source_;
  const std::unique_ptr<DeadLetters> dead_letters_;
  Progress progress_;
  Intake intake_;
  const EndOfLife end_;
  std::atomic<std::int64_t> took_at_;  // Progress::now() of the last batch
  RateMeter meter_;
  std::atomic<double> per_second_{0};
  Worker keeper_;
  Worker worker_;
};

}  // namespace holdfast
