#include "tests/support/tcp_relay.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "spool/check.h"

namespace holdfast {
namespace {

constexpr int kLookMilliseconds = 2;         // between two looks at what the callers want
constexpr std::size_t kMostOut = 16u << 20;  // of one way; then it is not read from

int open_socket() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK(fd >= 0);
  return fd;
}

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

// False: the peer has hung up.
bool take(int from, std::string& into) {
  char bytes[1u << 16];
  while (into.size() < kMostOut) {
    const ssize_t got = ::recv(from, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
    into.append(bytes, static_cast<std::size_t>(got));
  }
  return true;
}

bool give(int to, std::string& from) {
  while (!from.empty()) {
    const ssize_t sent = ::send(to, from.data(), from.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    from.erase(0, static_cast<std::size_t>(sent));
  }
  return true;
}

}  // namespace

TcpRelay::TcpRelay(int server_port) : server_port_(server_port), listener_(open_socket()) {
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  CHECK(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), size) == 0);
  CHECK(::listen(listener_, 64) == 0);
  CHECK(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port_ = ntohs(address.sin_port);
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

TcpRelay::~TcpRelay() {
  thread_.request_stop();
  thread_.join();
  for (const Link& link : links_) {
    ::close(link.client);
    ::close(link.server);
  }
  ::close(listener_);
}

void TcpRelay::refuse(bool refusing) {
  const std::lock_guard lock(mutex_);
  refusing_ = refusing;
  if (refusing) end_all();
}

void TcpRelay::swallow(bool swallowing) {
  const std::lock_guard lock(mutex_);
  swallowing_ = swallowing;
}

void TcpRelay::hold_answer_to(std::string word) {
  const std::lock_guard lock(mutex_);
  word_ = std::move(word);
  holding_ = false;
}

bool TcpRelay::holding() const {
  const std::lock_guard lock(mutex_);
  return holding_;
}

void TcpRelay::cut() {
  const std::lock_guard lock(mutex_);
  end_all();
  holding_ = false;
  word_.clear();
}

// Shut down here, so that it is done when the caller returns; closed by the thread, which may be waiting on them.
void TcpRelay::end_all() {
  for (Link& link : links_) {
    link.over = true;
    ::shutdown(link.client, SHUT_RDWR);
    ::shutdown(link.server, SHUT_RDWR);
  }
}

void TcpRelay::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::vector<pollfd> watched{{listener_, POLLIN, 0}};
    {
      const std::lock_guard lock(mutex_);
      for (const Link& link : links_) {
        if (swallowing_) continue;
        watched.push_back({link.client, static_cast<short>(POLLIN | (link.down.empty() ? 0 : POLLOUT)), 0});
        watched.push_back({link.server, static_cast<short>(POLLIN | (link.up.empty() ? 0 : POLLOUT)), 0});
      }
    }
    ::poll(watched.data(), watched.size(), kLookMilliseconds);
    if ((watched[0].revents & POLLIN) != 0) accept_one();
    const std::lock_guard lock(mutex_);
    for (Link& link : links_) {
      if (!link.over && (!carry_up(link) || !carry_down(link))) link.over = true;
    }
    std::erase_if(links_, [](const Link& link) {
      if (!link.over) return false;
      ::close(link.client);
      ::close(link.server);
      return true;
    });
  }
}

void TcpRelay::accept_one() {
  const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  const std::lock_guard lock(mutex_);
  const int server = open_socket();
  const sockaddr_in address = loopback(server_port_);
  if (refusing_ || ::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    ::close(client);
    ::close(server);
    return;
  }
  links_.push_back({client, server});
}

bool TcpRelay::carry_up(Link& link) {
  if (swallowing_) return true;
  const bool open = take(link.client, link.up);
  if (!word_.empty() && link.up.find(word_) != std::string::npos) {
    link.deaf = true;
    word_.clear();
  }
  return give(link.server, link.up) && open;
}

bool TcpRelay::carry_down(Link& link) {
  if (swallowing_) return true;
  const bool open = take(link.server, link.down);
  if (link.deaf) {
    holding_ = holding_ || !link.down.empty();
    link.down.clear();
    return true;
  }
  return give(link.client, link.down) && open;
}

}  // namespace holdfast
