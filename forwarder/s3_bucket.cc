#include "forwarder/s3_bucket.h"

#include <algorithm>

#include "forwarder/retry_after.h"
#include "forwarder/sigv4.h"
#include "spool/check.h"

namespace holdfast {
namespace {

// Stores allow a quarter of an hour (S3: RequestTimeTooSkewed); less is no reason to leave the box's own clock.
constexpr std::int64_t kWrong = 5 * 60;
constexpr std::string_view kEmptySha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
// What x-amz-date can say: a clock outside it signs with its edge, is refused, and learns.
constexpr std::int64_t kFirstSecond = 0;
constexpr std::int64_t kLastSecond = 253402300799;  // 9999-12-31T23:59:59Z

// With the port only where it is not the scheme's own.
std::string authority_of(const HttpUrl& url) {
  const bool address = url.host.find(':') != std::string::npos;
  const std::string host = address ? "[" + url.host + "]" : url.host;
  const bool usual = url.port.empty() || url.port == (url.scheme == "https" ? "443" : "80");
  return usual ? host : host + ":" + url.port;
}

}  // namespace

std::optional<HttpUrl> parse_s3_endpoint(std::string_view text) {
  auto url = parse_http_url(text);
  const bool right =
      url && (url->scheme == "http" || url->scheme == "https") && (url->rest.empty() || url->rest == "/");
  return right ? url : std::nullopt;
}

bool is_s3_bucket_name(std::string_view text) {
  if (text.size() < 3 || text.size() > 63 || text.find("..") != std::string_view::npos) return false;
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return plain(text.front()) && plain(text.back()) &&
         std::ranges::all_of(text, [&](char c) { return plain(c) || c == '-' || c == '.'; });
}

S3Bucket::S3Bucket(const S3Place& place, const Clock& clock) : region_(place.region), clock_(clock) {
  const auto endpoint = parse_s3_endpoint(place.endpoint);
  CHECK(endpoint && is_s3_bucket_name(place.bucket));
  scheme_ = endpoint->scheme;
  authority_ = (place.virtual_host ? place.bucket + "." : "") + authority_of(*endpoint);
  base_path_ = place.virtual_host ? "/" : "/" + place.bucket + "/";
}

std::int64_t S3Bucket::now() const {
  const Nanoseconds time = from_boot_ ? clock_.monotonic() + *from_boot_ : clock_.wall().since_1970;
  return std::clamp(std::chrono::floor<std::chrono::seconds>(time).count(), kFirstSecond, kLastSecond);
}

HttpRequest S3Bucket::request(std::string method, std::string_view key, const S3Credentials& credentials,
                              std::vector<Header> headers, ByteView body, std::string_view body_sha256) const {
  HttpRequest request;
  request.method = std::move(method);
  request.body = body;
  request.headers = std::move(headers);
  const std::string path = base_path_ + sigv4_encoded_path(key);
  request.url = scheme_ + "://" + authority_ + path;
  const std::string date = sigv4_date(now());
  request.headers.push_back({"Host", authority_});
  request.headers.push_back({"x-amz-date", date});
  request.headers.push_back({"x-amz-content-sha256", std::string(body_sha256)});
  if (!credentials.token.empty()) request.headers.push_back({"x-amz-security-token", credentials.token});
  const std::string authorization = sigv4_authorization(credentials.access_key, credentials.secret, {region_}, date,
                                                        {request.method, path, "", request.headers, body_sha256});
  request.headers.push_back({"Authorization", authorization});
  return request;
}

HttpRequest S3Bucket::request(std::string method, std::string_view key, const S3Credentials& credentials) const {
  return request(std::move(method), key, credentials, {}, {}, kEmptySha256);
}

bool S3Bucket::learn_time(const HttpResponse& refusal) {
  const auto theirs = parse_http_date(refusal.header("Date").value_or(""));
  if (!theirs || *theirs < kFirstSecond || *theirs > kLastSecond) return false;
  if (*theirs - now() <= kWrong && now() - *theirs <= kWrong) return false;
  from_boot_ = std::chrono::seconds(*theirs) - clock_.monotonic();
  ++lessons_;
  return true;
}

}  // namespace holdfast
