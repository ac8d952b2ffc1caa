#include "forwarder/nats_limits.h"

#include "spool/subject.h"

namespace holdfast {

bool valid_api_name(std::string_view name) {
  constexpr std::size_t kLongest = 255;
  if (name.empty() || name.size() > kLongest) return false;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte == 0x7f) return false;
  }
  return name.find_first_of(".*>/\\") == std::string_view::npos;
}

std::size_t header_bytes(std::span<const Header> headers) {
  if (headers.empty()) return 0;
  std::size_t bytes = std::string_view("NATS/1.0\r\n\r\n").size();
  for (const Header& header : headers)
    bytes += header.name.size() + header.value.size() + std::string_view(": \r\n").size();
  return bytes;
}

bool header_fits_wire(const Header& header) {
  constexpr std::string_view kCut("\r\n\0", 3);
  const std::string_view name = header.name;
  if (name.empty() || name.front() == ' ' || name.back() == ' ') return false;
  for (const char c : name) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == ':') return false;
  }
  return header.value.find_first_of(kCut) == std::string::npos;
}

bool subject_fits_wire(std::string_view subject) {
  constexpr std::size_t kLongest = 3900;  // leaves room for the verb, a reply subject of ours and two lengths
  return subject.size() <= kLongest && valid_subject(subject);
}

}  // namespace holdfast
