#include "appliance/control_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "spool/path.h"

namespace holdfast {
namespace {

constexpr int kWaiting = 16;  // connections that wait to be accepted

Error failure(ErrorKind kind, const std::string& tried, const std::string& path) {
  return {kind, "cannot " + tried + " control socket " + path + ": " + std::strerror(errno)};
}

std::optional<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return std::nullopt;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

const sockaddr* generic(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

Result<int> new_socket(const std::string& path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return failure(ErrorKind::unavailable, "make", path);
  return fd;
}

// Removes a socket that nobody listens at.
Result<void> clear_away(const std::string& path) {
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0) {
    if (errno == ENOENT) return {};
    return failure(ErrorKind::invalid, "look at", path);
  }
  if (!S_ISSOCK(facts.st_mode))
    return Error{ErrorKind::exists, path + " is there and is no socket; it will not be removed"};
  const auto connected = connect_to(path);
  if (connected.ok()) {
    ::close(*connected);
    return Error{ErrorKind::exists, "somebody listens at " + path + " already"};
  }
  if (connected.error().kind != ErrorKind::not_found) return connected.error();
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return failure(ErrorKind::invalid, "replace", path);
  return {};
}

}  // namespace

Result<int> listen_at(const std::string& path) {
  const auto address = address_of(path);
  if (!address) return Error{ErrorKind::invalid, "the path of the control socket is too long"};
  if (::mkdir(parent_path(path).c_str(), 0750) == 0) {
    if (::chmod(parent_path(path).c_str(), 0750) != 0)
      return failure(ErrorKind::invalid, "make the directory of", path);
  }
  HOLDFAST_TRY(clear_away(path));
  const auto fd = new_socket(path);
  if (!fd) return fd;
  // So that there is no moment at which others could connect.
  const mode_t before = ::umask(0117);
  const bool bound = ::bind(*fd, generic(*address), sizeof *address) == 0;
  ::umask(before);
  if (bound && ::listen(*fd, kWaiting) == 0) return fd;
  const Error error = failure(ErrorKind::invalid, "bind", path);
  ::close(*fd);
  return error;
}

Result<int> connect_to(const std::string& path) {
  const auto address = address_of(path);
  if (!address) return Error{ErrorKind::invalid, "the path of the control socket is too long"};
  const auto fd = new_socket(path);
  if (!fd) return fd;
  if (::connect(*fd, generic(*address), sizeof *address) == 0) return fd;
  const bool nobody = errno == ENOENT || errno == ECONNREFUSED || errno == ENOTDIR;
  const bool not_allowed = errno == EACCES;
  Error error = failure(nobody            ? ErrorKind::not_found
                        : errno == EAGAIN ? ErrorKind::unavailable
                                          : ErrorKind::invalid,
                        "connect to", path);
  if (not_allowed) error.text += "; ask as root, or as a member of the service's group";
  ::close(*fd);
  return error;
}

Result<Peer> peer_of(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0)
    return Error{ErrorKind::unavailable, std::string("cannot tell who asks: ") + std::strerror(errno)};
  return Peer{credentials.uid, credentials.pid};
}

}  // namespace holdfast
