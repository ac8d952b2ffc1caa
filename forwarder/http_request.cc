#include "forwarder/http_request.h"

#include "forwarder/file_content.h"
#include "forwarder/http_client.h"
#include "forwarder/utc_time.h"

namespace holdfast {
namespace {

void append_escaped(std::string& out, char c) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  const auto byte = static_cast<unsigned char>(c);
  out.push_back('%');
  out.push_back(kDigits[byte >> 4]);
  out.push_back(kDigits[byte & 0xf]);
}

std::string value_of(std::string_view text) {
  std::string value;
  value.reserve(text.size());
  for (const char c : text) {
    if (c > 0x20 && c < 0x7f && c != '%') {
      value.push_back(c);
    } else {
      append_escaped(value, c);
    }
  }
  return value;
}

std::string name_of(std::string_view text) {
  std::string name = "Holdfast-Header-";
  for (const char c : text) {
    if (c != '%' && is_http_token_character(c)) {
      name.push_back(c);
    } else {
      append_escaped(name, c);
    }
  }
  return name;
}

void add_message(const Envelope& envelope, std::vector<Header>& headers) {
  headers.push_back({"Holdfast-Subject", value_of(envelope.subject)});
  if (!envelope.origin.stream.empty()) {
    headers.push_back({"Holdfast-Stream", value_of(envelope.origin.stream)});
    headers.push_back({"Holdfast-Sequence", std::to_string(envelope.origin.sequence)});
    headers.push_back({"Holdfast-Timestamp", std::to_string(envelope.origin.timestamp_ns)});
  }
  if (envelope.payload_omitted) {
    headers.push_back({"Holdfast-Payload-Omitted", std::to_string(envelope.original_size)});
  }
  for (const Header& header : envelope.headers) headers.push_back({name_of(header.name), value_of(header.value)});
}

}  // namespace

std::vector<Header> http_record_headers(const Delivery& delivery, const std::string& site, HttpBody body) {
  const DueRecord& record = *delivery.record;
  std::vector<Header> headers;
  headers.reserve(record.envelope.headers.size() + 16);
  headers.push_back({"Holdfast-Site", site});
  if (record.sequence > 0) headers.push_back({"Holdfast-Spool-Sequence", std::to_string(record.sequence)});
  headers.push_back({"Holdfast-Accepted-At", format_time(record.accepted_wall_ns)});
  headers.push_back({"Holdfast-Clock", record.clock_trusted ? "trusted" : "untrusted"});
  if (body == HttpBody::raw) add_message(record.envelope, headers);
  return headers;
}

Bytes http_envelopes(std::span<const Delivery> records) {
  Bytes lines;
  for (const Delivery& delivery : records) {
    const FileContent line(*delivery.record, delivery.wire_key, FileFormat::json);
    lines.insert(lines.end(), line.bytes().begin(), line.bytes().end());
  }
  return lines;
}

}  // namespace holdfast
