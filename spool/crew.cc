#include "spool/crew.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <system_error>

#include "spool/check.h"
#include "spool/spool_options.h"

namespace holdfast {
namespace {

using std::chrono::steady_clock;

constexpr int kTurns = 100;
constexpr auto kAwake = std::chrono::microseconds(200);

}  // namespace

struct Crew::Job {
  const std::size_t count, grain;
  const Work& work;
  std::atomic<std::size_t> next{0};
  std::atomic<unsigned> helpers{0};  // at it now; changed under the mutex

  // What it may not do, throw, ends the process here: others hold on to this job.
  void take_part() noexcept {
    for (;;) {
      const std::size_t first = next.fetch_add(grain, std::memory_order_relaxed);
      if (first >= count) return;
      work(first, std::min(first + grain, count));
    }
  }
};

unsigned helpers_of_this_machine() {
  constexpr unsigned kMost = 3;  // beyond that the medium is what is waited for
  return std::min(kMost, std::max(1u, std::thread::hardware_concurrency()) - 1);
}

Crew::Crew(unsigned helpers) {
  for (unsigned i = 0; i < helpers; ++i) {
    try {
      helpers_.emplace_back([this] { help(); });
    } catch (const std::system_error&) {
      return;  // no threads to be had: it goes with those there are
    }
    ::pthread_setname_np(helpers_.back().native_handle(), "helper");
  }
}

Crew::~Crew() {
  {
    const std::lock_guard lock(mutex_);
    CHECK(jobs_.empty());
    end_ = true;
    offered_.notify_all();
  }
  for (std::thread& helper : helpers_) helper.join();
}

void Crew::share(std::size_t count, std::size_t grain, const Work& work) {
  CHECK(grain > 0);
  Job job{count, helpers_.empty() ? std::max(count, grain) : grain, work};
  if (count <= job.grain) return job.take_part();
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(&job);
    ++offers_;
  }
  if (count <= 2 * grain) {
    offered_.notify_one();
  } else {
    offered_.notify_all();
  }
  job.take_part();
  std::unique_lock lock(mutex_);
  std::erase(jobs_, &job);
  // At most one grain each is left to wait for: less than it takes to fall asleep and be woken.
  lock.unlock();
  for (int turn = 0; turn < kTurns && job.helpers > 0; ++turn) std::this_thread::yield();
  lock.lock();
  left_.wait(lock, [&] { return job.helpers == 0; });
}

void Crew::help() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (!end_ && jobs_.empty()) {
      // The next call often follows at once, and a thread that sleeps is slow to wake. Whoever wants the processor
      // meanwhile has it.
      const std::uint64_t seen = offers_;
      lock.unlock();
      for (const auto end = steady_clock::now() + kAwake; offers_ == seen && steady_clock::now() < end;)
        std::this_thread::yield();
      lock.lock();
    }
    offered_.wait(lock, [this] { return end_ || !jobs_.empty(); });
    if (end_) return;
    Job& job = *jobs_.front();
    ++job.helpers;
    lock.unlock();
    job.take_part();
    lock.lock();
    std::erase(jobs_, &job);  // nothing of it is left to begin
    if (--job.helpers == 0) left_.notify_all();
  }
}

}  // namespace holdfast
