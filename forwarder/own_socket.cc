#include "forwarder/own_socket.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>

#include "crypto/text.h"

namespace holdfast {
namespace {

// The sockets that are held, by inode.
struct Held {
  std::mutex mutex;
  std::set<ino_t> inodes;
};
Held& held() {
  static Held* const the = new Held;  // never destroyed: a late thread may still ask
  return *the;
}

bool same_address(const sockaddr_storage& a, const sockaddr_storage& b) {
  if (a.ss_family != b.ss_family) return false;
  if (a.ss_family == AF_INET) {
    const auto& x = reinterpret_cast<const sockaddr_in&>(a);
    const auto& y = reinterpret_cast<const sockaddr_in&>(b);
    return x.sin_port == y.sin_port && x.sin_addr.s_addr == y.sin_addr.s_addr;
  }
  if (a.ss_family != AF_INET6) return false;
  const auto& x = reinterpret_cast<const sockaddr_in6&>(a);
  const auto& y = reinterpret_cast<const sockaddr_in6&>(b);
  return x.sin6_port == y.sin6_port && std::memcmp(&x.sin6_addr, &y.sin6_addr, sizeof x.sin6_addr) == 0;
}

bool is_connected_to(int fd, const PeerAddress& peer) {
  sockaddr_storage found{};
  socklen_t size = sizeof found;
  return ::getpeername(fd, reinterpret_cast<sockaddr*>(&found), &size) == 0 && same_address(found, peer.address);
}

std::optional<ino_t> inode_of(int fd) {
  struct stat about {};
  if (::fstat(fd, &about) != 0) return std::nullopt;
  return about.st_ino;
}

// The open descriptors of this process. One that is closed meanwhile, or becomes another file, is found out later.
std::vector<int> open_descriptors() {
  std::vector<int> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir("/proc/self/fd"), &::closedir);
  if (!directory) return found;
  while (const dirent* entry = ::readdir(directory.get())) {
    if (const auto fd = parse_decimal<int>(entry->d_name)) found.push_back(*fd);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

HeldSocket::~HeldSocket() {
  if (fd_ < 0) return;
  {
    const std::lock_guard lock(held().mutex);
    if (const auto inode = inode_of(fd_)) held().inodes.erase(*inode);
  }
  ::close(fd_);
}

void HeldSocket::shut_down() const {
  if (fd_ >= 0) (void)::shutdown(fd_, SHUT_RDWR);  // may be over already
}

bool HeldSocket::connected() const {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  return fd_ >= 0 && ::getpeername(fd_, reinterpret_cast<sockaddr*>(&peer), &size) == 0;
}

std::uint64_t HeldSocket::bytes_acknowledged() const {
  tcp_info info{};
  socklen_t size = sizeof info;
  const bool told = fd_ >= 0 && ::getsockopt(fd_, IPPROTO_TCP, TCP_INFO, &info, &size) == 0;
  return told ? info.tcpi_bytes_acked : 0;
}

void HeldSocket::give_up_after(std::chrono::milliseconds unacknowledged) const {
  const auto limit = static_cast<unsigned>(unacknowledged.count());
  if (fd_ >= 0) (void)::setsockopt(fd_, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof limit);
}

bool HeldSocket::ended() const {
  pollfd look{fd_, POLLRDHUP, 0};
  return fd_ < 0 || ::poll(&look, 1, 0) != 0;
}

HeldSocket hold_socket_to(const PeerAddress& peer) {
  std::vector<int> descriptors = open_descriptors();
  std::optional<ino_t> newest;
  HeldSocket found;
  for (const int fd : descriptors) {
    if (!is_connected_to(fd, peer)) continue;
    // The duplicate is looked at again: only what cannot change any more is believed.
    const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) continue;
    const auto inode = inode_of(copy);
    const std::lock_guard lock(held().mutex);
    const bool take =
        inode && is_connected_to(copy, peer) && held().inodes.count(*inode) == 0 && (!newest || *inode > *newest);
    if (!take) {
      ::close(copy);
      continue;
    }
    if (newest) {
      held().inodes.erase(*newest);
      ::close(found.fd_);
      found.fd_ = -1;
    }
    newest = inode;
    held().inodes.insert(*inode);
    found = HeldSocket(copy);
  }
  return found;
}

HeldSocket hold_socket(int fd) {
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  const auto inode = copy < 0 ? std::nullopt : inode_of(copy);
  if (!inode) {
    if (copy >= 0) ::close(copy);
    return {};
  }
  const std::lock_guard lock(held().mutex);
  held().inodes.insert(*inode);
  return HeldSocket(copy);
}

}  // namespace holdfast
