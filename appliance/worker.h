// A thread that takes one step after another, and rests between them for as long as the step says, or until it is
// woken.
//
// Threads: wake and stop from any; the rest from the one that made it.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "spool/clock.h"

namespace holdfast {

class Worker {
 public:
  // How long to rest; nothing: the worker ends.
  using Step = std::function<std::optional<Nanoseconds>()>;

  // `name`: at most 15 characters, for who looks at the process from outside.
  Worker(const std::string& name, Step step);
  // Only when it has ended: a thread that hangs cannot be destroyed, only left.
  ~Worker();

  // The rest is over. Comes it during a step, the next rest is none.
  void wake();
  // No further step. One under way is finished.
  void stop();
  // Waits until it has ended, at most until `deadline` (Progress::now()).
  bool ended_by(Nanoseconds deadline);

 private:
  void run(const Step& step);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;
  bool stopping_ = false;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace holdfast
