#include "forwarder/fault_proxy.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <list>
#include <mutex>
#include <thread>

#include "crypto/text.h"
#include "forwarder/fault_link.h"
#include "forwarder/resolve.h"

namespace holdfast {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t kMostAddresses = 8;
constexpr int kBacklog = 64;
constexpr auto kLook = milliseconds(200);  // when nothing else wakes it

// Without brackets.
struct HostPort {
  std::string host;
  std::uint16_t port = 0;
};

std::optional<HostPort> parse_host_port(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  const auto port = parse_decimal<std::uint16_t>(text.substr(colon + 1));
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') != host.ends_with(']')) return std::nullopt;
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  if (!port || *port == 0 || host.empty()) return std::nullopt;
  return HostPort{std::string(host), *port};
}

// The resolver may hang: who waits for it leaves it behind.
std::vector<PeerAddress> addresses_of(const HostPort& place, Nanoseconds limit) {
  const auto found = std::make_shared<std::vector<Candidate>>();
  NatsEndpoint endpoint;
  endpoint.host = place.host;
  endpoint.port = place.port;
  auto call = BoundedCall::start([found, endpoint] { resolve(endpoint, kMostAddresses, *found); });
  if (!call || !call->wait_until(steady_clock::now() + limit)) return {};
  std::vector<PeerAddress> addresses;
  for (const Candidate& candidate : *found) addresses.push_back(candidate.address);
  return addresses;
}

// Of the loopback, on a port that the kernel chose; -1: none can be had.
int listen_somewhere(std::uint16_t& port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(fd, generic, size) != 0 || ::listen(fd, kBacklog) != 0 || ::getsockname(fd, generic, &size) != 0) {
    ::close(fd);
    return -1;
  }
  port = ntohs(address.sin_port);
  return fd;
}

}  // namespace

class FaultProxy::Relay {
 public:
  Relay(int listener, int wake, std::vector<PeerAddress> upstreams)
      : listener_(listener), wake_(wake), upstreams_(std::move(upstreams)) {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  ~Relay() {
    thread_.request_stop();
    wake();
    thread_.join();
    links_.clear();
    ::close(listener_);
    ::close(wake_);
  }

  void set(Fault fault) {
    {
      const std::lock_guard lock(mutex_);
      state_.fault = fault;
      state_.answers = 0;
      ++state_.generation;
    }
    wake();
  }
  FaultCounts counts() const {
    const std::lock_guard lock(mutex_);
    return state_.counts;
  }

 private:
  void wake() {
    const std::uint64_t one = 1;
    (void)!::write(wake_, &one, sizeof one);  // full: it is awake
  }

  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::vector<pollfd> watched;
      const int patience = what_to_wait_for(watched);
      (void)::poll(watched.data(), watched.size(), patience);
      std::uint64_t woken = 0;
      if ((watched[1].revents & POLLIN) != 0) (void)!::read(wake_, &woken, sizeof woken);
      const std::lock_guard lock(mutex_);
      if ((watched[0].revents & POLLIN) != 0) accept_all();
      const Moment now = steady_clock::now();
      std::erase_if(links_, [&](FaultLink& link) { return !link.step(state_, now); });
    }
  }

  int what_to_wait_for(std::vector<pollfd>& watched) {
    watched.push_back({links_.size() < kMostLinks ? listener_ : -1, POLLIN, 0});
    watched.push_back({wake_, POLLIN, 0});
    Moment next = steady_clock::now() + kLook;
    const std::lock_guard lock(mutex_);
    for (const FaultLink& link : links_) {
      if (const auto due = link.watch(state_, watched)) next = std::min(next, *due);
    }
    const auto left = std::chrono::ceil<milliseconds>(next - steady_clock::now());
    return static_cast<int>(std::max<std::int64_t>(0, left.count()));
  }

  void accept_all() {
    while (links_.size() < kMostLinks) {
      const int client = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (client < 0) return;
      ++state_.counts.accepted;
      links_.emplace_back(client, upstreams_);
    }
  }

  const int listener_;
  const int wake_;
  const std::vector<PeerAddress> upstreams_;
  std::list<FaultLink> links_;  // the thread's

  mutable std::mutex mutex_;
  FaultState state_;

  std::jthread thread_;  // last: stops first
};

FaultProxy::FaultProxy(std::string address, std::unique_ptr<Relay> relay)
    : address_(std::move(address)), relay_(std::move(relay)) {}

FaultProxy::~FaultProxy() = default;

Result<std::unique_ptr<FaultProxy>> FaultProxy::start(const std::string& upstream, Nanoseconds resolve_limit) {
  const auto place = parse_host_port(upstream);
  if (!place) return Error{ErrorKind::invalid, "the fault proxy's upstream is not host:port"};
  std::vector<PeerAddress> addresses = addresses_of(*place, resolve_limit);
  if (addresses.empty()) return Error{ErrorKind::unavailable, "its name is not known"};
  std::uint16_t port = 0;
  const int listener = listen_somewhere(port);
  const int wake = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (listener < 0 || wake < 0) {
    if (listener >= 0) ::close(listener);
    if (wake >= 0) ::close(wake);
    return Error{ErrorKind::unavailable, "nothing can be listened on for the fault proxy"};
  }
  auto relay = std::make_unique<Relay>(listener, wake, std::move(addresses));
  return std::unique_ptr<FaultProxy>(new FaultProxy(fmt::format("127.0.0.1:{}", port), std::move(relay)));
}

void FaultProxy::set(Fault fault) {
  relay_->set(fault);
}

FaultCounts FaultProxy::counts() const {
  return relay_->counts();
}

}  // namespace holdfast
