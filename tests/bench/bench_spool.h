// The spool of a benchmark: a real one in a directory of its own, and the threads that work beside the intake.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "spool/spool.h"

namespace holdfast {

inline constexpr std::size_t kBatch = 256;
inline constexpr std::size_t kPayload = 1024;
inline constexpr const char* kBenchSite = "test";

class BenchSpool {
 public:
  // `key_file` empty: a key of its own.
  explicit BenchSpool(const std::string& directory, const std::string& key_file = "");
  ~BenchSpool();

  Spool& spool() { return *spool_; }
  // The next `count` messages of `size` bytes, ready to be put.
  std::vector<Arrival> batch(std::size_t count, std::size_t size = kPayload);
  void put(const std::vector<Arrival>& arrivals);

  void keep_house();  // from now on, in a thread of its own
  void deliver();     // likewise: everything that is due is at once delivered
  void drain();       // here and now: all is delivered, and the journal is given back
  void close();       // everything to its end

 private:
  void end_threads();
  std::size_t deliver_some(DueCursor& cursor);

  std::unique_ptr<FileSystem> fs_;
  std::unique_ptr<Spool> spool_;
  TargetNumber hub_{};
  RouteNumber route_{};
  std::uint64_t number_ = 0;
  std::mutex mutex_;
  std::condition_variable woken_;
  bool end_ = false, due_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace holdfast
