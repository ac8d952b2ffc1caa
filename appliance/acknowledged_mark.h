// Until when all that a consumer had handed out is acknowledged, as far as its server knows. Pure.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "forwarder/bounded_call.h"
#include "forwarder/nats_messages.h"

namespace holdfast {

class AcknowledgedMark {
 public:
  // The consumer as the server said it was after `now`, and the greatest sequence that is committed, by whatever
  // consumer it came. Returns the latest moment known before which all of that is acknowledged.
  std::optional<Moment> see(const ConsumerInfo& consumer, std::uint64_t committed, Moment now) {
    const std::uint64_t known = std::max(consumer.delivered_sequence, committed);
    if (consumer.created != consumer_) {
      consumer_ = consumer.created;
      acknowledged_.reset();
      handed_out_.reset();
    }
    if (handed_out_ && consumer.floor_sequence >= handed_out_->sequence) {
      acknowledged_ = handed_out_->when;
      handed_out_.reset();
    }
    if (!handed_out_) handed_out_ = HandedOut{now, known};
    if (consumer.floor_sequence >= known) acknowledged_ = now;
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
