// Carries records of one spool to one target: a step, not a loop. What goes when is the window's to say (window.h);
// this joins it to the spool, the target and the clock.
//
// A round: what is due is read, a target that was cut off is asked whether it is back, what may go is delivered, and
// exactly what the target reported is settled, while the delivery still runs; what that makes room for is read
// meanwhile, so that neither the disk nor the target waits for the other. What was not reported is tried again under
// the same key, for ever. Losing the process at any point costs a duplicate, nothing else.
//
// Threads: one calls step(); the others from any, at any time. Threads, sleeping and stopping are the appliance's. One
// forwarder's target that hangs holds its own step and nothing else; status() says since when.
// Ownership: spool, target and clock outlive it.
#pragma once

#include <functional>
#include <mutex>

#include "forwarder/window.h"

namespace holdfast {

struct ForwarderOptions {
  TargetNumber number{};
  std::string name;
  WindowOptions window;
};

class Forwarder {
 public:
  // `seed` is that of the jitter: another for every box and target.
  Forwarder(Spool& spool, Target& target, const Clock& clock, ForwarderOptions options, std::uint64_t seed);

  // One round. Returns how long nothing will be to do, at most a minute; the caller sleeps no longer, and not on when
  // the spool's on_due or on_wake calls: a call that comes while a step runs is for the next sleep. Only the spool
  // fails, with `io`: this life is over. A target's failures are in the status.
  Result<Nanoseconds> step();

  // An operator's words; they count from the next step on, and end the sleep before it.
  void hold();    // nothing is read or delivered until resume
  void resume();  // and try now
  void kick();    // try now, whatever was to be waited for
  // Set before the first step.
  void on_wake(std::function<void()> wake) { wake_ = std::move(wake); }
  // A delivery in progress returns soon.
  void interrupt() { target_.interrupt(); }

  ForwarderStatus status() const;

 private:
  void obey();
  Result<void> recall(Nanoseconds now);
  Result<bool> read(int turns);
  void probe(Nanoseconds now);
  Result<void> deliver();
  Result<void> go_on();
  Result<void> settle();
  Nanoseconds pause(const Error& error);
  void note_error(const Error& error);
  void publish();
  ForwarderState state_of(const WindowStatus& window) const;

  Spool& spool_;
  Target& target_;
  const Clock& clock_;
  const ForwarderOptions options_;
  Window window_;
  bool held_ = false;
  bool settled_ = false;                      // something, in this step
  std::optional<Nanoseconds> trouble_began_;  // since something was settled
  std::function<void()> wake_;

  mutable std::mutex mutex_;  // of what follows
  bool hold_ordered_ = false;
  bool kick_ordered_ = false;
  ForwarderStatus status_;
};

}  // namespace holdfast
