// A call into something that may never return, on a thread of its own.
//
// Who waits, waits to his own deadline on the monotonic clock. A call that is late is left behind with its thread, and
// everything it touches must be owned by the work itself (a shared_ptr in its captures). How many may be left behind at
// once is bounded; above that nothing is started.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

namespace holdfast {

using Moment = std::chrono::steady_clock::time_point;

class BoundedCall {
 public:
  // Nothing: no thread could be had, or too many earlier calls have not returned.
  static std::optional<BoundedCall> start(std::function<void()> work);

  // True: it has returned. May be called again.
  bool wait_until(Moment deadline);

 private:
  struct State;
  explicit BoundedCall(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace holdfast
