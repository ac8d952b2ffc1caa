// Messages that were handed to us and are not acknowledged: what must be kept alive. Pure; the caller holds the lock.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "forwarder/bounded_call.h"
#include "spool/clock.h"

namespace holdfast {

class InHand {
 public:
  // A redelivery takes the place of the earlier delivery.
  void add(std::uint64_t sequence, std::string reply, Moment now);
  void remove(std::uint64_t sequence) { messages_.erase(sequence); }
  bool has(std::uint64_t sequence) const { return messages_.count(sequence) > 0; }
  void forget() { messages_.clear(); }
  std::size_t size() const { return messages_.size(); }

  // The reply subjects of those of which the server has heard nothing for `age`; it is about to.
  std::vector<std::string> due(Nanoseconds age, Moment now);

 private:
  struct Message {
    std::string reply;
    Moment told_at;
  };
  std::unordered_map<std::uint64_t, Message> messages_;  // by sequence in the stream
};

}  // namespace holdfast
