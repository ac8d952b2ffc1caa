// What a source's messages become that no identity can be given to: published again, under the dead-letter subject.
//
// A dead letter has the message's headers and payload, and says why (Holdfast-Error), where it was meant to go
// (Holdfast-Original-Subject), and where it came from (the Holdfast- headers of the NATS target). Its Nats-Msg-Id is
// the key of the refused message, so that a repeat is not a second copy.
//
// Threads: one calls publish; any the rest.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "forwarder/target.h"

namespace holdfast {

class DeadLetters {
 public:
  // `target`: a JetStream server. Nothing: there are none, all goes to quarantine.
  DeadLetters(std::unique_ptr<Target> target, std::string subject)
      : target_(std::move(target)), subject_(std::move(subject)) {}

  // Whether such an arrival may be one: it was refused for what it is, and is not itself a dead letter come round.
  bool takes(const Arrival& arrival) const;
  // Publishes those. True at its place: the server has confirmed that it is stored. Whatever was not goes to quarantine
  // instead; it may be there as well.
  std::vector<bool> publish(std::span<const Arrival* const> refused);

  // From any thread: a publish in progress returns soon.
  void interrupt() {
    if (target_) target_->interrupt();
  }

  std::uint64_t published() const { return published_.load(std::memory_order_relaxed); }

 private:
  const std::unique_ptr<Target> target_;
  const std::string subject_;
  std::atomic<std::uint64_t> published_{0};
  std::optional<Nanoseconds> failed_at_;  // monotonic
};

}  // namespace holdfast
