// The wire contract of the NATS target: what a record becomes on its way, and what an answer to it means. Pure.
//
// Subject and payload as they are. The producer's headers are kept, but for those that instruct a server (the id for
// its duplicate check, what it expects of the stream, roll-up): they were meant for the server that the message came
// from, are true of no other, and travel under Holdfast- instead of Nats-. Added: Nats-Msg-Id (the key) and the
// Holdfast- headers; what the target expects of the stream, where it is told to; and Holdfast-Subject, the subject as
// it came, where the record goes to another one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "forwarder/nats_bucket.h"
#include "forwarder/target.h"

namespace holdfast {

inline constexpr std::string_view kIdHeader = "Nats-Msg-Id";
inline constexpr std::string_view kBucketOperation = "KV-Operation";

// Where a target's records go.
struct NatsDestination {
  std::string stream;                      // the only one that may take them; empty: whichever takes the subject
  std::optional<SubjectTemplate> subject;  // none: that of the record
  std::optional<NatsBucket> bucket;        // a key-value bucket, in place of stream and subject
};

// What is true of one publish and not of the record.
struct Wire {
  std::string subject;                           // where it goes
  std::string stream{};                          // empty: whichever takes it
  bool bucket = false;                           // a value of a key, so that no header may make it a deletion
  std::optional<std::uint64_t> expected_last{};  // the subject's last message; 0: there is none
};

// Nothing: the template makes no subject or key of it that can be sent.
std::optional<Wire> wire_for(const Delivery& delivery, const NatsDestination& to, const std::string& site);

std::vector<Header> wire_headers(const Delivery& delivery, const std::string& site, const Wire& wire);

// Why it cannot be sent to a server that takes `max_payload` bytes of headers and payload; nothing: it can.
std::optional<Outcome> refuse_unsent(const Wire& wire, const std::vector<Header>& headers, ByteView payload,
                                     std::size_t max_payload);

// What the server said of one record: a status of its own (0: none) or a document. Nothing: this is no answer of
// JetStream's (something else listens on the subject and answered too), so another may still come.
std::optional<Outcome> outcome_of_answer(int status, std::string_view document);
// Of such an outcome: the subject's last message is another one than was expected.
bool says_taken(const Outcome& outcome);

}  // namespace holdfast
