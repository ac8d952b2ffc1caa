#include "tests/support/wire_upstream.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "spool/check.h"

namespace holdfast {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr char kStored = 'S', kHad = 'H', kRejected = 'R', kBusy = 'B', kGreeting = 'G';
constexpr std::size_t kTruncated = 4096;
constexpr auto kBetween = milliseconds(150);  // looking and storing, where another may come
constexpr auto kHang = std::chrono::seconds(8);

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

bool send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::string number(std::size_t value) {
  const std::uint32_t big = htonl(static_cast<std::uint32_t>(value));
  return {reinterpret_cast<const char*>(&big), sizeof big};
}

std::size_t number_at(const std::string& bytes, std::size_t at) {
  std::uint32_t big = 0;
  bytes.copy(reinterpret_cast<char*>(&big), sizeof big, at);
  return ntohl(big);
}

struct Request {
  std::string key;
  std::string payload;
};

// Takes a whole one from the front.
std::optional<Request> next_request(std::string& bytes) {
  if (bytes.size() < 8) return std::nullopt;
  const std::size_t key = number_at(bytes, 0), payload = number_at(bytes, 4);
  if (bytes.size() < 8 + key + payload) return std::nullopt;
  Request request{bytes.substr(8, key), bytes.substr(8 + key, payload)};
  bytes.erase(0, 8 + key + payload);
  return request;
}

}  // namespace

// --- The upstream

WireUpstream::WireUpstream(UpstreamManner manner) : manner_(manner) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  CHECK(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0);
  CHECK(::listen(listener_, 64) == 0);
  CHECK(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { serve(); });
}

WireUpstream::~WireUpstream() {
  ::shutdown(listener_, SHUT_RDWR);
  thread_.join();
  ::close(listener_);
  for (std::thread& one : conversations_) one.join();
}

std::string WireUpstream::place() const {
  return fmt::format("127.0.0.1:{}", port_);
}

std::uint64_t WireUpstream::copies() const {
  const std::lock_guard lock(mutex_);
  return stored_.size();
}

void WireUpstream::serve() {
  for (int connection = 1;; ++connection) {
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    conversations_.emplace_back([this, fd, connection] {
      converse(fd, connection);
      ::close(fd);
    });
  }
}

void WireUpstream::converse(int fd, int connection) {
  if (!send_all(fd, {&kGreeting, 1})) return;
  std::string bytes;
  std::string buffer(64 << 10, '\0');
  for (;;) {
    const ssize_t got = ::recv(fd, buffer.data(), buffer.size(), 0);
    if (got <= 0) return;
    bytes.append(buffer, 0, static_cast<std::size_t>(got));
    std::vector<Request> requests;
    while (auto request = next_request(bytes)) requests.push_back(*std::move(request));
    std::string answers(requests.size(), kBusy);
    for (std::size_t n = 0; n < requests.size(); ++n) {
      const std::size_t at = manner_.last_first ? requests.size() - 1 - n : n;
      answers[at] = take(connection, requests[at].key, requests[at].payload, requests.size() == 1);
    }
    if (!send_all(fd, answers)) return;
  }
}

char WireUpstream::take(int connection, const std::string& key, std::string payload, bool alone) {
  std::unique_lock lock(mutex_);
  if (manner_.busy) return kBusy;
  if (manner_.rejects_all) return kRejected;
  if (manner_.truncates) payload.resize(std::min(payload.size(), kTruncated));
  if (manner_.recodes_text) {
    for (char& c : payload) c = (c & 0x80) != 0 ? '?' : c;
  }
  const auto same = [&](const Stored& one) {
    const bool forgotten =
        manner_.forgets_after > Nanoseconds(0) && steady_clock::now() - one.since > manner_.forgets_after;
    return one.key == key && !forgotten && (!manner_.per_connection || one.connection == connection);
  };
  const bool had = std::any_of(stored_.begin(), stored_.end(), same);
  if (manner_.looks_then_stores && alone && !had) {
    ++coming_[key];
    changed_.notify_all();
    changed_.wait_for(lock, kBetween, [&] { return coming_[key] > 1; });
  }
  if (had && manner_.rejects_repeats) return kRejected;
  if (had && manner_.loses_repeats) std::erase_if(stored_, same);
  if (had && !manner_.ignores_key) return kHad;
  if (!manner_.confirms_and_loses) stored_.push_back({key, std::move(payload), connection, steady_clock::now()});
  return kStored;
}

class WireReadback : public Readback {
 public:
  explicit WireReadback(WireUpstream& upstream) : upstream_(upstream) {}

  Result<std::vector<Held>> look(std::span<const Delivery> records) override {
    const std::lock_guard lock(upstream_.mutex_);
    const auto now = steady_clock::now();
    std::vector<Held> all;
    for (const Delivery& record : records) {
      Held held;
      for (std::size_t at = 0; at < upstream_.stored_.size(); ++at) {
        const auto& stored = upstream_.stored_[at];
        if (stored.key != record.wire_key || now - stored.since < upstream_.manner_.shows_after) continue;
        ++held.copies;
        held.as_sent = held.as_sent && stored.payload == as_text(record.record->envelope.payload);
        held.position = at;
      }
      all.push_back(held);
    }
    return all;
  }
  Result<void> remove(std::span<const Delivery> records) override {
    const std::lock_guard lock(upstream_.mutex_);
    for (const Delivery& record : records)
      std::erase_if(upstream_.stored_, [&](const auto& stored) { return stored.key == record.wire_key; });
    return {};
  }

 private:
  WireUpstream& upstream_;
};

std::unique_ptr<Readback> WireUpstream::readback() {
  return std::make_unique<WireReadback>(*this);
}

// --- The target

WireTarget::~WireTarget() {
  disconnect();
}

void WireTarget::disconnect() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

bool WireTarget::connect() {
  if (fd_ >= 0) return true;
  int port = 0;
  std::from_chars(place_.data() + place_.rfind(':') + 1, place_.data() + place_.size(), port);
  fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(port);
  char greeting = 0;
  const bool connected = ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  if (connected && read(greeting) == Read::byte) return true;
  disconnect();
  return false;
}

WireTarget::Read WireTarget::read(char& byte) {
  const auto began = steady_clock::now();
  const bool for_ever = manner_.hangs || manner_.cannot_be_interrupted;
  for (;;) {
    pollfd readable{fd_, POLLIN, 0};
    if (::poll(&readable, 1, 5) == 1) return ::recv(fd_, &byte, 1, 0) == 1 ? Read::byte : Read::ended;
    const auto waited = steady_clock::now() - began;
    if (manner_.cannot_be_interrupted && waited < kHang) continue;
    if (interrupted_.exchange(false)) return Read::interrupted;
    if (!for_ever && waited >= manner_.deadline) return Read::late;
  }
}

bool WireTarget::send(std::span<const Delivery> window) {
  std::string bytes;
  for (const Delivery& one : window) {
    const std::string_view payload = as_text(one.record->envelope.payload);
    bytes += number(one.wire_key.size()) + number(payload.size()) + one.wire_key;
    bytes += payload;
  }
  return send_all(fd_, bytes);
}

Result<void> WireTarget::fail(Read how, std::size_t first, std::size_t count, const Report& report) {
  disconnect();
  const bool believes = manner_.believes_silence && how == Read::late;
  const bool refuses = manner_.takes_cuts_for_refusals && how == Read::ended;
  for (std::size_t place = first; place < count; ++place) {
    if (believes) report(place, accepted());
    if (refuses) report(place, rejected(Reason::rejected));
  }
  if (believes || refuses || manner_.says_nothing) return {};
  return Error{ErrorKind::unavailable, "no answer"};
}

Result<void> WireTarget::collect(std::span<const Delivery> window, const Report& report) {
  for (std::size_t place = 0; place < window.size(); ++place) {
    char answer = 0;
    const Read how = read(answer);
    if (how != Read::byte) return fail(how, place, window.size(), report);
    report(place, answer == kStored     ? accepted()
                  : answer == kHad      ? accepted(OutcomeKind::duplicate)
                  : answer == kRejected ? rejected(Reason::rejected, "no")
                                        : retry("in_progress"));
    if (manner_.reports_twice) report(place, accepted());
  }
  return {};
}

Result<void> WireTarget::deliver(std::span<const Delivery> window, const Report& report) {
  if (!connect()) return fail(Read::ended, 0, window.size(), report);
  if (!send(window)) return fail(Read::ended, 0, window.size(), report);
  return collect(window, report);
}

}  // namespace holdfast
