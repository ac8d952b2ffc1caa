#include "forwarder/http_client.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>

#include "crypto/text.h"
#include "forwarder/file_stamp.h"
#include "spool/ascii.h"

namespace holdfast {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLook{250};  // the library is asked before that where it has something to do
constexpr std::size_t kMostHeaders = 100;
constexpr std::size_t kMostHeaderBytes = 64u << 10;
constexpr long kKeepAliveIdle = 30, kKeepAliveInterval = 15;  // seconds

Error interrupted() {
  return {ErrorKind::unavailable, "interrupted"};
}

long milliseconds_of(Nanoseconds time) {
  return static_cast<long>(std::max<std::int64_t>(1, std::chrono::duration_cast<milliseconds>(time).count()));
}

// Never taken back: other parts of the process may use the library too.
bool library_is_set_up() {
  static const bool is = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  return is;
}

bool is_sent(CURL* easy) {
  curl_off_t pretransfer = 0;
  return curl_easy_getinfo(easy, CURLINFO_PRETRANSFER_TIME_T, &pretransfer) != CURLE_OK || pretransfer > 0;
}

HttpFault fault_of(CURLcode code, bool sent) {
  switch (code) {
    case CURLE_OK:
      return HttpFault::none;
    case CURLE_URL_MALFORMAT:
      return HttpFault::refused;
    case CURLE_UNSUPPORTED_PROTOCOL:  // of the URL; or an answer that is no HTTP of this century
      return sent ? HttpFault::malformed : HttpFault::refused;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
      return HttpFault::resolve;
    case CURLE_COULDNT_CONNECT:
      return HttpFault::connect;
    case CURLE_OPERATION_TIMEDOUT:
      return sent ? HttpFault::timeout : HttpFault::connect;
    case CURLE_PROXY:
      return HttpFault::proxy;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CIPHER:
      return HttpFault::tls;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
      return HttpFault::certificate;
    case CURLE_SSL_CLIENTCERT:
      return HttpFault::own_identity;
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
      return HttpFault::file_unusable;
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_PARTIAL_FILE:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      return HttpFault::cut_off;
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
      return HttpFault::malformed;
    default:
      return HttpFault::other;
  }
}

// By its own framing: there can be no body, or as much as was announced is there.
bool body_is_whole(long status, const HttpResponse& response) {
  if (status == 204 || status == 304) return true;
  const auto length = response.header("Content-Length");
  return length && parse_decimal<std::uint64_t>(*length) == response.body.size();
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

// A peer that vanished is noticed by the kernel too, whatever the library thinks of the connection.
int bound_socket(void* limit, curl_socket_t socket, curlsocktype) {
  const auto most = static_cast<unsigned>(*static_cast<const long*>(limit));
  (void)::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &most, sizeof most);
  return CURL_SOCKOPT_OK;
}

// Options of one handle; what the library does not take is told at the end.
class Options {
 public:
  explicit Options(CURL* easy) : easy_(easy) {}
  template <typename Value>
  void set(CURLoption option, Value value) {
    good_ &= curl_easy_setopt(easy_, option, value) == CURLE_OK;
  }
  void text(CURLoption option, const std::string& value) {
    set(option, value.empty() ? static_cast<const char*>(nullptr) : value.c_str());
  }
  bool good() const { return good_; }

 private:
  CURL* easy_;
  bool good_ = true;
};

}  // namespace

struct HttpClient::Multi {
  CURLM* handle = curl_multi_init();
  Multi() = default;
  Multi(const Multi&) = delete;
  Multi& operator=(const Multi&) = delete;
  ~Multi() { curl_multi_cleanup(handle); }
};

struct HttpClient::Exchange {
  explicit Exchange(const HttpClientOptions& of) : options(of) {}
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange() {
    curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
    curl_slist_free_all(connect_to);
  }

  const HttpClientOptions& options;
  CURL* easy = curl_easy_init();
  curl_slist* headers = nullptr;
  curl_slist* connect_to = nullptr;
  long quiet_milliseconds = 0;
  std::size_t tag = 0;
  HttpResponse response;
  std::size_t header_bytes = 0;
  bool head_is_whole = false;
  bool seen_whole = false;  // at the last look
  bool too_large = false;

  bool set_up();
  bool ask(const HttpRequest& request);
  void end(CURLcode code);
  bool is_whole() const;
  bool take_header(std::string_view line);

  static std::size_t on_header(char* bytes, std::size_t, std::size_t size, void* exchange) {
    return static_cast<Exchange*>(exchange)->take_header({bytes, size}) ? size : 0;
  }
  static std::size_t on_body(char* bytes, std::size_t, std::size_t size, void* exchange) {
    auto& self = *static_cast<Exchange*>(exchange);
    self.too_large = size > self.options.response_bytes - self.response.body.size();
    if (self.too_large) return 0;
    self.response.body.append(bytes, size);
    return size;
  }

 private:
  void set_up_tls(Options& to);
};

// What is the same for every exchange.
bool HttpClient::Exchange::set_up() {
  if (easy == nullptr) return false;
  Options to(easy);
  const char* schemes = options.https_only ? "https" : "http,https";
  to.set(CURLOPT_PROTOCOLS_STR, schemes);
  to.set(CURLOPT_FOLLOWLOCATION, 0L);
  to.set(CURLOPT_NOSIGNAL, 1L);
  to.set(CURLOPT_QUICK_EXIT, 1L);  // a resolver that hangs is left behind
  to.set(CURLOPT_PATH_AS_IS, 1L);
  to.set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
  to.set(CURLOPT_PIPEWAIT, options.https_only ? 1L : 0L);  // one connection of HTTP/2 rather than many
  to.set(CURLOPT_CONNECTTIMEOUT_MS, milliseconds_of(options.connect_limit));
  to.set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  to.set(CURLOPT_LOW_SPEED_TIME, std::max(1L, milliseconds_of(options.deadline) / 1000));
  to.set(CURLOPT_TCP_KEEPALIVE, 1L);
  to.set(CURLOPT_TCP_KEEPIDLE, kKeepAliveIdle);
  to.set(CURLOPT_TCP_KEEPINTVL, kKeepAliveInterval);
  quiet_milliseconds = milliseconds_of(options.deadline);
  to.set(CURLOPT_SOCKOPTFUNCTION, &bound_socket);
  to.set(CURLOPT_SOCKOPTDATA, &quiet_milliseconds);
  to.text(CURLOPT_USERAGENT, options.user_agent);
  to.set(CURLOPT_PROXY, options.proxy.c_str());  // an empty one also shuts out that of the environment
  to.set(CURLOPT_NOPROXY, "");
  to.set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  for (const std::string& place : options.connect_to) connect_to = curl_slist_append(connect_to, place.c_str());
  to.set(CURLOPT_CONNECT_TO, connect_to);
  set_up_tls(to);
  to.set(CURLOPT_PRIVATE, this);
  to.set(CURLOPT_HEADERFUNCTION, &on_header);
  to.set(CURLOPT_HEADERDATA, this);
  to.set(CURLOPT_WRITEFUNCTION, &on_body);
  to.set(CURLOPT_WRITEDATA, this);
  return to.good();
}

void HttpClient::Exchange::set_up_tls(Options& to) {
  to.set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  to.set(CURLOPT_SSL_VERIFYPEER, 1L);
  to.set(CURLOPT_SSL_VERIFYHOST, 2L);
  if (!options.tls_ca.empty()) to.set(CURLOPT_CAINFO, options.tls_ca.c_str());
  to.text(CURLOPT_SSLCERT, options.tls_cert);
  to.text(CURLOPT_SSLKEY, options.tls_key);
}

bool HttpClient::Exchange::ask(const HttpRequest& request) {
  tag = request.tag;
  response = {};
  header_bytes = 0;
  head_is_whole = seen_whole = too_large = false;
  curl_slist_free_all(std::exchange(headers, nullptr));
  const auto append = [&](const std::string& line) {
    curl_slist* longer = curl_slist_append(headers, line.c_str());
    if (longer != nullptr) headers = longer;
    return longer != nullptr;
  };
  bool typed = false;
  for (const Header& header : request.headers) {
    if (!http_header_fits(header)) return false;
    typed |= equal_ignoring_case(header.name, "Content-Type");
    // The library takes "name:" for one that is to be left out.
    if (!append(header.value.empty() ? header.name + ";" : header.name + ": " + header.value)) return false;
  }
  if (!typed && !append("Content-Type:")) return false;
  if (!append("Expect:")) return false;  // the body goes at once: one way of a slow link less

  Options to(easy);
  const bool has_body = request.method == "POST" || request.method == "PUT" || request.method == "PATCH";
  to.set(CURLOPT_URL, request.url.c_str());
  to.set(CURLOPT_HTTPGET, 1L);
  to.set(CURLOPT_NOBODY, request.method == "HEAD" ? 1L : 0L);
  if (has_body) {
    to.set(CURLOPT_POST, 1L);
    to.set(CURLOPT_POSTFIELDS, request.body.empty() ? "" : reinterpret_cast<const char*>(request.body.data()));
    to.set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  }
  to.text(CURLOPT_PROXYUSERPWD, request.proxy_login);
  to.set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  to.set(CURLOPT_HTTPHEADER, headers);
  const Nanoseconds for_body =
      std::chrono::seconds(request.body.size() / std::max<std::size_t>(1, options.slowest_link));
  to.set(CURLOPT_TIMEOUT_MS, milliseconds_of(options.deadline + for_body));
  return to.good();
}

// Line by line, of every head that comes: only the last counts, and what follows the body is no header.
bool HttpClient::Exchange::take_header(std::string_view line) {
  if (!response.body.empty()) return true;
  if (line.starts_with("HTTP/")) {
    response.headers.clear();
    header_bytes = 0;
    head_is_whole = false;
    return true;
  }
  head_is_whole |= trimmed(line).empty();
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return true;
  header_bytes += line.size();
  too_large = header_bytes > kMostHeaderBytes || response.headers.size() >= kMostHeaders;
  if (too_large) return false;
  response.headers.push_back({std::string(line.substr(0, colon)), std::string(trimmed(line.substr(colon + 1)))});
  return true;
}

// All of the answer is there, whatever the library still waits for.
bool HttpClient::Exchange::is_whole() const {
  long status = 0;
  (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  return head_is_whole && status >= 200 && body_is_whole(status, response);
}

void HttpClient::Exchange::end(CURLcode code) {
  long status = 0, proxy_status = 0;
  (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  (void)curl_easy_getinfo(easy, CURLINFO_HTTP_CONNECTCODE, &proxy_status);
  response.may_have_arrived = is_sent(easy);
  response.fault = too_large ? HttpFault::too_large : fault_of(code, response.may_have_arrived);
  // What said 100 to 199 was about to answer. A head that ends in its middle is taken for a whole one by the library.
  const bool answered = response.may_have_arrived && status >= 200 && head_is_whole;
  if (answered) response.status = static_cast<int>(status);
  if (!answered && response.fault == HttpFault::none) response.fault = HttpFault::cut_off;
  // A server that has answered may end the stream without reading the rest of the request (RFC 9113, section 8.1). The
  // library calls that a failure.
  const bool ended_late = response.fault == HttpFault::cut_off || response.fault == HttpFault::timeout;
  if (answered && ended_late && body_is_whole(status, response)) response.fault = HttpFault::none;
  // A tunnel's own status is not the peer's.
  const bool tunnel_refused = code != CURLE_OK && proxy_status != 0 && proxy_status / 100 != 2;
  if (!tunnel_refused) return;
  response.fault = HttpFault::proxy;
  response.proxy_status = static_cast<int>(proxy_status);
  response.status = 0;
  response.may_have_arrived = false;
}

std::optional<std::string_view> HttpResponse::header(std::string_view name) const {
  const auto found =
      std::ranges::find_if(headers, [&](const Header& header) { return equal_ignoring_case(header.name, name); });
  if (found == headers.end()) return std::nullopt;
  return found->value;
}

HttpClient::HttpClient(HttpClientOptions options) : options_(std::move(options)) {}

HttpClient::~HttpClient() {
  abandon();
}

// The library keeps what it has read of the files, sessions of TLS and connections in the handle: a new one knows
// nothing of the old files.
Result<void> HttpClient::prepare() {
  if (!library_is_set_up()) return Error{ErrorKind::unavailable, "the HTTP library cannot be set up"};
  std::string stamps;
  for (const std::string* path : {&options_.tls_ca, &options_.tls_cert, &options_.tls_key}) {
    const FileStamp stamp = file_stamp(*path);
    stamps += fmt::format("{}.{}.{}.{}.{} ", stamp.device, stamp.inode, stamp.size, stamp.changed_ns, stamp.touched_ns);
  }
  if (multi_ && stamps == stamps_ && !suspect_) return {};
  idle_.clear();
  auto multi = std::make_unique<Multi>();
  if (multi->handle == nullptr) return Error{ErrorKind::unavailable, "out of memory for HTTP"};
  const auto window = static_cast<long>(options_.window);
  (void)curl_multi_setopt(multi->handle, CURLMOPT_MAX_HOST_CONNECTIONS, window);
  (void)curl_multi_setopt(multi->handle, CURLMOPT_MAXCONNECTS, window);
  (void)curl_multi_setopt(multi->handle, CURLMOPT_MAX_CONCURRENT_STREAMS, window);
  {
    const std::lock_guard lock(mutex_);
    multi_.swap(multi);
  }
  stamps_ = std::move(stamps);
  suspect_ = false;
  return {};
}

// False: the request cannot be made up.
Result<bool> HttpClient::start(const HttpRequest& request) {
  if (idle_.empty()) {
    idle_.push_back(std::make_unique<Exchange>(options_));
    if (!idle_.back()->set_up()) {
      idle_.pop_back();
      return Error{ErrorKind::unavailable, "the HTTP library does not take the settings"};
    }
  }
  Exchange& exchange = *idle_.back();
  if (!exchange.ask(request) || curl_multi_add_handle(multi_->handle, exchange.easy) != CURLM_OK) return false;
  going_.push_back(std::move(idle_.back()));
  idle_.pop_back();
  return true;
}

Result<void> HttpClient::fill(const Next& next, const Ended& ended) {
  while (going_.size() < options_.window) {
    const std::optional<HttpRequest> request = next();
    if (!request) return {};
    const Result<bool> started = start(*request);
    if (!started.ok()) return started.error();
    if (*started) continue;
    HttpResponse refused;
    refused.fault = HttpFault::refused;
    ended(request->tag, std::move(refused));
  }
  return {};
}

void HttpClient::hand_over(const Ended& ended) {
  int left = 0;
  while (CURLMsg* message = curl_multi_info_read(multi_->handle, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;
    const auto at = std::ranges::find_if(going_, [&](const auto& one) { return one->easy == message->easy_handle; });
    finish(static_cast<std::size_t>(at - going_.begin()), code, ended);
    suspect_ |= code == CURLE_OPERATION_TIMEDOUT;
  }
}

void HttpClient::finish(std::size_t place, int code, const Ended& ended) {
  std::unique_ptr<Exchange> exchange = std::move(going_[place]);
  going_.erase(going_.begin() + static_cast<std::ptrdiff_t>(place));
  exchange->end(static_cast<CURLcode>(code));
  (void)curl_multi_remove_handle(multi_->handle, exchange->easy);
  ended(exchange->tag, std::move(exchange->response));
  idle_.push_back(std::move(exchange));
}

// libcurl 7.88 sometimes misses the end of a stream of HTTP/2 that the server ended without reading the whole request,
// and would wait for the deadline. What was whole at the last look and has not ended since is ended here.
void HttpClient::end_what_is_whole(const Ended& ended) {
  const auto now = std::chrono::steady_clock::now();
  if (now - looked_at_ < kLook) return;
  looked_at_ = now;
  for (std::size_t place = going_.size(); place-- > 0;) {
    Exchange& one = *going_[place];
    if (one.is_whole() && std::exchange(one.seen_whole, true)) finish(place, CURLE_OK, ended);
  }
}

// Their connections go with them, but for those of HTTP/2: whether these are well is not known.
void HttpClient::abandon() {
  suspect_ |= !going_.empty();
  for (const auto& exchange : going_) (void)curl_multi_remove_handle(multi_->handle, exchange->easy);
  going_.clear();
}

Result<void> HttpClient::carry(const Next& next, const Ended& ended) {
  if (interrupted_.exchange(false)) return interrupted();
  HOLDFAST_TRY(prepare());
  Result<void> result = fill(next, ended);
  while (result.ok() && !going_.empty()) {
    int running = 0;
    const bool moved = curl_multi_perform(multi_->handle, &running) == CURLM_OK;
    hand_over(ended);
    end_what_is_whole(ended);
    if (!moved) result = Error{ErrorKind::unavailable, "the HTTP library failed"};
    if (result.ok() && interrupted_.exchange(false)) result = interrupted();
    if (result.ok()) result = fill(next, ended);
    if (!result.ok() || going_.empty()) break;
    if (static_cast<std::size_t>(running) < going_.size()) continue;  // a new one has not begun yet
    (void)curl_multi_poll(multi_->handle, nullptr, 0, static_cast<int>(kLook.count()), nullptr);
  }
  abandon();
  return result;
}

Result<HttpResponse> HttpClient::exchange(HttpRequest request) {
  std::optional<HttpRequest> only = std::move(request);
  HttpResponse response;
  HOLDFAST_TRY(carry([&] { return std::exchange(only, std::nullopt); },
                     [&](std::size_t, HttpResponse ended) { response = std::move(ended); }));
  return response;
}

void HttpClient::interrupt() {
  const std::lock_guard lock(mutex_);
  interrupted_ = true;
  if (multi_) (void)curl_multi_wakeup(multi_->handle);
}

bool is_http_token_character(char c) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return (c >= '0' && c <= '9') || (ascii_lower(c) >= 'a' && ascii_lower(c) <= 'z') ||
         kMarks.find(c) != std::string_view::npos;
}

bool http_header_fits(const Header& header) {
  if (header.name.empty() || !std::ranges::all_of(header.name, is_http_token_character)) return false;
  const auto is_control = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
  };
  if (std::ranges::any_of(header.value, is_control)) return false;
  return header.value.empty() || (header.value.front() != ' ' && header.value.back() != ' ');
}

const char* http_fault_text(HttpFault fault) {
  constexpr const char* kTexts[] = {
      "none",
      "the request could not be made up",
      "no address is known under its name",
      "no connection",
      "the proxy refused",
      "no TLS handshake",
      "its certificate cannot be believed",
      "it does not take our certificate",
      "file_unusable: a file of TLS cannot be used",
      "no whole response in time",
      "the connection ended before the response",
      "its response is too large",
      "its response is no HTTP",
      "the exchange failed",
  };
  return kTexts[static_cast<std::size_t>(fault)];
}

}  // namespace holdfast
