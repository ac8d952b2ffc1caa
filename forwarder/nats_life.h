// What the client library's callbacks may touch of a connection, and how they find it: by number, so that a late one
// finds nothing. For nats_connection.cc only.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "forwarder/bounded_call.h"
#include "forwarder/nats_connection.h"

namespace holdfast {

// Callbacks go through a gate. Once it is shut, none runs and none will.
class Gate {
 public:
  template <typename Work>
  void pass(Work work) {
    const std::lock_guard lock(mutex_);
    if (open_) work();
  }
  void shut() {
    const std::lock_guard lock(mutex_);
    open_ = false;
  }

 private:
  std::mutex mutex_;
  bool open_ = true;
};

class NatsLife {
 public:
  explicit NatsLife(NatsEvents events) : events_(std::move(events)) {}

  bool alive() const { return alive_; }
  void lost();  // told once, unless ended before
  void refused(std::string subject);
  void end();  // in silence
  void shut() { gate_.shut(); }

  // Requests by number: expect() before it is sent, then await(). An answer that nobody expects is dropped.
  void expect(std::uint64_t number);
  void answer(std::uint64_t number, NatsReply reply);
  std::optional<NatsReply> await(std::uint64_t number, Moment deadline);

 private:
  Gate gate_;
  const NatsEvents events_;
  std::atomic<bool> alive_{true};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, std::optional<NatsReply>> expected_;
};

// The numbers by which callbacks know their connection. Never given twice.
std::uintptr_t add_life(std::weak_ptr<NatsLife> life);
std::shared_ptr<NatsLife> find_life(std::uintptr_t number);
void remove_life(std::uintptr_t number);

}  // namespace holdfast
