#include "forwarder/nats_wire.h"

#include <array>

#include "forwarder/nats_limits.h"
#include "forwarder/nats_messages.h"
#include "forwarder/utc_time.h"
#include "spool/ascii.h"

namespace holdfast {
namespace {

constexpr std::string_view kServerPrefix = "Nats-";
constexpr std::string_view kOurPrefix = "Holdfast-";

constexpr std::string_view kStreamHeader = "Nats-Expected-Stream";
constexpr std::string_view kLastHeader = "Nats-Expected-Last-Subject-Sequence";

// Those of later servers too: a time to live would let a record go, a batch would never be acknowledged by itself.
constexpr std::array<std::string_view, 16> kInstructions = {
    kIdHeader,
    kStreamHeader,
    "Nats-Expected-Last-Sequence",
    kLastHeader,
    "Nats-Expected-Last-Subject-Sequence-Subject",
    "Nats-Expected-Last-Msg-Id",
    "Nats-Rollup",
    "Nats-TTL",
    "Nats-Incr",
    "Nats-Marker-Reason",
    "Nats-Schedule",
    "Nats-Schedule-TTL",
    "Nats-Schedule-Target",
    "Nats-Batch-Id",
    "Nats-Batch-Sequence",
    "Nats-Batch-Commit",
};

bool is_instruction(std::string_view name) {
  for (const std::string_view instruction : kInstructions) {
    if (equal_ignoring_case(name, instruction)) return true;
  }
  return false;
}

// By what could make it succeed later; an error that is not known is not a verdict on the record.
Outcome outcome_of_error(ApiError error) {
  switch (static_cast<ApiCode>(error.err_code)) {
    case ApiCode::too_large:
    case ApiCode::header_too_large:
      return rejected(Reason::oversize, std::move(error.words));
    case ApiCode::store_failed:
      return hold_lane("stream_full");
    case ApiCode::no_resources:
    case ApiCode::no_storage:
      return hold_lane("no_resources");
    case ApiCode::wrong_stream:
      return hold_lane("wrong_stream");
    case ApiCode::stream_sealed:
      return hold_lane("stream_sealed");
    case ApiCode::stream_not_found:
    case ApiCode::stream_offline:
    case ApiCode::not_enabled:
    case ApiCode::not_enabled_for_account:
      return hold_lane("no_stream");
    case ApiCode::wrong_last_sequence:
    case ApiCode::wrong_last_sequence_meanwhile:
      return retry("key_taken");
    case ApiCode::duplicate_in_progress:
      return retry("in_progress");
    default:
      return retry("unknown_error");
  }
}

}  // namespace

std::optional<Wire> wire_for(const Delivery& delivery, const NatsDestination& to, const std::string& site) {
  Wire wire;
  wire.stream = to.stream;
  if (to.bucket) {
    const auto name = to.bucket->key ? to.bucket->key->render(delivery, site) : delivery.wire_key;
    auto subject = name ? bucket_subject(to.bucket->name, *name) : std::nullopt;
    if (!subject) return std::nullopt;
    wire.subject = *std::move(subject);
    wire.stream = bucket_stream(to.bucket->name);
    wire.bucket = true;
    if (to.bucket->existing != ExistingValue::replace) wire.expected_last = 0;
    return wire;
  }
  if (!to.subject) {
    wire.subject = delivery.record->envelope.subject;
    return wire;
  }
  auto subject = to.subject->render(delivery, site);
  if (!subject || !subject_fits_wire(*subject)) return std::nullopt;
  wire.subject = *std::move(subject);
  return wire;
}

std::vector<Header> wire_headers(const Delivery& delivery, const std::string& site, const Wire& wire) {
  const DueRecord& record = *delivery.record;
  const Envelope& envelope = record.envelope;
  std::vector<Header> headers;
  headers.reserve(envelope.headers.size() + 11);
  headers.push_back({std::string(kIdHeader), delivery.wire_key});
  if (!wire.stream.empty()) headers.push_back({std::string(kStreamHeader), wire.stream});
  if (wire.expected_last) headers.push_back({std::string(kLastHeader), std::to_string(*wire.expected_last)});
  if (wire.subject != envelope.subject) headers.push_back({"Holdfast-Subject", envelope.subject});
  headers.push_back({"Holdfast-Site", site});
  if (!envelope.origin.stream.empty()) {
    headers.push_back({"Holdfast-Stream", envelope.origin.stream});
    headers.push_back({"Holdfast-Sequence", std::to_string(envelope.origin.sequence)});
  }
  if (record.sequence > 0) headers.push_back({"Holdfast-Spool-Sequence", std::to_string(record.sequence)});
  headers.push_back({"Holdfast-Accepted-At", format_time(record.accepted_wall_ns)});
  headers.push_back({"Holdfast-Clock", record.clock_trusted ? "trusted" : "untrusted"});
  for (const Header& header : envelope.headers) {
    if (wire.bucket && equal_ignoring_case(header.name, kBucketOperation)) {
      headers.push_back({std::string(kOurPrefix).append(header.name), header.value});
    } else if (!is_instruction(header.name)) {
      headers.push_back(header);
    } else if (header.value != delivery.wire_key || !equal_ignoring_case(header.name, kIdHeader)) {
      headers.push_back({std::string(kOurPrefix).append(header.name, kServerPrefix.size()), header.value});
    }
  }
  return headers;
}

std::optional<Outcome> refuse_unsent(const Wire& wire, const std::vector<Header>& headers, ByteView payload,
                                     std::size_t max_payload) {
  if (!subject_fits_wire(wire.subject)) return rejected(Reason::unencodable);
  for (const Header& header : headers) {
    if (!header_fits_wire(header)) return rejected(Reason::unencodable);
  }
  if (header_bytes(headers) + payload.size() > max_payload) return rejected(Reason::oversize);
  return std::nullopt;
}

std::optional<Outcome> outcome_of_answer(int status, std::string_view document) {
  constexpr int kNoResponders = 503;
  if (status == kNoResponders) return hold_lane("no_stream");
  if (status != 0) return retry("unknown_error");
  auto answer = parse_pub_ack(document);
  if (auto* error = std::get_if<ApiError>(&answer)) {
    if (error->code == 0) return std::nullopt;
    return outcome_of_error(std::move(*error));
  }
  return accepted(std::get<PubAck>(answer).duplicate ? OutcomeKind::duplicate : OutcomeKind::delivered);
}

bool says_taken(const Outcome& outcome) {
  return outcome.kind == OutcomeKind::retry && std::string_view(outcome.state) == "key_taken";
}

}  // namespace holdfast
