#include "forwarder/nats_bucket.h"

#include <algorithm>

#include "forwarder/nats_limits.h"
#include "forwarder/nats_wire.h"
#include "spool/ascii.h"

namespace holdfast {
namespace {

constexpr std::size_t kMostBucketName = 200;  // with KV_ before it, a stream's name
constexpr std::string_view kReserved = "_kv";

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_plain(char c) {
  return is_letter_or_digit(c) || c == '-' || c == '_' || c == '/';
}

std::string escape_key(std::string_view name) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (std::size_t n = 0; n < name.size(); ++n) {
    const char c = name[n];
    const bool inner_dot = c == '.' && n > 0 && n + 1 < name.size() && name[n - 1] != '.';
    const bool reserved = n == 0 && name.starts_with(kReserved);
    if ((is_plain(c) && !reserved) || inner_dot) {
      out.push_back(c);
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out.push_back('=');
    out.push_back(kDigits[byte >> 4]);
    out.push_back(kDigits[byte & 0xf]);
  }
  return out;
}

std::string_view value_of(const std::vector<Header>& headers, std::string_view name) {
  const auto found = std::find_if(headers.begin(), headers.end(),
                                  [&](const Header& header) { return equal_ignoring_case(header.name, name); });
  return found == headers.end() ? std::string_view() : std::string_view(found->value);
}

// Deleted or purged by a client, or by the server when its time was over (Nats-Marker-Reason, nats-server 2.11).
bool is_marker(const StoredContent& stored) {
  const std::string_view operation = value_of(stored.headers, kBucketOperation);
  return operation == "DEL" || operation == "PURGE" || !value_of(stored.headers, "Nats-Marker-Reason").empty();
}

}  // namespace

bool valid_bucket_name(std::string_view name) {
  return !name.empty() && name.size() <= kMostBucketName &&
         std::all_of(name.begin(), name.end(), [](char c) { return is_letter_or_digit(c) || c == '-' || c == '_'; });
}

bool valid_key_template(std::string_view text) {
  const auto parsed = SubjectTemplate::parse(text);
  return parsed && escape_key(parsed->shape()) == parsed->shape();
}

std::string bucket_stream(std::string_view bucket) {
  return std::string("KV_").append(bucket);
}

std::optional<std::string> bucket_subject(std::string_view bucket, std::string_view name) {
  if (name.empty()) return std::nullopt;
  std::string subject = std::string("$KV.").append(bucket).append(".").append(escape_key(name));
  if (!subject_fits_wire(subject)) return std::nullopt;
  return subject;
}

bool is_same_message(const StoredContent& stored, const Delivery& delivery) {
  return value_of(stored.headers, kIdHeader) == delivery.wire_key &&
         stored.payload == delivery.record->envelope.payload;
}

ExistingVerdict judge_existing(const StoredContent& existing, const Delivery& delivery, ExistingValue policy) {
  if (is_marker(existing)) return {std::nullopt, existing.place.sequence};
  if (policy == ExistingValue::skip || is_same_message(existing, delivery))
    return {accepted(OutcomeKind::duplicate), 0};
  return {rejected(Reason::exists_otherwise), 0};
}

}  // namespace holdfast
