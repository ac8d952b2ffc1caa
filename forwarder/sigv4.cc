#include "forwarder/sigv4.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "crypto/digest.h"
#include "crypto/secret.h"
#include "spool/ascii.h"

namespace holdfast {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";
constexpr std::size_t kDay = 8;  // of a date: 20130524

std::string lower(std::string_view text) {
  std::string lowered(text);
  std::ranges::transform(lowered, lowered.begin(), ascii_lower);
  return lowered;
}

// Without spaces at either end, and one where there are several.
std::string plain_value(std::string_view value) {
  std::string plain;
  for (const char c : value) {
    if (c == ' ' && (plain.empty() || plain.back() == ' ')) continue;
    plain.push_back(c);
  }
  if (plain.ends_with(' ')) plain.pop_back();
  return plain;
}

struct SignedHeaders {
  std::string lines;  // "name:value\n" each
  std::string names;  // "a;b;c"
};

SignedHeaders signed_headers(std::span<const Header> headers) {
  std::map<std::string, std::string> sorted;
  for (const Header& header : headers) {
    std::string& value = sorted[lower(header.name)];
    if (!value.empty()) value.push_back(',');
    value += plain_value(header.value);
  }
  SignedHeaders made;
  for (const auto& [name, value] : sorted) {
    made.lines.append(name).append(":").append(value).append("\n");
    if (!made.names.empty()) made.names.push_back(';');
    made.names += name;
  }
  return made;
}

std::string sha256_hex(std::string_view text) {
  return to_hex(sha256(as_bytes(text)));
}

std::string signature(std::string_view secret, const SigV4Scope& scope, std::string_view day, std::string_view text) {
  std::string first = "AWS4" + std::string(secret);
  auto key = hmac_sha256(as_bytes(first), as_bytes(day));
  wipe({reinterpret_cast<std::uint8_t*>(first.data()), first.size()});
  for (const std::string_view part :
       {std::string_view(scope.region), std::string_view(scope.service), std::string_view("aws4_request"), text}) {
    key = hmac_sha256(key, as_bytes(part));
  }
  return to_hex(key);
}

}  // namespace

std::string sigv4_date(std::int64_t seconds_since_1970) {
  const std::chrono::sys_seconds time{std::chrono::seconds(seconds_since_1970)};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count());
}

std::string sigv4_authorization(std::string_view access_key, std::string_view secret, const SigV4Scope& scope,
                                std::string_view date, const SigV4Request& request) {
  const SignedHeaders headers = signed_headers(request.headers);
  const std::string canonical = fmt::format("{}\n{}\n{}\n{}\n{}\n{}", request.method, request.path, request.query,
                                            headers.lines, headers.names, request.payload_sha256);
  const std::string_view day = date.substr(0, kDay);
  const std::string place = fmt::format("{}/{}/{}/aws4_request", day, scope.region, scope.service);
  const std::string text = fmt::format("{}\n{}\n{}\n{}", kAlgorithm, date, place, sha256_hex(canonical));
  return fmt::format("{} Credential={}/{},SignedHeaders={},Signature={}", kAlgorithm, access_key, place, headers.names,
                     signature(secret, scope, day, text));
}

std::string sigv4_encoded_path(std::string_view path) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  constexpr std::string_view kPlainMarks = "-._~/";
  std::string encoded;
  for (const char c : path) {
    const char folded = ascii_lower(c);
    const bool plain =
        (folded >= 'a' && folded <= 'z') || (c >= '0' && c <= '9') || kPlainMarks.find(c) != std::string_view::npos;
    if (plain) {
      encoded.push_back(c);
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    encoded.append({'%', kDigits[byte >> 4], kDigits[byte & 0xf]});
  }
  return encoded;
}

}  // namespace holdfast
