// Threads that share the work of one call: for what costs time of the processor and can be done piece by piece in any
// order, such as sealing the records of a batch. They own nothing and hold no lock of anybody's.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace holdfast {

class Crew {
 public:
  // The pieces [first, last) of a work.
  using Work = std::function<void(std::size_t first, std::size_t last)>;

  // None: whoever calls does it all alone, in order. Where no threads are to be had, there are fewer.
  explicit Crew(unsigned helpers);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // Does all of [0, count) before it returns, `grain` pieces at a time, in this thread and in helpers that are free.
  // Threads: any; several calls at once share the helpers. `work` must not call share();
  // what it throws ends the process.
  void share(std::size_t count, std::size_t grain, const Work& work);

 private:
  struct Job;
  void help();

  std::mutex mutex_;
  std::condition_variable offered_, left_;
  std::deque<Job*> jobs_;  // with pieces that nobody has begun, as far as is known
  std::atomic<std::uint64_t> offers_{0};
  bool end_ = false;
  std::vector<std::thread> helpers_;
};

}  // namespace holdfast
