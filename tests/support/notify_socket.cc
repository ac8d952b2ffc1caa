#include "tests/support/notify_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <string_view>

#include "spool/check.h"

namespace holdfast {

NotifySocket::NotifySocket() : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  CHECK(socket_ >= 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  CHECK(path().size() < sizeof address.sun_path);
  std::memcpy(address.sun_path, path().c_str(), path().size());
  CHECK(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
}

NotifySocket::~NotifySocket() {
  ::close(socket_);
}

bool NotifySocket::hears(const std::string& line, Nanoseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd ready{socket_, POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(left.count())) <= 0) continue;
    std::array<char, 4096> bytes{};
    const ssize_t got = ::recv(socket_, bytes.data(), bytes.size(), 0);
    const std::string text(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (("\n" + text + "\n").find("\n" + line + "\n") != std::string::npos) return true;
  }
}

}  // namespace holdfast
