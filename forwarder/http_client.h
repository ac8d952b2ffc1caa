// HTTP exchanges, a window of them at a time: the only door to libcurl, plain values in and out.
//
// carry() keeps up to `window` exchanges going until the caller has no more, and hands over each as it ends.
// Connections are kept from one call to the next; HTTP/2 is used where a TLS peer offers it. Redirects are answers like
// any other and never followed. Nothing of the environment (proxies, .netrc) has a say. What a file of TLS holds is
// read for every new connection, and a file that was changed since brings new connections with the next carry().
//
// Every wait is bounded: connecting by connect_limit, an exchange by its deadline, which grows with the body so that a
// slow link can still carry a large one; one on which nothing moves for `deadline` ends too. Names are resolved on
// threads of the library's, which an interruption leaves behind. A connection that timed out is not used again.
//
// An exchange that failed says how, and whether the peer may have seen any of the request. `status` is what the peer
// said even where its body never came whole. libcurl sends a request once more by itself when a kept connection turns
// out to be closed: what may not be repeated must not go this way.
//
// Threads: one at a time calls carry; interrupt() comes from any, at any time. Nothing is logged, and no error holds a
// peer's words.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spool/clock.h"
#include "spool/envelope.h"
#include "spool/result.h"

namespace holdfast {

struct HttpClientOptions {
  std::size_t window = 32;  // exchanges, and connections, at once
  bool https_only = true;
  Nanoseconds connect_limit = std::chrono::seconds(10);  // name, connection, TLS
  Nanoseconds deadline = std::chrono::seconds(60);       // of an exchange, waiting for a connection included
  std::size_t slowest_link = 4096;        // bytes a second: each so many of a body add a second to its deadline
  std::size_t response_bytes = 1u << 20;  // of a body; more is too_large
  std::string tls_ca;                     // PEM; none: the system's
  std::string tls_cert;                   // PEM, with its chain
  std::string tls_key;                    // PEM, not encrypted
  std::string proxy;                      // http://host:port, https://, socks5h://; none: straight
  std::vector<std::string> connect_to;    // "host:port:other:port": goes there, names and certificates stay as they are
  std::string user_agent = "holdfast";
};

struct HttpRequest {
  std::size_t tag = 0;  // the caller's, handed back
  std::string method = "GET";
  std::string url;
  std::vector<Header> headers;   // names and values that http_header_fits
  ByteView body = {};            // lives until the exchange has ended
  std::string proxy_login = {};  // "user:password" for the proxy; a secret
};

enum class HttpFault : std::uint8_t {
  none,           // a whole response
  refused,        // not sent: its URL or scheme is not allowed, or it could not be made up
  resolve,        // no address under the name, of peer or proxy
  connect,        // no connection within the limit
  proxy,          // the proxy did not let it through; its status is in proxy_status
  tls,            // no handshake
  certificate,    // the peer's certificate is expired, of another name, or of an issuer that is not trusted
  own_identity,   // the peer does not take our certificate
  file_unusable,  // a file of TLS cannot be read, or is no such
  timeout,        // the deadline, or nothing moved
  cut_off,        // the connection ended before the response did
  too_large,      // the response is above its bound
  malformed,      // not HTTP, or against it
  other,
};
const char* http_fault_text(HttpFault fault);

struct HttpResponse {
  HttpFault fault = HttpFault::none;
  bool may_have_arrived = false;  // anything of the request
  int status = 0;                 // of the response's head; 0: none came
  int proxy_status = 0;           // of a proxy that refused
  std::vector<Header> headers;    // of the final response, bounded
  std::string body;               // as much as came, bounded

  std::optional<std::string_view> header(std::string_view name) const;  // the first, without regard to case
};

class HttpClient {
 public:
  // Nothing happens before the first carry.
  explicit HttpClient(HttpClientOptions options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // The next request; nothing: none for now. Asked again whenever an exchange has ended; when none is going and there
  // is no other, carry is over.
  using Next = std::function<std::optional<HttpRequest>()>;
  using Ended = std::function<void(std::size_t tag, HttpResponse response)>;
  // `unavailable` when interrupted, or when the library could not be set up: those that had not ended by then are
  // given up, and may have arrived.
  Result<void> carry(const Next& next, const Ended& ended);
  // One exchange.
  Result<HttpResponse> exchange(HttpRequest request);

  // Ends the carry in progress, or the next one if there is none.
  void interrupt();

 private:
  struct Multi;     // the library's handle and its connections
  struct Exchange;  // one, and its handle, used again
  Result<void> prepare();
  Result<bool> start(const HttpRequest& request);
  Result<void> fill(const Next& next, const Ended& ended);
  void hand_over(const Ended& ended);
  void finish(std::size_t place, int code, const Ended& ended);
  void end_what_is_whole(const Ended& ended);
  void abandon();

  const HttpClientOptions options_;
  std::vector<std::unique_ptr<Exchange>> idle_;
  std::vector<std::unique_ptr<Exchange>> going_;
  std::string stamps_;                                 // of the files, when the connections were begun
  bool suspect_ = false;                               // a connection timed out
  std::chrono::steady_clock::time_point looked_at_{};  // at what should have ended
  std::atomic<bool> interrupted_ = false;

  std::mutex mutex_;  // of the handle itself: interrupt() uses it
  std::unique_ptr<Multi> multi_;
};

// Whether a header can be sent as it is (RFC 9110, section 5): a token for a name; no control character, and no space
// at either end, in a value.
bool is_http_token_character(char c);
bool http_header_fits(const Header& header);

}  // namespace holdfast
