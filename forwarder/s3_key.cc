#include "forwarder/s3_key.h"

#include "crypto/digest.h"
#include "spool/ascii.h"

namespace holdfast {
namespace {

constexpr std::size_t kMaxName = 200;  // of 255 that file systems have; the suffix comes on top

std::string escape(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (std::size_t n = 0; n < text.size(); ++n) {
    const char c = text[n];
    const char folded = ascii_lower(c);
    const bool at_end = n == 0 || n + 1 == text.size();
    if ((folded >= 'a' && folded <= 'z') || (c >= '0' && c <= '9') || c == '-' || (c == '.' && !at_end)) {
      out.push_back(c);
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out.append({'_', kDigits[byte >> 4], kDigits[byte & 0xf]});
  }
  return out;
}

}  // namespace

std::string s3_object_key(std::string_view prefix, std::string_view wire_key, std::string_view suffix) {
  std::string name = escape(wire_key);
  if (name.size() > kMaxName) name = escape("h:" + to_hex(sha256(as_bytes(wire_key))));
  return std::string(prefix).append(name).append(suffix);
}

}  // namespace holdfast
