#include "tests/support/nats_relay.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "spool/check.h"

namespace holdfast {
namespace {

constexpr int kLookMilliseconds = 5;         // between two looks at what the callers want
constexpr std::size_t kMostOut = 16u << 20;  // of one way; then it is not read from

int open_socket(int family) {
  const int fd = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK(fd >= 0);
  return fd;
}

// Connected to a port of the loopback by its other name, ::ffff:127.0.0.1: a connection of forwarder/nats_connection in
// this process finds its socket by the server's address (own_socket.h), and must not take this one for its own.
int connect_to(int port) {
  const int fd = open_socket(AF_INET6);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  CHECK(::inet_pton(AF_INET6, "::ffff:127.0.0.1", &address.sin6_addr) == 1);
  address.sin6_port = htons(static_cast<std::uint16_t>(port));
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
  ::close(fd);
  return -1;
}

}  // namespace

NatsRelay::NatsRelay(int server_port) : server_port_(server_port), listener_(open_socket(AF_INET)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  CHECK(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), size) == 0);
  CHECK(::listen(listener_, 16) == 0);
  CHECK(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port_ = ntohs(address.sin_port);
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

NatsRelay::~NatsRelay() {
  thread_.request_stop();
  thread_.join();
  for (Link& link : links_) link.over = true;
  close_what_is_over();
  ::close(listener_);
}

std::string NatsRelay::url() const {
  return fmt::format("nats://127.0.0.1:{}", port_);
}

void NatsRelay::drop_acks(bool drop) {
  const std::lock_guard lock(mutex_);
  dropping_ = drop;
}

void NatsRelay::hold_at_ack() {
  const std::lock_guard lock(mutex_);
  hold_next_ack_ = true;
}

bool NatsRelay::holding() const {
  const std::lock_guard lock(mutex_);
  return holding_;
}

RelayCounts NatsRelay::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

// Shut down here, so that it is done when this returns; closed by the thread, which may be waiting on the descriptors.
void NatsRelay::cut() {
  const std::lock_guard lock(mutex_);
  for (Link& link : links_) {
    link.over = true;
    ::shutdown(link.client, SHUT_RDWR);
    ::shutdown(link.server, SHUT_RDWR);
  }
  hold_next_ack_ = holding_ = false;
}

void NatsRelay::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::vector<pollfd> watched{{listener_, POLLIN, 0}};
    {
      const std::lock_guard lock(mutex_);
      for (const Link& link : links_) {
        for (const auto& [way, other] : {std::pair(&link.up, &link.down), std::pair(&link.down, &link.up)}) {
          short events = !holding_ && way->out.size() < kMostOut ? POLLIN : 0;
          if (!other->out.empty()) events |= POLLOUT;
          // One that is held is not even listened to: its end would wake us again and again.
          watched.push_back({events == 0 ? -1 : way->from, events, 0});
        }
      }
    }
    ::poll(watched.data(), watched.size(), kLookMilliseconds);
    if ((watched[0].revents & POLLIN) != 0) accept_one();
    const std::lock_guard lock(mutex_);
    for (Link& link : links_) {
      if (!link.over && (!carry(link.up) || !carry(link.down))) link.over = true;
    }
    close_what_is_over();
  }
}

void NatsRelay::accept_one() {
  const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  const int server = connect_to(server_port_);
  if (server < 0) {
    ::close(client);
    return;
  }
  const std::lock_guard lock(mutex_);
  links_.push_back({client, server, {client, server}, {server, client}});
}

// What is there, as far as it may pass. False: one of the two has hung up.
bool NatsRelay::carry(Way& way) {
  char bytes[1u << 16];
  while (!holding_ && way.out.size() < kMostOut) {
    const ssize_t got = ::recv(way.from, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
      (void)send(way);  // the last words
      return false;
    }
    if (got < 0) break;
    way.frames.add({bytes, static_cast<std::size_t>(got)});
    sort(way);
  }
  return send(way);
}

void NatsRelay::sort(Way& way) {
  while (!holding_) {
    const auto frame = way.frames.first();
    if (!frame) return;
    if (frame->is_ack()) {
      if (std::exchange(hold_next_ack_, false)) {
        holding_ = true;
        return;
      }
      ++(dropping_ ? counts_.acks_dropped : counts_.acks_passed);
    }
    if (frame->is_delivery()) ++way.deliveries;
    if (!frame->is_ack() || !dropping_) way.out.append(frame->bytes);
    way.frames.drop_first();
  }
}

bool NatsRelay::send(Way& way) {
  while (!way.out.empty()) {
    const ssize_t sent = ::send(way.to, way.out.data(), way.out.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    way.out.erase(0, static_cast<std::size_t>(sent));
  }
  counts_.delivered += std::exchange(way.deliveries, 0);
  return true;
}

void NatsRelay::close_what_is_over() {
  std::erase_if(links_, [](const Link& link) {
    if (!link.over) return false;
    ::close(link.client);
    ::close(link.server);
    return true;
  });
}

}  // namespace holdfast
