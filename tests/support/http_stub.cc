#include "tests/support/http_stub.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "spool/ascii.h"
#include "spool/check.h"

namespace holdfast {
namespace {

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), ascii_lower);
  return text;
}

bool send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

// What has come on a connection and is not taken yet.
class Incoming {
 public:
  explicit Incoming(int fd) : fd_(fd) {}

  std::optional<StubRequest> request() {
    const std::optional<std::size_t> end = find("\r\n\r\n");
    if (!end) return std::nullopt;
    StubRequest request = read_head(bytes_.substr(0, *end));
    bytes_.erase(0, *end + 4);
    const std::string length = request.header("content-length");
    const std::size_t size = length.empty() ? 0 : std::stoul(length);
    while (bytes_.size() < size) {
      if (!more()) return std::nullopt;
    }
    request.body = bytes_.substr(0, size);
    bytes_.erase(0, size);
    return request;
  }

 private:
  bool more() {
    char some[65536];
    const ssize_t got = ::recv(fd_, some, sizeof some, 0);
    if (got > 0) bytes_.append(some, static_cast<std::size_t>(got));
    return got > 0;
  }
  std::optional<std::size_t> find(std::string_view what) {
    for (;;) {
      const std::size_t at = bytes_.find(what);
      if (at != std::string::npos) return at;
      if (!more()) return std::nullopt;
    }
  }
  static StubRequest read_head(const std::string& head) {
    StubRequest request;
    std::size_t at = head.find("\r\n");
    const std::string first = head.substr(0, at);
    request.method = first.substr(0, first.find(' '));
    const std::size_t path = first.find(' ') + 1;
    request.path = first.substr(path, first.rfind(' ') - path);
    while (at != std::string::npos) {
      const std::size_t begin = at + 2;
      at = head.find("\r\n", begin);
      const std::string line = head.substr(begin, at == std::string::npos ? at : at - begin);
      const std::size_t colon = line.find(':');
      if (colon == std::string::npos) continue;
      const std::size_t value = line.find_first_not_of(' ', colon + 1);
      request.headers[lower(line.substr(0, colon))] = value == std::string::npos ? "" : line.substr(value);
    }
    return request;
  }

  int fd_;
  std::string bytes_;
};

std::string head_of(const StubAnswer& answer, std::size_t length) {
  std::string head = fmt::format("HTTP/1.1 {} Said\r\n", answer.status);
  for (const auto& [name, value] : answer.headers) head += fmt::format("{}: {}\r\n", name, value);
  if (answer.status != 204) head += fmt::format("Content-Length: {}\r\n", length);
  return head + "\r\n";
}

}  // namespace

std::string StubRequest::header(const std::string& lower_case_name) const {
  const auto found = headers.find(lower_case_name);
  return found == headers.end() ? "" : found->second;
}

HttpStub::HttpStub() : HttpStub([](const StubRequest&) { return StubAnswer(); }) {}

HttpStub::HttpStub(Answer answer) : answer_(std::move(answer)) {
  start();
}

HttpStub::~HttpStub() {
  stop();
}

void HttpStub::answer_with(Answer answer) {
  const std::lock_guard lock(answering_);
  answer_ = std::move(answer);
}

std::string HttpStub::url(const std::string& path) const {
  return fmt::format("http://127.0.0.1:{}{}", port_, path);
}

void HttpStub::start() {
  stopping_ = false;
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  CHECK(::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0);
  sockaddr_in address{};
  socklen_t size = sizeof address;
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port_));
  CHECK(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), size) == 0);
  CHECK(::listen(listener_, 256) == 0);
  CHECK(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port_ = ntohs(address.sin_port);
  accepting_ = std::thread([this] { accept_all(); });
}

void HttpStub::stop() {
  std::vector<std::thread> serving;
  {
    const std::lock_guard lock(mutex_);
    if (listener_ < 0) return;
    stopping_ = true;
    changed_.notify_all();
    ::shutdown(listener_, SHUT_RDWR);
    for (const int fd : open_) ::shutdown(fd, SHUT_RDWR);
  }
  accepting_.join();
  {
    const std::lock_guard lock(mutex_);
    serving.swap(serving_);
  }
  for (std::thread& thread : serving) thread.join();
  ::close(listener_);
  listener_ = -1;
}

void HttpStub::accept_all() {
  for (;;) {
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const std::lock_guard lock(mutex_);
    if (stopping_ || fd < 0) {
      if (fd >= 0) ::close(fd);
      return;
    }
    const int yes = 1;
    (void)::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    ++connections_;
    open_.push_back(fd);
    serving_.emplace_back([this, fd] { serve(fd); });
  }
}

void HttpStub::serve(int fd) {
  Incoming incoming(fd);
  for (;;) {
    const std::optional<StubRequest> request = incoming.request();
    if (!request || !answer(fd, *request)) break;
  }
  const std::lock_guard lock(mutex_);
  std::erase(open_, fd);
  ::close(fd);
}

bool HttpStub::wait(Nanoseconds time) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, time, [&] { return stopping_; });
}

// False: the connection ends.
bool HttpStub::answer(int fd, const StubRequest& request) {
  StubAnswer said;
  {
    const std::lock_guard lock(answering_);
    ++requests_;
    said = answer_(request);
  }
  if (said.delay.count() > 0 && !wait(said.delay)) return false;
  constexpr auto kForEver = std::chrono::hours(1);
  const std::string head = head_of(said, said.body.size());
  switch (said.manner) {
    case Manner::whole:
      return send_all(fd, request.method == "HEAD" ? head : head + said.body);
    case Manner::close_unanswered:
      return false;
    case Manner::cut_in_head:
      send_all(fd, head.substr(0, head.size() / 2));
      return false;
    case Manner::cut_in_body:
      send_all(fd, head + said.body.substr(0, said.body.size() / 2));
      return false;
    case Manner::wrong_length:
      return send_all(fd, head_of(said, said.body.size() + 10) + said.body) && wait(kForEver);
    case Manner::hang:
      return wait(kForEver);
    case Manner::trickle:
      if (!send_all(fd, head_of(said, 1u << 20))) return false;
      while (wait(std::chrono::milliseconds(100)) && send_all(fd, "x")) {
      }
      return false;
    case Manner::endless:
      if (!send_all(fd, head_of(said, 1u << 30))) return false;
      while (send_all(fd, said.body)) {
      }
      return false;
    case Manner::no_http:
      send_all(fd, "220 mail.example ESMTP\r\n");
      return false;
  }
  return false;
}

}  // namespace holdfast
