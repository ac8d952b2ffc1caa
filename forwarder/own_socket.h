// Sockets of this process found by whom they are connected to: for a client library that does not tell its socket, so
// that a connection can be ended from outside when the library hangs in it.
//
// A socket is held by a duplicate of its descriptor, so that it stays the same socket whatever the library does with
// its own; and a held one is never found again. Threads: any.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

namespace holdfast {

struct PeerAddress {
  sockaddr_storage address{};
  socklen_t size = 0;
};

class HeldSocket {
 public:
  HeldSocket() = default;
  HeldSocket(HeldSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  HeldSocket& operator=(HeldSocket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~HeldSocket();

  explicit operator bool() const { return fd_ >= 0; }
  // Ends the connection: whoever reads or writes it returns at once.
  void shut_down() const;
  bool connected() const;
  // Bytes sent and acknowledged by the peer's machine since the connection was made.
  std::uint64_t bytes_acknowledged() const;
  // The kernel ends the connection when the peer took nothing of what was sent for so long.
  void give_up_after(std::chrono::milliseconds unacknowledged) const;
  // The peer has said that nothing more comes, or the connection has failed.
  bool ended() const;

 private:
  friend HeldSocket hold_socket_to(const PeerAddress& peer);
  friend HeldSocket hold_socket(int fd);
  explicit HeldSocket(int fd) : fd_(fd) {}
  int fd_ = -1;
};

// The socket connected to `peer` that nobody holds yet; the newest when there are several. Empty: there is none.
HeldSocket hold_socket_to(const PeerAddress& peer);
// The one behind a descriptor: a library's, which stays the library's to close; or one of our own, from before its
// connect on, which is thereby never taken for a library's. Empty: it cannot be held.
HeldSocket hold_socket(int fd);

}  // namespace holdfast
