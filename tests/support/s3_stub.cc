#include "tests/support/s3_stub.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "crypto/digest.h"
#include "crypto/text.h"

namespace holdfast {
namespace {

constexpr std::int64_t kMostSkew = 15 * 60;

std::string checksum(const std::string& content) {
  const std::uint32_t crc = crc32c(as_bytes(content));
  const std::uint8_t bytes[] = {static_cast<std::uint8_t>(crc >> 24), static_cast<std::uint8_t>(crc >> 16),
                                static_cast<std::uint8_t>(crc >> 8), static_cast<std::uint8_t>(crc)};
  return to_base64(bytes);
}

std::optional<std::int64_t> seconds_of(const std::string& amz_date) {
  std::tm parts{};
  if (::strptime(amz_date.c_str(), "%Y%m%dT%H%M%SZ", &parts) == nullptr) return std::nullopt;
  return ::timegm(&parts);
}

}  // namespace

S3Stub::S3Stub() : stub_([this](const StubRequest& request) { return answer(request); }) {}

std::int64_t S3Stub::now() const {
  return std::time(nullptr) + manners_.clock_shift.count();
}

StubAnswer S3Stub::refusal(int status, const std::string& code) {
  return {status,
          {{"Content-Type", "application/xml"}},
          "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>" + code +
              "</Code><Message>no</Message><RequestId>1</RequestId></Error>"};
}

void S3Stub::behave(const std::function<void(Manners& manners)>& change) {
  const std::lock_guard lock(mutex_);
  change(manners_);
}

std::map<std::string, S3Stub::Object> S3Stub::objects() const {
  const std::lock_guard lock(mutex_);
  return objects_;
}

void S3Stub::put(const std::string& key, Object object) {
  const std::lock_guard lock(mutex_);
  objects_[key] = std::move(object);
}

void S3Stub::erase(const std::string& key) {
  const std::lock_guard lock(mutex_);
  objects_.erase(key);
}

std::size_t S3Stub::puts(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = puts_.find(key);
  return found == puts_.end() ? 0 : found->second;
}

void S3Stub::first_ask(First first) {
  const std::lock_guard lock(mutex_);
  first_ = std::move(first);
}

StubAnswer S3Stub::answer(const StubRequest& request) {
  const std::lock_guard lock(mutex_);
  const std::string base = "/" + bucket() + "/";
  const std::string key = request.path.substr(std::min(base.size(), request.path.size()));
  if (request.method == "PUT") ++puts_[key];
  std::optional<StubAnswer> said = first_ ? first_(request) : std::nullopt;
  if (!said) said = refuse(request);
  if (!said && request.method == "PUT") said = put(request, key);
  if (!said && request.method == "DELETE") {
    objects_.erase(key);
    said = StubAnswer();
  }
  if (!said) said = get(key);
  said->headers.push_back(
      {"Date", fmt::format("{:%a, %d %b %Y %H:%M:%S GMT}", fmt::gmtime(static_cast<std::time_t>(now())))});
  return *std::move(said);
}

std::optional<StubAnswer> S3Stub::refuse(const StubRequest& request) const {
  const std::string authorization = request.header("authorization");
  if (!authorization.starts_with("AWS4-HMAC-SHA256 Credential=")) return refusal(403, "AccessDenied");
  const auto date = seconds_of(request.header("x-amz-date"));
  if (!date) return refusal(403, "AccessDenied");
  if (*date > now() + kMostSkew || *date < now() - kMostSkew) return refusal(403, "RequestTimeTooSkewed");
  if (authorization.find("Credential=" + manners_.access_key + "/") == std::string::npos)
    return refusal(403, "InvalidAccessKeyId");
  if (request.header("x-amz-security-token") != manners_.token) return refusal(400, "ExpiredToken");
  if (!manners_.has_bucket || !request.path.starts_with("/" + bucket() + "/")) return refusal(404, "NoSuchBucket");
  return std::nullopt;
}

StubAnswer S3Stub::put(const StubRequest& request, const std::string& key) {
  if (request.header("x-amz-content-sha256") != to_hex(sha256(as_bytes(request.body))))
    return refusal(400, "XAmzContentSHA256Mismatch");
  if (request.header("x-amz-checksum-crc32c") != checksum(request.body)) return refusal(400, "BadDigest");
  const bool conditional = request.header("if-none-match") == "*";
  if (conditional && manners_.condition == Condition::not_implemented) return refusal(501, "NotImplemented");
  if (conditional && manners_.condition == Condition::kept && objects_.contains(key))
    return refusal(412, "PreconditionFailed");
  Object object{request.body, {}};
  for (const auto& [name, value] : request.headers) {
    if (manners_.keeps_metadata && name.starts_with("x-amz-meta-")) object.metadata.emplace(name, value);
  }
  objects_[key] = std::move(object);
  return {200, {{"ETag", "\"1\""}, {"x-amz-checksum-crc32c", checksum(request.body)}}, ""};
}

StubAnswer S3Stub::get(const std::string& key) const {
  if (!manners_.may_read) return refusal(403, "AccessDenied");
  const auto found = objects_.find(key);
  if (found == objects_.end()) return refusal(404, "NoSuchKey");
  StubAnswer said{200, {{"ETag", "\"1\""}}, found->second.content};
  for (const auto& header : found->second.metadata) said.headers.push_back(header);
  return said;
}

}  // namespace holdfast
