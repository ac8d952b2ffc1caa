// The JSON is written by hand: a library's next release may escape differently, and bytes under a key never change.
#include "forwarder/file_content.h"

#include <algorithm>
#include <array>

namespace holdfast {
namespace {

std::string base64(ByteView bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t group = 0;
    for (std::size_t n = 0; n < 3; ++n) group = group << 8 | (n < count ? bytes[at + n] : 0U);
    for (std::size_t n = 0; n < 4; ++n) out.push_back(n <= count ? kDigits[group >> (18 - 6 * n) & 0x3f] : '=');
  }
  return out;
}

// How many bytes the character at the front has; 0 when it is not UTF-8 (Unicode 15, table 3-7).
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t n) { return n < text.size() ? static_cast<unsigned char>(text[n]) : 0U; };
  const auto within = [&](std::size_t n, unsigned low, unsigned high) { return byte(n) >= low && byte(n) <= high; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return within(1, 0x80, 0xbf) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    const bool second = within(1, lead == 0xe0 ? 0xa0 : 0x80, lead == 0xed ? 0x9f : 0xbf);
    return second && within(2, 0x80, 0xbf) ? 3 : 0;
  }
  if (lead < 0xf0 || lead > 0xf4) return 0;
  const bool second = within(1, lead == 0xf0 ? 0x90 : 0x80, lead == 0xf4 ? 0x8f : 0xbf);
  return second && within(2, 0x80, 0xbf) && within(3, 0x80, 0xbf) ? 4 : 0;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

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
  append_quoted(out, readable ? text : base64(as_bytes(text)));
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
  json.append(",\"payload\":\"").append(base64(envelope.payload)).append("\",");
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
