// Whether a stream went back: lost its newest messages (a power cut, a restored copy, made again) and gives their
// sequence numbers to others, which the consumer, standing where it stood, believes acknowledged and never hands out.
//
// Comparing the consumer with the stream's last sequence is not enough: once enough new messages have come they look
// right again. So what was committed is compared with what the stream has at that place: another timestamp is another
// message, be it earlier or later (a clock may have gone back too). A stream's history is a prefix: where one message
// agrees, all before it do. Pure: it asks through functions.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "forwarder/nats_messages.h"
#include "spool/identity.h"
#include "spool/result.h"

namespace holdfast {

// What this life has seen of the stream; empty at first.
struct StreamSeen {
  std::string created;
  std::uint64_t last_sequence = 0;
};

struct StreamQuestions {
  // What was committed at the greatest sequence at or below one: several where the stream gave it again.
  std::function<Result<std::vector<StreamPosition>>(std::uint64_t at_or_below)> committed;
  // The message at a sequence. Nothing: it is not there (any more).
  std::function<Result<std::optional<StoredMessage>>(std::uint64_t sequence)> stored;
  // The first message at or above a sequence that matches a filter (">": all).
  std::function<Result<std::optional<StoredMessage>>(std::uint64_t at_or_above, const std::string& filter)> next;
  // Handed out to us and not acknowledged: what was committed at that sequence is of an earlier history, and known.
  std::function<bool(std::uint64_t sequence)> in_hand;
};

struct StreamVerdict {
  bool went_back = false;
  std::uint64_t resume_at = 0;  // where a new consumer begins so that nothing is skipped; 0: at the beginning
};

Result<StreamVerdict> check_stream(const StreamInfo& stream, const ConsumerInfo& consumer, const StreamSeen& seen,
                                   const StreamQuestions& questions);

}  // namespace holdfast
