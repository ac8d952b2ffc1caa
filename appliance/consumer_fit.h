// The consumer that we ask for, and whether the one that is there will do. Pure.
#pragma once

#include <string>
#include <vector>

#include "forwarder/nats_messages.h"

namespace holdfast {

inline constexpr std::int64_t kMaxAckPending = 20'000;  // far above what is ever in hand

struct ConsumerWish {
  std::string name = "holdfast";
  std::vector<std::string> subjects{};  // none: all that the stream has
  Nanoseconds ack_wait = std::chrono::seconds(30);
  // As JetStream calls them; where it begins when it is made for the first time.
  std::string deliver_policy = "all";
  std::uint64_t start_sequence = 0;
  std::string start_time{};
  bool headers_only = false;
  std::int64_t max_ack_pending = kMaxAckPending;
  std::int64_t max_deliver = -1;  // for ever
  std::vector<Nanoseconds> backoff{};
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
