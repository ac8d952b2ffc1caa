#include "appliance/worker.h"

#include <pthread.h>

#include <utility>

#include "spool/check.h"

namespace holdfast {

Worker::Worker(const std::string& name, Step step) : thread_([this, step = std::move(step)] { run(step); }) {
  (void)::pthread_setname_np(thread_.native_handle(), name.substr(0, 15).c_str());
}

Worker::~Worker() {
  if (!thread_.joinable()) return;
  CHECK(ended_);
  thread_.join();
}

void Worker::run(const Step& step) {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    const auto rest = step();
    lock.lock();
    if (!rest) break;
    changed_.wait_for(lock, *rest, [this] { return woken_ || stopping_; });
    woken_ = false;
  }
  ended_ = true;
  changed_.notify_all();
}

void Worker::wake() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  changed_.notify_all();
}

void Worker::stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
}

bool Worker::ended_by(Nanoseconds deadline) {
  const std::chrono::steady_clock::time_point until(
      std::chrono::duration_cast<std::chrono::steady_clock::duration>(deadline));
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, until, [this] { return ended_; });
}

}  // namespace holdfast
