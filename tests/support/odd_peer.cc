#include "tests/support/odd_peer.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

#include "spool/check.h"

namespace holdfast {

std::string info_line(const std::string& more) {
  return fmt::format(
      "INFO {{\"server_id\":\"ODD\",\"version\":\"2.9.10\",\"proto\":1,\"host\":\"127.0.0.1\",\"port\":4222,"
      "{}\"headers\":true,\"max_payload\":1048576,\"client_id\":7}}\r\n",
      more);
}

OddPeer::OddPeer(std::string greeting, Manner manner) : greeting_(std::move(greeting)), manner_(manner) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  socklen_t size = sizeof address;
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), size) == 0);
  CHECK(::listen(listener_, 16) == 0);
  CHECK(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { serve(); });
}

OddPeer::~OddPeer() {
  stop_ = true;
  thread_.join();
  ::close(listener_);
}

std::string OddPeer::url(const std::string& scheme) const {
  return fmt::format("{}://127.0.0.1:{}", scheme, port_);
}

void OddPeer::serve() {
  constexpr int kLookMilliseconds = 10;
  std::vector<pollfd> watched{{listener_, POLLIN, 0}};
  while (!stop_) {
    ::poll(watched.data(), watched.size(), kLookMilliseconds);
    for (std::size_t i = 1; i < watched.size(); ++i) {
      char ignored[4096];
      const bool readable = (watched[i].revents & (POLLIN | POLLHUP)) != 0;
      if (readable && ::recv(watched[i].fd, ignored, sizeof ignored, MSG_DONTWAIT) == 0) watched[i].events = 0;
    }
    if ((watched[0].revents & POLLIN) == 0) continue;
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    (void)!::send(fd, greeting_.data(), greeting_.size(), MSG_NOSIGNAL);
    ++accepted_;
    const short events = manner_ == Manner::reads_and_keeps_silent ? POLLIN : 0;
    if (manner_ == Manner::hangs_up) {
      ::close(fd);
    } else {
      watched.push_back({fd, events, 0});
    }
  }
  for (std::size_t i = 1; i < watched.size(); ++i) ::close(watched[i].fd);
}

}  // namespace holdfast
