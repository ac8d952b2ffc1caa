#include "forwarder/http_readback.h"

#include "forwarder/http_url.h"

namespace holdfast {
namespace {

std::string escaped(std::string_view key) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  constexpr std::string_view kPlain = "-._~";
  std::string text;
  for (const char c : key) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       kPlain.find(c) != std::string_view::npos;
    if (plain) {
      text.push_back(c);
    } else {
      text.push_back('%');
      text.push_back(kDigits[byte >> 4]);
      text.push_back(kDigits[byte & 0xf]);
    }
  }
  return text;
}

class HttpReadback : public Readback {
 public:
  HttpReadback(std::string url, const HttpTargetOptions& target)
      : url_(std::move(url)),
        credentials_(target.bearer_file, target.basic_file, target.proxy_login_file),
        client_(target.client) {}

  Result<std::vector<Held>> look(std::span<const Delivery> records) override {
    std::vector<Held> held(records.size());
    bool all = true;
    HOLDFAST_TRY(ask("GET", records, [&](std::size_t place, const HttpResponse& response) {
      const auto said = response.status == 200 ? parse_held(response.body) : std::nullopt;
      if (said) held[place] = *said;
      all &= said.has_value();
    }));
    if (!all) return Error{ErrorKind::unavailable, "verify_url does not say how many copies there are"};
    return held;
  }

  Result<void> remove(std::span<const Delivery> records) override {
    bool all = true;
    HOLDFAST_TRY(ask("DELETE", records, [&](std::size_t, const HttpResponse& response) {
      all &= response.status / 100 == 2 || response.status == 404;
    }));
    if (!all) return Error{ErrorKind::unavailable, "verify_url does not take records out"};
    return {};
  }

 private:
  Result<void> ask(const char* method, std::span<const Delivery> records, const HttpClient::Ended& answered) {
    const auto secrets = credentials_.read();
    if (!secrets.ok()) return secrets.error();
    bool failed = false;
    std::size_t next = 0;
    HOLDFAST_TRY(client_.carry(
        [&]() -> std::optional<HttpRequest> {
          if (failed || next == records.size()) return std::nullopt;
          HttpRequest request;
          request.tag = next;
          request.method = method;
          const char* joint = url_.find('?') == std::string::npos ? "?key=" : "&key=";
          request.url = url_ + joint + escaped(records[next++].wire_key);
          request.headers = secrets->headers;
          request.proxy_login = secrets->proxy_login;
          return request;
        },
        [&](std::size_t place, HttpResponse response) {
          failed |= response.fault != HttpFault::none;
          if (response.fault == HttpFault::none) answered(place, std::move(response));
        }));
    if (failed) return Error{ErrorKind::unavailable, "verify_url does not answer"};
    return {};
  }

  const std::string url_;
  HttpCredentials credentials_;
  HttpClient client_;
};

}  // namespace

std::unique_ptr<Readback> make_http_readback(std::string verify_url, const HttpTargetOptions& target) {
  HttpTargetOptions options = target;
  options.client.https_only = !is_http_in_the_clear(verify_url);
  return std::make_unique<HttpReadback>(std::move(verify_url), options);
}

}  // namespace holdfast
