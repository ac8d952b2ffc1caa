// The wire contract of the NATS target: what a record becomes on its way, and what an answer to it means. Pure.
//
// Subject and payload as they are. The producer's headers are kept, but for those that instruct a server (the id for
// its duplicate check, what it expects of the stream, roll-up): they were meant for the server that the message came
// from, are true of no other, and travel under Holdfast- instead of Nats-. Added: Nats-Msg-Id (the key) and the
// Holdfast- headers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "forwarder/target.h"

namespace holdfast {

std::vector<Header> wire_headers(const Delivery& delivery, const std::string& site);

// Why it cannot be sent to a server that takes `max_payload` bytes of headers and payload; nothing: it can.
std::optional<Outcome> refuse_unsent(const Envelope& envelope, const std::vector<Header>& headers,
                                     std::size_t max_payload);

// What the server said of one record: a status of its own (0: none) or a document. Nothing: this is no answer of
// JetStream's (something else listens on the subject and answered too), so another may still come.
std::optional<Outcome> outcome_of_answer(int status, std::string_view document);

}  // namespace holdfast
