// An HTTP endpoint as a target: each record is a request to one URL, under its key (http_request.h has the contract,
// http_verdict.h what an answer means).
//
// `delivered` means that the endpoint has answered for that very record with a status that counts as success, and with
// all of what was expected; in batches, that its verdict names the record. Requests go side by side, in no order. A
// batch that is refused as a whole for its content is cut in halves, so that one bad record is found and the others go.
//
// What says something about the target and not about a record ends the delivery: what was not sent yet waits with it.
// Credentials, certificates and keys are read again when their files were renewed.
//
// Errors are `unavailable`. Threads: as Target.
#pragma once

#include <string>
#include <vector>

#include "forwarder/http_client.h"
#include "forwarder/http_credentials.h"
#include "forwarder/http_request.h"
#include "forwarder/http_verdict.h"
#include "forwarder/target.h"

namespace holdfast {

struct HttpTargetOptions {
  std::string site;
  std::string url;
  std::string method = "POST";
  std::string key_header = "Idempotency-Key";
  HttpBody body = HttpBody::raw;
  std::string content_type = "application/octet-stream";  // of raw bodies
  std::vector<Header> headers;                            // with every request
  HttpExpect expect;
  std::size_t batch = 1;         // records in a request; above 1 they are lines of the envelope
  std::string bearer_file;       // a token
  std::string basic_file;        // "user:password"
  std::string proxy_login_file;  // likewise
  HttpClientOptions client;
};

class HttpTarget : public Target {
 public:
  explicit HttpTarget(HttpTargetOptions options);

  Result<void> deliver(std::span<const Delivery> window, const Report& report) override;
  // Ends the delivery in progress, or the next one if there is none.
  void interrupt() override { client_.interrupt(); }

 private:
  class Round;  // one deliver

  const HttpTargetOptions options_;
  HttpCredentials credentials_;
  HttpClient client_;
};

}  // namespace holdfast
