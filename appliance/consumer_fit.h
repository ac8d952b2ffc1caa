// The consumer that we ask for, and whether the one that is there will do. Pure.
#pragma once

#include <string>
#include <vector>

#include "forwarder/nats_messages.h"

namespace holdfast {

struct ConsumerWish {
  std::string name;
  std::vector<std::string> subjects;  // none: all that the stream has
  Nanoseconds ack_wait = std::chrono::seconds(30);
};

ConsumerConfig asked_consumer(const ConsumerWish& wish);
// Made by us, so that we may delete it and make it again; anybody else's is the operator's.
bool is_ours(const ConsumerConfig& made);

struct ConsumerFit {
  std::string hold;   // not empty: it must not be pulled from; why
  std::string drift;  // not empty: it is used; what is not as it was asked for
};
ConsumerFit fit_of(const ConsumerConfig& asked, const ConsumerConfig& made, const StreamInfo& stream);

// Every subject that matches `narrow` matches `wide`.
bool pattern_covers(std::string_view wide, std::string_view narrow);

}  // namespace holdfast
