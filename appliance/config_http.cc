#include "appliance/config_http.h"

#include <algorithm>

#include "forwarder/http_url.h"
#include "spool/ascii.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMostInFlight = 256;  // a connection each with HTTP/1.1
constexpr std::uint64_t kMostInBatch = 10'000;
constexpr std::size_t kMostPattern = 1024;

// What the exchange itself is made of, and the credentials, which have files of their own.
constexpr std::string_view kReserved[] = {
    "Authorization", "Connection",          "Content-Length",   "Content-Type", "Expect",  "Host",
    "Keep-Alive",    "Proxy-Authorization", "Proxy-Connection", "TE",           "Trailer", "Transfer-Encoding",
    "Upgrade",
};

bool is_reserved(std::string_view name) {
  const bool ours = name.size() >= 9 && equal_ignoring_case(name.substr(0, 9), "Holdfast-");
  return ours || std::ranges::any_of(kReserved, [&](auto reserved) { return equal_ignoring_case(name, reserved); });
}

const char* header_name_rule(std::string_view value) {
  if (value.empty() || value.size() > 100 || !std::ranges::all_of(value, is_http_token_character))
    return "must be the name of a header, like \"X-Fleet\"";
  return is_reserved(value) ? "is a header that the request has of itself; choose another" : nullptr;
}

const char* header_value_rule(std::string_view value) {
  return value.size() <= 8192 && http_header_fits({"Name", std::string(value)})
             ? nullptr
             : "must be the value of a header: no control characters, no space at either end";
}

const char* media_type_rule(std::string_view value) {
  return !value.empty() && value.find('/') != std::string_view::npos ? header_value_rule(value)
                                                                     : "must be a media type, like \"text/plain\"";
}

const char* pattern_of_answer_rule(std::string_view value) {
  return !value.empty() && value.size() <= kMostPattern ? nullptr : "must be 1 to 1024 bytes; '*' stands for any bytes";
}

// "Name", or "Name: pattern".
const char* expected_header_rule(std::string_view value) {
  const std::size_t colon = value.find(':');
  const std::string_view name = value.substr(0, colon);
  const bool named = !name.empty() && std::ranges::all_of(name, is_http_token_character);
  const bool right = named && (colon == std::string_view::npos || value.size() > colon + 1);
  return right && value.size() <= kMostPattern ? nullptr : "must be like \"X-Ingest\" or \"X-Ingest: fleet-*\"";
}

void read_expect(ConfigTable& in, HttpExpect& expect) {
  in.inner("expect", [&](ConfigTable& of) {
    of.counts("statuses", expect.statuses, 200, 299);
    std::string header;
    of.text("header", header, expected_header_rule);
    const std::size_t colon = std::min(header.find(':'), header.size());
    expect.header = header.substr(0, colon);
    const std::size_t value = header.find_first_not_of(' ', std::min(colon + 1, header.size()));
    if (value != std::string::npos) expect.header_value = header.substr(value);
    of.text("body", expect.body, pattern_of_answer_rule);
  });
}

void read_connection(ConfigTable& in, HttpTargetOptions& http) {
  in.count("in_flight", http.client.window, 1, kMostInFlight);
  in.duration("timeout", http.client.deadline, 1s, 1h);
  in.duration("connect_timeout", http.client.connect_limit, 100ms, 5min);
  in.bytes("response_bytes", http.client.response_bytes, 1u << 10, 64u << 20);
  in.text("tls_ca", http.client.tls_ca, path_rule);
  in.text("tls_cert", http.client.tls_cert, path_rule);
  in.text("tls_key", http.client.tls_key, path_rule);
  in.text("proxy", http.client.proxy, proxy_rule);
  in.text("proxy_login_file", http.proxy_login_file, path_rule);
  in.text("bearer_file", http.bearer_file, path_rule);
  in.text("basic_file", http.basic_file, path_rule);
}

}  // namespace

const char* http_url_rule(std::string_view value) {
  const auto url = parse_http_url(value);
  if (!url || (url->scheme != "http" && url->scheme != "https"))
    return "must be like \"https://host/path\", without a login or a fragment";
  if (url->scheme == "http" && !url->is_loopback()) return "must begin with https:// where it leaves this machine";
  return nullptr;
}

const char* proxy_rule(std::string_view value) {
  const auto url = parse_http_url(value);
  const bool known = url && (url->scheme == "http" || url->scheme == "https" || url->scheme == "socks5h");
  return known && (url->rest.empty() || url->rest == "/")
             ? nullptr
             : "must be like \"http://proxy:3128\", \"https://proxy:3128\" or \"socks5h://proxy:1080\", without a "
               "login";
}

HttpTargetConfig read_http(ConfigTable& in) {
  HttpTargetConfig config;
  HttpTargetOptions& http = config.options;
  in.required_text("url", http.url, http_url_rule);
  in.choice<std::string>("method", http.method, {{"POST", "POST"}, {"PUT", "PUT"}, {"PATCH", "PATCH"}});
  in.text("key_header", http.key_header, header_name_rule);
  in.choice<HttpBody>("body", http.body, {{"raw", HttpBody::raw}, {"envelope", HttpBody::envelope}});
  if (in.has("content_type") && http.body == HttpBody::envelope)
    in.complain("content_type", "is that of raw bodies; an envelope has its own");
  in.text("content_type", http.content_type, media_type_rule);
  ConfigTable::Pairs headers;
  if (in.has("headers")) in.pairs("headers", headers, header_name_rule, header_value_rule);
  for (const auto& [name, value] : headers) http.headers.push_back({name, value});
  in.count("batch", http.batch, 1, kMostInBatch);
  read_expect(in, http.expect);
  read_connection(in, http);
  in.text("verify_url", config.verify_url, http_url_rule);
  http.client.https_only = !is_http_in_the_clear(http.url);
  return config;
}

void check_http(const TargetConfig& target, const HttpTargetConfig& config, Findings& findings) {
  const HttpTargetOptions& http = config.options;
  const int line = target.line;
  if (!http.bearer_file.empty() && !http.basic_file.empty())
    findings.error(line, "target.basic_file", "cannot be used together with bearer_file; keep one of them");
  if (http.client.tls_cert.empty() != http.client.tls_key.empty())
    findings.error(line, http.client.tls_key.empty() ? "target.tls_key" : "target.tls_cert",
                   "is missing; tls_cert and tls_key go together");
  if (!http.proxy_login_file.empty() && http.client.proxy.empty())
    findings.error(line, "target.proxy_login_file", "says nothing without proxy");
  if (http.batch > 1 && http.body == HttpBody::raw)
    findings.error(line, "target.batch", "needs body = \"envelope\": raw bodies go one by one");
  for (const Header& header : http.headers) {
    if (equal_ignoring_case(header.name, http.key_header))
      findings.error(line, "target.headers", "names the header of the key, \"" + header.name + "\"");
  }
  if (http.client.window * http.batch > target.window)
    findings.warning(line, "target.window", "is less than in_flight times batch: fewer requests will go side by side");
}

}  // namespace holdfast
