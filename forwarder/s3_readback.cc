// What a bucket holds of given records: for certification.
#include <optional>

#include "forwarder/http_client.h"
#include "forwarder/s3_error.h"
#include "forwarder/s3_target.h"

namespace holdfast {
namespace {

constexpr std::size_t kMostRead = 256u << 20;  // of one object

class S3Readback : public Readback {
 public:
  explicit S3Readback(S3TargetOptions options)
      : options_(std::move(options)),
        credentials_(options_.credentials_file, options_.profile),
        proxy_login_(options_.proxy_login_file),
        bucket_(options_.place, *options_.clock),
        client_(client_options()) {}

  Result<std::vector<Held>> look(std::span<const Delivery> records) override {
    std::vector<Held> held;
    for (const Delivery& record : records) {
      const S3Object object = s3_object(record, options_.naming);
      const Result<HttpResponse> found = ask("GET", object.key);
      if (!found.ok()) return found.error();
      if (found->status == 404 && is_of_key(*found)) {
        held.push_back({});
        continue;
      }
      if (found->status != 200) return refused(*found);
      const S3Likeness likeness = s3_likeness(object, *found);
      const bool told = likeness == S3Likeness::same_try || likeness == S3Likeness::same_content;
      held.push_back({1, told && found->body == as_text(object.content)});
    }
    return held;
  }

  Result<void> remove(std::span<const Delivery> records) override {
    for (const Delivery& record : records) {
      const Result<HttpResponse> gone = ask("DELETE", s3_object(record, options_.naming).key);
      if (!gone.ok()) return gone.error();
      const bool is_gone = gone->status / 100 == 2 || (gone->status == 404 && is_of_key(*gone));
      if (!is_gone) return refused(*gone);
    }
    return {};
  }

 private:
  HttpClientOptions client_options() const {
    HttpClientOptions client = options_.client;
    client.response_bytes = kMostRead;
    return client;
  }

  // "No such bucket" says nothing of an object.
  static bool is_of_key(const HttpResponse& response) { return s3_error_code(response.body) == "NoSuchKey"; }

  static Error refused(const HttpResponse& response) {
    return {ErrorKind::unavailable, "the object store answers with status " + std::to_string(response.status)};
  }

  Result<HttpResponse> ask(const char* method, const std::string& key) {
    HOLDFAST_TRY(credentials_.refresh());
    std::string proxy_login;
    if (proxy_login_.is_named()) {
      const auto login = proxy_login_.read();
      if (!login.ok()) return login.error();
      proxy_login = std::string(*login);
    }
    Result<HttpResponse> response = ask_once(method, key, proxy_login);
    const bool other_clock = response.ok() && response->status / 100 == 4 && bucket_.learn_time(*response);
    if (other_clock) response = ask_once(method, key, proxy_login);
    if (response.ok() && response->fault != HttpFault::none) {
      return Error{ErrorKind::unavailable, http_fault_text(response->fault)};
    }
    return response;
  }

  Result<HttpResponse> ask_once(const char* method, const std::string& key, const std::string& proxy_login) {
    HttpRequest request = bucket_.request(method, key, credentials_.credentials());
    request.proxy_login = proxy_login;
    return client_.exchange(std::move(request));
  }

  const S3TargetOptions options_;
  S3CredentialsFile credentials_;
  SecretFile proxy_login_;
  S3Bucket bucket_;
  HttpClient client_;
};

}  // namespace

std::unique_ptr<Readback> make_s3_readback(S3TargetOptions options) {
  return std::make_unique<S3Readback>(std::move(options));
}

}  // namespace holdfast
