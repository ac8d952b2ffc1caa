// Until when all that a consumer had handed out is acknowledged, as far as its server knows. Pure.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "forwarder/bounded_call.h"
#include "forwarder/nats_messages.h"

namespace holdfast {

// A server moves the floor only with a message of the consumer's own, and what was handed out also past others.
inline std::uint64_t acknowledged_up_to(const ConsumerInfo& consumer) {
  return consumer.unacknowledged == 0 ? std::max(consumer.floor_sequence, consumer.delivered_sequence)
                                      : consumer.floor_sequence;
}

class AcknowledgedMark {
 public:
  // The consumer as the server said it was after `now`, and the greatest sequence that is committed, by whatever
  // consumer it came. Returns the latest moment known before which all of that is acknowledged.
  std::optional<Moment> see(const ConsumerInfo& consumer, std::uint64_t committed, Moment now) {
    const std::uint64_t floor = acknowledged_up_to(consumer);
    // With nothing pending, what was committed above is none of its messages: other sources read other subjects.
    const bool at_end = consumer.pending == 0;
    const std::uint64_t known = at_end ? consumer.delivered_sequence : std::max(consumer.delivered_sequence, committed);
    if (consumer.created != consumer_) {
      consumer_ = consumer.created;
      acknowledged_.reset();
      handed_out_.reset();
    }
    if (handed_out_ && floor >= handed_out_->sequence) {
      acknowledged_ = handed_out_->when;
      handed_out_.reset();
    }
    if (!handed_out_) handed_out_ = HandedOut{now, known};
    if (floor >= known) acknowledged_ = now;
    return acknowledged_;
  }

 private:
  struct HandedOut {
    Moment when;
    std::uint64_t sequence = 0;
  };
  std::string consumer_;  // its time of creation
  std::optional<Moment> acknowledged_;
  std::optional<HandedOut> handed_out_;
};

}  // namespace holdfast
