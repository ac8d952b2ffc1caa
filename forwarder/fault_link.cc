#include "forwarder/fault_link.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace holdfast {
namespace {

constexpr std::size_t kRead = 16u << 10;

// A reset, not an end: as a link that went away looks to whoever sends into it.
void reset(int fd) {
  const linger none{1, 0};
  (void)::setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
  ::close(fd);
}

bool is_transient() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

}  // namespace

FaultLink::FaultLink(int client, std::span<const PeerAddress> upstreams) : client_(client), upstreams_(upstreams) {
  const int on = 1;
  (void)::setsockopt(client_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

FaultLink::~FaultLink() {
  own_ = HeldSocket();
  if (ended_well_) {
    ::close(client_);
    if (server_ >= 0) ::close(server_);
    return;
  }
  reset(client_);
  // What the client sent before has arrived, or is on its way: a reset would take it back.
  if (server_ >= 0) ::close(server_);
}

bool FaultLink::connect_next() {
  while (!upstreams_.empty()) {
    const PeerAddress& to = upstreams_.front();
    upstreams_ = upstreams_.subspan(1);
    own_ = HeldSocket();
    if (server_ >= 0) ::close(server_);
    server_ = ::socket(to.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (server_ < 0) continue;
    own_ = hold_socket(server_);
    const int on = 1;
    (void)::setsockopt(server_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const int connected = ::connect(server_, reinterpret_cast<const sockaddr*>(&to.address), to.size);
    if (connected == 0 || errno == EINPROGRESS) return true;
  }
  return false;
}

bool FaultLink::await_connection() {
  if (server_ < 0) return connect_next();
  pollfd writable{server_, POLLOUT, 0};
  if (::poll(&writable, 1, 0) != 1) return true;
  int error = 0;
  socklen_t size = sizeof error;
  (void)::getsockopt(server_, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return connect_next();
  connected_ = true;
  return true;
}

// Nothing is read while nothing may pass: who sends, waits.
bool FaultLink::held_back(const FaultState& state) const {
  return state.fault.kind == FaultKind::silence;
}

std::optional<Moment> FaultLink::watch(const FaultState& state, std::vector<pollfd>& into) const {
  if (held_back(state)) {
    into.push_back({-1, 0, 0});
    into.push_back({-1, 0, 0});
    return std::nullopt;
  }
  const Moment now = std::chrono::steady_clock::now();
  const auto wants_out = [&](const Way& way) { return !way.chunks.empty() && way.chunks.front().due <= now; };
  const auto events = [&](const Way& from, const Way& to) {
    return static_cast<short>((!from.ended && from.held < FaultProxy::kMostHeld ? POLLIN : 0) |
                              (wants_out(to) ? POLLOUT : 0));
  };
  const short client = connected_ ? events(up_, down_) : short{0};
  const short server = connected_ ? events(down_, up_) : short{POLLOUT};
  // One that is waited for nothing is left out: its end alone would wake us again and again.
  into.push_back({client == 0 ? -1 : client_, client, 0});
  into.push_back({server == 0 ? -1 : server_, server, 0});
  if (down_.chunks.empty() || wants_out(down_)) return std::nullopt;
  return down_.chunks.front().due;
}

bool FaultLink::read(int from, Way& way, Moment due, bool& any) {
  any = false;
  std::array<std::uint8_t, kRead> buffer;
  while (!way.ended && way.held < FaultProxy::kMostHeld) {
    const ssize_t got = ::recv(from, buffer.data(), buffer.size(), 0);
    if (got < 0) return is_transient();
    if (got == 0) {
      way.ended = true;
      return true;
    }
    any = true;
    way.held += static_cast<std::size_t>(got);
    way.chunks.push_back({Bytes(buffer.begin(), buffer.begin() + got), 0, due});
  }
  return true;
}

bool FaultLink::write(int to, Way& way, Moment now, std::uint64_t& count) {
  while (!way.chunks.empty() && way.chunks.front().due <= now) {
    Chunk& chunk = way.chunks.front();
    const ssize_t sent = ::send(to, chunk.bytes.data() + chunk.sent, chunk.bytes.size() - chunk.sent, MSG_NOSIGNAL);
    if (sent < 0) return is_transient();
    chunk.sent += static_cast<std::size_t>(sent);
    count += static_cast<std::uint64_t>(sent);
    way.held -= static_cast<std::size_t>(sent);
    if (chunk.sent == chunk.bytes.size()) way.chunks.pop_front();
  }
  if (way.ended && !way.told && way.chunks.empty()) {
    way.told = true;
    (void)::shutdown(to, SHUT_WR);
  }
  return true;
}

// An answer has begun. True: it is the one that does not arrive.
bool FaultLink::withholds(FaultState& state) {
  ++state.answers;
  if (state.fault.kind != FaultKind::cut || state.answers != state.fault.answer) return false;
  ++state.counts.cut;
  return true;
}

bool FaultLink::step(FaultState& state, Moment now) {
  if (held_under_ && *held_under_ != state.generation) return false;
  if (state.fault.kind == FaultKind::refuse) return false;
  if (held_back(state)) {
    held_under_ = state.generation;
    return true;
  }
  if (!connected_) return await_connection();
  bool asked = false;
  bool answered = false;
  const bool reading = read(client_, up_, now, asked);
  if (asked) speaking_ = false;
  if (!reading || !write(server_, up_, now, state.counts.up)) return false;
  const Nanoseconds late = state.fault.kind == FaultKind::delay ? state.fault.delay : Nanoseconds(0);
  if (!read(server_, down_, now + late, answered)) return false;
  if (answered && late > Nanoseconds(0)) held_under_ = state.generation;
  if (answered && !std::exchange(speaking_, true) && withholds(state)) return false;
  if (!write(client_, down_, now, state.counts.down)) return false;
  ended_well_ = up_.told && down_.told;
  return !ended_well_;
}

}  // namespace holdfast
