// Until when all that a consumer had handed out is acknowledged, as far as its server knows. Pure.
#pragma once

#include <optional>
#include <string>

#include "forwarder/bounded_call.h"
#include "forwarder/nats_messages.h"

namespace holdfast {

class AcknowledgedMark {
 public:
  // The consumer as the server says it is now. Returns the latest moment known before which all that was handed out is
  // acknowledged.
  std::optional<Moment> see(const ConsumerInfo& consumer, Moment now) {
    if (consumer.created != consumer_) {
      consumer_ = consumer.created;
      acknowledged_.reset();
      handed_out_.reset();
    }
    if (handed_out_ && consumer.floor_sequence >= handed_out_->sequence) {
      acknowledged_ = handed_out_->when;
      handed_out_.reset();
    }
    if (!handed_out_) handed_out_ = HandedOut{now, consumer.delivered_sequence};
    if (consumer.floor_sequence >= consumer.delivered_sequence) acknowledged_ = now;
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
