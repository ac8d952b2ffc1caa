// The JSON is written by hand: a library's next release may escape differently, and bytes under a key never change.
#include "forwarder/file_content.h"

#include "crypto/text.h"

namespace holdfast {
namespace {

void append_quoted(std::string& out, std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out.push_back('"');
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (byte < 0x20) {
      out.append("\\u00");
      out.push_back(kDigits[byte >> 4]);
      out.push_back(kDigits[byte & 0xf]);
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
}

void append_text(std::string& out, std::string_view name, std::string_view text) {
  const bool readable = is_utf8(text);
  out.append("\"").append(name).append(readable ? "\":" : "_base64\":");
  append_quoted(out, readable ? text : to_base64(as_bytes(text)));
}

void append_rest(std::string& out, const Envelope& envelope) {
  out.append("\"headers\":[");
  for (const Header& header : envelope.headers) {
    if (out.back() != '[') out.push_back(',');
    out.push_back('{');
    append_text(out, "name", header.name);
    out.push_back(',');
    append_text(out, "value", header.value);
    out.push_back('}');
  }
  out.append("],");
  append_text(out, "stream", envelope.origin.stream);
  out.append(",\"sequence\":").append(std::to_string(envelope.origin.sequence));
  out.append(",\"timestamp_ns\":").append(std::to_string(envelope.origin.timestamp_ns));
  if (envelope.payload_omitted) {
    out.append(",\"payload_omitted\":true,\"original_size\":").append(std::to_string(envelope.original_size));
  }
  out.append("}\n");
}

}  // namespace

const char* file_suffix(FileFormat format) {
  return format == FileFormat::json ? ".json" : "";
}

FileContent::FileContent(const DueRecord& record, std::string_view wire_key, FileFormat format) {
  const Envelope& envelope = record.envelope;
  if (format == FileFormat::raw) {
    bytes_ = envelope.payload;
    telling_ = bytes_.size();
    return;
  }
  std::string json = "{";
  append_text(json, "key", wire_key);
  json.push_back(',');
  append_text(json, "subject", envelope.subject);
  json.append(",\"payload\":\"").append(to_base64(envelope.payload)).append("\",");
  telling_ = json.size();
  exactly_ = false;
  append_rest(json, envelope);
  const ByteView bytes = as_bytes(json);
  bytes_.assign(bytes.begin(), bytes.end());
}

bool FileContent::is_same_record(ByteView existing) const {
  if (exactly_ ? existing.size() != telling_ : existing.size() < telling_) return false;
  return std::equal(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(telling_), existing.begin());
}

}  // namespace holdfast
