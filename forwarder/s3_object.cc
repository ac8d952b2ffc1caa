#include "forwarder/s3_object.h"

#include <algorithm>

#include "crypto/digest.h"
#include "crypto/text.h"
#include "forwarder/s3_key.h"
#include "forwarder/utc_time.h"

namespace holdfast {
namespace {

constexpr std::size_t kMostValue = 256;

std::string encoded(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    if (c > 0x20 && c < 0x7f && c != '%') {
      out.push_back(c);
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out.append({'%', kDigits[byte >> 4], kDigits[byte & 0xf]});
  }
  if (out.size() > kMostValue) out = "h:" + to_hex(sha256(as_bytes(out)));
  return out;
}

// It is printable and at most 200 bytes, and has its own %XX in it.
std::string key_text(const std::string& wire_key) {
  const bool printable = std::ranges::all_of(wire_key, [](char c) { return c > 0x20 && c < 0x7f; });
  return printable ? wire_key : encoded(wire_key);
}

std::string crc32c_text(ByteView bytes) {
  const std::uint32_t crc = crc32c(bytes);
  const std::array<std::uint8_t, 4> big_endian = {static_cast<std::uint8_t>(crc >> 24),
                                                  static_cast<std::uint8_t>(crc >> 16),
                                                  static_cast<std::uint8_t>(crc >> 8), static_cast<std::uint8_t>(crc)};
  return to_base64(big_endian);
}

std::vector<Header> metadata_of(const Delivery& delivery, std::string digest, const std::string& site) {
  const DueRecord& record = *delivery.record;
  const Envelope& envelope = record.envelope;
  std::vector<Header> headers;
  const auto add = [&](const char* name, std::string value) {
    headers.push_back({std::string(kS3Metadata) + name, std::move(value)});
  };
  add("key", key_text(delivery.wire_key));
  add("digest", std::move(digest));
  add("subject", encoded(envelope.subject));
  add("site", encoded(site));
  if (!envelope.origin.stream.empty()) {
    add("stream", encoded(envelope.origin.stream));
    add("sequence", std::to_string(envelope.origin.sequence));
    add("timestamp", std::to_string(envelope.origin.timestamp_ns));
  }
  if (record.sequence > 0) add("spool-sequence", std::to_string(record.sequence));
  add("accepted-at", format_time(record.accepted_wall_ns));
  add("clock", record.clock_trusted ? "trusted" : "untrusted");
  if (envelope.payload_omitted) add("payload-omitted", std::to_string(envelope.original_size));
  return headers;
}

// Both have the value, or both lack it.
bool agree(const S3Object& object, const HttpResponse& found, std::string_view name) {
  const std::string header = std::string(kS3Metadata).append(name);
  const auto ours =
      std::ranges::find_if(object.metadata, [&](const Header& one) { return std::string_view(one.name) == header; });
  const auto theirs = found.header(header);
  if (ours == object.metadata.end()) return !theirs;
  return theirs && *theirs == ours->value;
}

}  // namespace

S3Object s3_object(const Delivery& delivery, const S3Naming& naming) {
  S3Object object;
  object.key = s3_object_key(naming.prefix, delivery.wire_key, naming.suffix);
  object.content = FileContent(*delivery.record, delivery.wire_key, naming.format).bytes();
  const std::string digest = to_hex(sha256(delivery.record->envelope.payload));
  object.sha256 = naming.format == FileFormat::raw ? digest : to_hex(sha256(object.content));
  object.crc32c = crc32c_text(object.content);
  object.metadata = metadata_of(delivery, digest, naming.site);
  return object;
}

S3Likeness s3_likeness(const S3Object& object, const HttpResponse& found) {
  if (!found.header(std::string(kS3Metadata) + "digest")) {
    const auto size = parse_decimal<std::uint64_t>(found.header("Content-Length").value_or(""));
    return size == object.content.size() ? S3Likeness::unsaid : S3Likeness::other;
  }
  for (const char* name : {"key", "digest", "subject", "payload-omitted"}) {
    if (!agree(object, found, name)) return S3Likeness::other;
  }
  const bool same = agree(object, found, "spool-sequence") && agree(object, found, "accepted-at");
  return same ? S3Likeness::same_try : S3Likeness::same_content;
}

}  // namespace holdfast
