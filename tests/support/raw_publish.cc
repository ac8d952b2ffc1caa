#include "tests/support/raw_publish.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace holdfast {

void publish_raw(int port, const std::string& subject, std::string_view head, std::string_view payload) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  std::string bytes = "CONNECT {\"verbose\":false,\"headers\":true}\r\nHPUB " + subject + ' ' +
                      std::to_string(head.size()) + ' ' + std::to_string(head.size() + payload.size()) + "\r\n";
  bytes.append(head).append(payload).append("\r\nPING\r\n");
  ASSERT_EQ(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  std::string said;
  char buffer[4096];
  for (ssize_t got = 0; said.find("PONG") == std::string::npos; said.append(buffer, static_cast<std::size_t>(got))) {
    got = ::recv(fd, buffer, sizeof buffer, 0);
    ASSERT_GT(got, 0) << "the server hung up: " << said;
  }
  ::close(fd);
}

}  // namespace holdfast
