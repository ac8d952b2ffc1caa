// Notices a call that does not return: for calls that usually take microseconds and may, rarely, wait for a peer for
// ever.
//
// Who calls holds a CallWatch::Call meanwhile (two atomic writes). A thread looks twice a second, and when a call is
// older than the limit it says so, again and again until the call has returned. By the monotonic clock. Threads: any.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>

#include "spool/clock.h"

namespace holdfast {

class CallWatch {
 public:
  // Both are called on the watching thread and must return at once. A number that changes is progress.
  CallWatch(Nanoseconds limit, std::function<std::uint64_t()> progress, std::function<void()> late);
  ~CallWatch();  // no call is in progress

  class Call {
   public:
    explicit Call(CallWatch& watch) : begun_(watch.place()) {}
    ~Call() { begun_.store(kFree, std::memory_order_release); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    std::atomic<std::int64_t>& begun_;
  };

 private:
  static constexpr std::int64_t kFree = 0;
  static constexpr std::size_t kPlaces = 8;  // threads that use one connection at once; more wait for their turn

  std::atomic<std::int64_t>& place();
  void watch(const std::stop_token& stop);
  bool one_is_older_than(std::int64_t moment) const;

  const Nanoseconds limit_;
  const std::function<std::uint64_t()> progress_;
  const std::function<void()> late_;
  std::array<std::atomic<std::int64_t>, kPlaces> begun_{};
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

}  // namespace holdfast
