#include "tests/support/connect_proxy.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "crypto/text.h"
#include "spool/check.h"

namespace holdfast {
namespace {

constexpr int kLookMilliseconds = 10;  // between two looks at whether to go on

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

bool is_readable(int fd) {
  pollfd watched{fd, POLLIN, 0};
  return ::poll(&watched, 1, kLookMilliseconds) > 0;
}

void send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

}  // namespace

ConnectProxy::ConnectProxy(int to_port, std::string login) : to_port_(to_port), login_(std::move(login)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  CHECK(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), size) == 0);
  CHECK(::listen(listener_, 64) == 0);
  CHECK(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port_ = ntohs(address.sin_port);
  accepting_ = std::thread([this] { accept_all(); });
}

ConnectProxy::~ConnectProxy() {
  stop_ = true;
  accepting_.join();
  for (std::thread& thread : serving_) thread.join();
  ::close(listener_);
}

std::string ConnectProxy::url() const {
  return fmt::format("http://127.0.0.1:{}", port_);
}

void ConnectProxy::accept_all() {
  while (!stop_) {
    if (!is_readable(listener_)) continue;
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client >= 0) serving_.emplace_back([this, client] { serve(client); });
  }
}

void ConnectProxy::serve(int client) {
  std::string head;
  while (!stop_ && head.find("\r\n\r\n") == std::string::npos) {
    if (!is_readable(client)) continue;
    char byte = 0;  // one by one: what follows the head is the tunnel's
    if (::recv(client, &byte, 1, 0) != 1) break;
    head.push_back(byte);
  }
  const bool asks = head.starts_with("CONNECT ");
  const bool may = login_.empty() || head.find("Basic " + to_base64(as_bytes(login_))) != std::string::npos;
  if (asks && !may) {
    send_all(client, "HTTP/1.1 407 Login\r\nProxy-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n");
  }
  if (asks && may) {
    const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = loopback(to_port_);
    if (::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      send_all(client, "HTTP/1.1 200 Go on\r\n\r\n");
      ++tunnels_;
      carry(client, server);
    } else {
      send_all(client, "HTTP/1.1 502 Nobody there\r\nContent-Length: 0\r\n\r\n");
    }
    ::close(server);
  }
  ::close(client);
}

void ConnectProxy::carry(int client, int server) {
  while (!stop_) {
    pollfd watched[2] = {{client, POLLIN, 0}, {server, POLLIN, 0}};
    ::poll(watched, 2, kLookMilliseconds);
    for (const auto& [from, to, at] : {std::tuple(client, server, 0), std::tuple(server, client, 1)}) {
      if (watched[at].revents == 0) continue;
      char bytes[65536];
      const ssize_t got = ::recv(from, bytes, sizeof bytes, MSG_DONTWAIT);
      if (got <= 0) return;
      if (!swallowing_) send_all(to, {bytes, static_cast<std::size_t>(got)});
    }
  }
}

}  // namespace holdfast
