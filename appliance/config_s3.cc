#include "appliance/config_s3.h"

#include <algorithm>

#include "appliance/config_http.h"
#include "spool/ascii.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMostInFlight = 256;  // a connection each with HTTP/1.1
constexpr std::size_t kMostPrefix = 256;      // with a name of 200 and a suffix, far below the 1024 of S3
constexpr std::size_t kMostSuffix = 32;
constexpr std::size_t kMostWord = 64;

bool is_letter_or_digit(char c) {
  const char folded = ascii_lower(c);
  return (folded >= 'a' && folded <= 'z') || (c >= '0' && c <= '9');
}

bool is_of(std::string_view text, std::string_view marks) {
  return std::ranges::all_of(text,
                             [&](char c) { return is_letter_or_digit(c) || marks.find(c) != std::string_view::npos; });
}

const char* endpoint_rule(std::string_view value) {
  if (const char* fault = http_url_rule(value)) return fault;
  return parse_s3_endpoint(value) ? nullptr
                                  : "must be like \"https://host\", without a path; the bucket is a key of its own";
}

const char* bucket_name_rule(std::string_view value) {
  return is_s3_bucket_name(value) ? nullptr : "must be 3 to 63 lower-case letters, digits, '-' and '.'";
}

const char* word_rule(std::string_view value) {
  return !value.empty() && value.size() <= kMostWord && is_of(value, "-_")
             ? nullptr
             : "must be 1 to 64 letters, digits, '-' and '_'";
}

// What no URL, proxy or server can understand in two ways: no empty segment, none that is "." or "..".
const char* prefix_rule(std::string_view value) {
  const std::string framed = "/" + std::string(value) + "x";
  const bool right = value.size() <= kMostPrefix && is_of(value, "-._~=/") && framed.find("//") == std::string::npos &&
                     framed.find("/./") == std::string::npos && framed.find("/../") == std::string::npos;
  return right ? nullptr : "must be like \"telemetry/site=truck-07/\": at most 256 letters, digits and -._~=/, no '//'";
}

const char* suffix_rule(std::string_view value) {
  return value.size() <= kMostSuffix && is_of(value, "-._~")
             ? nullptr
             : "must be like \".bin\": at most 32 letters, digits and -._~";
}

const char* profile_rule(std::string_view value) {
  const bool right = !value.empty() && value.size() <= kMostWord &&
                     value.find_first_of("[]") == std::string_view::npos &&
                     std::ranges::all_of(value, [](char c) { return c > 0x20 && c < 0x7f; });
  return right ? nullptr : "must be the name of a profile of the credentials file, like \"default\"";
}

const char* kms_key_rule(std::string_view value) {
  return !value.empty() && value.size() <= 2048 && http_header_fits({"Name", std::string(value)})
             ? nullptr
             : "must be the id or ARN of a key";
}

void read_naming(ConfigTable& in, S3Naming& naming) {
  in.text("prefix", naming.prefix, prefix_rule);
  in.choice<FileFormat>("format", naming.format, {{"raw", FileFormat::raw}, {"json", FileFormat::json}});
  naming.suffix = file_suffix(naming.format);
  in.text("suffix", naming.suffix, suffix_rule);
}

void read_keeping(ConfigTable& in, std::vector<Header>& headers) {
  std::string storage_class, encryption, kms_key;
  in.text("storage_class", storage_class, word_rule);
  in.choice<std::string>("encryption", encryption,
                         {{"AES256", "AES256"}, {"aws:kms", "aws:kms"}, {"aws:kms:dsse", "aws:kms:dsse"}});
  in.text("kms_key", kms_key, kms_key_rule);
  if (!kms_key.empty() && !encryption.starts_with("aws:kms"))
    in.complain("kms_key", "needs encryption = \"aws:kms\" or \"aws:kms:dsse\"");
  if (!storage_class.empty()) headers.push_back({"x-amz-storage-class", storage_class});
  if (!encryption.empty()) headers.push_back({"x-amz-server-side-encryption", encryption});
  if (!kms_key.empty()) headers.push_back({"x-amz-server-side-encryption-aws-kms-key-id", kms_key});
}

void read_connection(ConfigTable& in, S3TargetOptions& s3) {
  in.count("in_flight", s3.client.window, 1, kMostInFlight);
  in.duration("timeout", s3.client.deadline, 1s, 1h);
  in.duration("connect_timeout", s3.client.connect_limit, 100ms, 5min);
  in.text("tls_ca", s3.client.tls_ca, path_rule);
  in.text("tls_cert", s3.client.tls_cert, path_rule);
  in.text("tls_key", s3.client.tls_key, path_rule);
  in.text("proxy", s3.client.proxy, proxy_rule);
  in.text("proxy_login_file", s3.proxy_login_file, path_rule);
}

bool is_address(const HttpUrl& url) {
  return url.host.find(':') != std::string::npos || url.host.find_first_not_of("0123456789.") == std::string::npos;
}

}  // namespace

S3TargetConfig read_s3(ConfigTable& in) {
  S3TargetConfig config;
  S3TargetOptions& s3 = config.options;
  in.required_text("endpoint", s3.place.endpoint, endpoint_rule);
  in.required_text("bucket", s3.place.bucket, bucket_name_rule);
  in.text("region", s3.place.region, word_rule);
  in.choice<bool>("addressing", s3.place.virtual_host, {{"path", false}, {"virtual_host", true}});
  in.required_text("credentials_file", s3.credentials_file, path_rule);
  in.text("profile", s3.profile, profile_rule);
  read_naming(in, s3.naming);
  in.choice<S3OnExisting>(
      "on_existing", s3.on_existing,
      {{"skip", S3OnExisting::skip}, {"replace", S3OnExisting::replace}, {"fail", S3OnExisting::fail}});
  in.choice<S3Conditional>("conditional", s3.conditional,
                           {{"required", S3Conditional::required}, {"if_supported", S3Conditional::if_supported}});
  in.flag("compare", s3.compare);
  read_keeping(in, s3.headers);
  read_connection(in, s3);
  s3.client.https_only = !s3.place.endpoint.starts_with("http://");
  return config;
}

void check_s3(const TargetConfig& target, const S3TargetConfig& config, Findings& findings) {
  const S3TargetOptions& s3 = config.options;
  const int line = target.line;
  if (s3.client.tls_cert.empty() != s3.client.tls_key.empty())
    findings.error(line, s3.client.tls_key.empty() ? "target.tls_key" : "target.tls_cert",
                   "is missing; tls_cert and tls_key go together");
  if (!s3.proxy_login_file.empty() && s3.client.proxy.empty())
    findings.error(line, "target.proxy_login_file", "says nothing without proxy");
  if (!s3.compare && s3.on_existing == S3OnExisting::fail)
    findings.error(line, "target.compare", "cannot be false with on_existing = \"fail\", which is about what is there");
  const auto endpoint = parse_s3_endpoint(s3.place.endpoint);
  if (s3.place.virtual_host && endpoint && is_address(*endpoint))
    findings.error(line, "target.addressing", "cannot be \"virtual_host\" where the endpoint is an address");
  if (s3.place.virtual_host && s3.client.https_only && s3.place.bucket.find('.') != std::string::npos)
    findings.warning(
        line, "target.bucket",
        "has dots in it, which a store's certificate for *.host does not cover; addressing = \"path\" does");
  if (s3.client.window > target.window)
    findings.warning(line, "target.window", "is less than in_flight: fewer requests will go side by side");
}

}  // namespace holdfast
