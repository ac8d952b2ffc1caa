// An upstream of the tests' own behind a real socket, the target that delivers to it, and how to look into it: safe as
// they stand, and unsafe in whatever way a test asks for.
//
// The protocol: the upstream greets with one byte. A request is two lengths (32 bits, big-endian), a key and a payload;
// its answer is one byte. Requests may follow each other; answers come in their order.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "forwarder/readback.h"
#include "forwarder/target.h"

namespace holdfast {

struct UpstreamManner {
  bool ignores_key = false;        // stores whatever comes
  bool looks_then_stores = false;  // and another may come between the two
  bool confirms_and_loses = false;
  bool loses_repeats = false;  // a repeat takes the record away
  bool rejects_repeats = false;
  bool truncates = false;       // to some kilobytes
  bool recodes_text = false;    // bytes above 0x7f become '?'
  bool last_first = false;      // of requests that follow each other
  bool per_connection = false;  // knows only what came by the same one
  bool busy = false;            // takes nothing now
  bool rejects_all = false;
  Nanoseconds forgets_after{0};  // keys; 0: never
  Nanoseconds shows_after{0};    // what is stored can be seen only so much later
};

class WireUpstream {
 public:
  explicit WireUpstream(UpstreamManner manner = {});
  ~WireUpstream();

  std::string place() const;
  std::unique_ptr<Readback> readback();
  std::uint64_t copies() const;  // of all records

 private:
  friend class WireReadback;
  struct Stored {
    std::string key;
    std::string payload;
    int connection;
    std::chrono::steady_clock::time_point since;
  };
  void serve();
  void converse(int fd, int connection);
  char take(int connection, const std::string& key, std::string payload, bool alone);

  const UpstreamManner manner_;
  int listener_ = -1;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Stored> stored_;
  std::map<std::string, int> coming_;  // requests of one key that have not been answered
  std::vector<std::thread> conversations_;
  std::thread thread_;
};

struct WireTargetManner {
  Nanoseconds deadline = std::chrono::milliseconds(300);
  bool believes_silence = false;  // calls delivered what was not answered in time
  bool takes_cuts_for_refusals = false;
  bool hangs = false;                  // where nothing comes, until interrupted
  bool cannot_be_interrupted = false;  // hangs, for some seconds, whatever happens
  bool reports_twice = false;
  bool says_nothing = false;  // of what was not answered, and calls it well
};

class WireTarget : public Target {
 public:
  WireTarget(std::string place, WireTargetManner manner) : place_(std::move(place)), manner_(manner) {}
  ~WireTarget() override;

  Result<void> deliver(std::span<const Delivery> window, const Report& report) override;
  void interrupt() override { interrupted_ = true; }

 private:
  enum class Read : std::uint8_t { byte, late, ended, interrupted };
  bool connect();
  void disconnect();
  bool send(std::span<const Delivery> window);
  Read read(char& byte);
  Result<void> collect(std::span<const Delivery> window, const Report& report);
  Result<void> fail(Read how, std::size_t first, std::size_t count, const Report& report);

  const std::string place_;
  const WireTargetManner manner_;
  std::atomic<bool> interrupted_ = false;
  int fd_ = -1;
};

}  // namespace holdfast
