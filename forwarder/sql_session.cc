#include "forwarder/sql_session.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>

#include "crypto/secret.h"
#include "crypto/text.h"
#include "forwarder/bounded_call.h"

namespace holdfast {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr auto kLook = milliseconds(20);  // how often a connect in progress is looked at

struct Connecting {
  std::mutex mutex;
  std::unique_ptr<SqlConnection> made;
  Error error{ErrorKind::unavailable, "the connect did not return"};
};

}  // namespace

Result<std::unique_ptr<SqlConnection>> connect_within(const SqlServer& server, const std::stop_token& stop,
                                                      SqlConnect connect) {
  const Moment deadline = steady_clock::now() + server.connect_limit;
  const auto state = std::make_shared<Connecting>();
  auto call = BoundedCall::start([state, connect = std::move(connect)] {
    auto connected = connect();
    const std::lock_guard lock(state->mutex);
    if (connected.ok()) {
      state->made = *std::move(connected);
    } else {
      state->error = connected.error();
    }
  });
  if (!call) return Error{ErrorKind::unavailable, "too many connects hang"};
  while (!call->wait_until(std::min(deadline, steady_clock::now() + kLook))) {
    if (stop.stop_requested()) return Error{ErrorKind::unavailable, "interrupted"};
    if (steady_clock::now() >= deadline) return Error{ErrorKind::unavailable, "no connection within the limit"};
  }
  const std::lock_guard lock(state->mutex);
  if (!state->made) return state->error;
  return std::move(state->made);
}

SqlWatch::SqlWatch(int fd, const SqlServer& server)
    : socket_(hold_socket(fd)),
      watch_(
          server.statement_limit * 3 / 2, [this] { return socket_.bytes_acknowledged(); },
          [this] { socket_.shut_down(); }) {
  socket_.give_up_after(std::chrono::duration_cast<milliseconds>(server.statement_limit * 3 / 2));
}

bool is_socket_path(const std::string& host) {
  return host.starts_with('/');
}

SqlPlace place_of(const SqlServer& server) {
  const std::size_t colon = server.connect_to.rfind(':');
  if (colon == std::string::npos) return {server.host, server.port};
  const auto port = parse_decimal<std::uint16_t>(std::string_view(server.connect_to).substr(colon + 1));
  return {server.connect_to.substr(0, colon), port.value_or(server.port)};
}

Result<SqlPassword> SqlPassword::read(const std::string& path) {
  constexpr std::size_t kMostBytes = 4096;
  if (path.empty()) return SqlPassword(std::vector<char>(1, '\0'));
  const Error unusable{ErrorKind::unavailable, "file_unusable: the password file cannot be read"};
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe may never answer
  if (fd < 0) return unusable;
  struct stat facts {};
  std::vector<char> text(kMostBytes + 1, '\0');
  const bool is_file = ::fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode);
  const ssize_t got = is_file ? ::read(fd, text.data(), kMostBytes) : -1;
  ::close(fd);
  if (got <= 0) return unusable;
  const auto end = std::find_if(text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r' || c == '\0'; });
  std::fill(end, text.end(), '\0');
  return SqlPassword(std::move(text));
}

SqlPassword::~SqlPassword() {
  wipe({reinterpret_cast<std::uint8_t*>(text_.data()), text_.size()});
}

}  // namespace holdfast
