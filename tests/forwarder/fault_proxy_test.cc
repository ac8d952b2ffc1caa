// The fault proxy, between real sockets: what passes, what does not, and when.
#include "forwarder/fault_proxy.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/support/nats_server.h"
#include "tests/support/patience.h"

namespace holdfast {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

// One end of a connection, whose waits end after a while.
class Wire {
 public:
  explicit Wire(int fd) : fd_(fd) {
    const timeval limit{20, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  }
  Wire(Wire&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Wire() { close(); }
  Wire& operator=(Wire&&) = delete;

  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  bool send(const std::string& text) {
    std::size_t done = 0;
    while (done < text.size()) {
      const ssize_t sent = ::send(fd_, text.data() + done, text.size() - done, MSG_NOSIGNAL);
      if (sent <= 0) return false;
      done += static_cast<std::size_t>(sent);
    }
    return true;
  }
  // That many bytes, or fewer where the peer ended.
  std::string read(std::size_t count) {
    std::string text(count, '\0');
    std::size_t done = 0;
    while (done < count) {
      const ssize_t got = ::recv(fd_, text.data() + done, count - done, 0);
      error_ = got < 0 ? errno : 0;
      if (got <= 0) break;
      done += static_cast<std::size_t>(got);
    }
    text.resize(done);
    return text;
  }
  void end() { ::shutdown(fd_, SHUT_WR); }
  int error() const { return error_; }  // of the last read; 0: the peer ended, or all is there
  bool has_something() const {
    char byte = 0;
    return ::recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0;
  }

 private:
  int fd_;
  int error_ = 0;
};

Wire connect(const std::string& place) {
  int port = 0;
  std::from_chars(place.data() + place.rfind(':') + 1, place.data() + place.size(), port);
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(port);
  // A reset can be there before the connect has returned.
  const bool connected = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  EXPECT_TRUE(connected || errno == ECONNRESET) << errno;
  return Wire(fd);
}

// Accepts, and hands each connection to what the test does as the upstream, each on a thread of its own.
class Upstream {
 public:
  using Manner = std::function<void(Wire)>;
  explicit Upstream(Manner manner) : manner_(std::move(manner)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_, 128), 0);
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~Upstream() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
    for (std::thread& one : serving_) one.join();
  }
  std::string place() const { return "127.0.0.1:" + std::to_string(port_); }
  int accepted() const { return accepted_; }

 private:
  void serve() {
    for (;;) {
      const int fd = ::accept(listener_, nullptr, nullptr);
      if (fd < 0) return;
      ++accepted_;
      serving_.emplace_back([this, fd] { manner_(Wire(fd)); });
    }
  }
  const Manner manner_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<int> accepted_ = 0;
  std::vector<std::thread> serving_;  // the thread's, until it has ended
  std::thread thread_;
};

// Answers each line of four bytes with what it was in capitals, and remembers it.
class Shouter {
 public:
  std::string place() const { return upstream_.place(); }
  std::vector<std::string> heard() const {
    const std::lock_guard lock(mutex_);
    return heard_;
  }
  int accepted() const { return upstream_.accepted(); }

 private:
  void serve(Wire wire) {
    for (;;) {
      std::string line = wire.read(4);
      if (line.size() < 4) return;
      {
        const std::lock_guard lock(mutex_);
        heard_.push_back(line);
      }
      for (char& c : line) c = static_cast<char>(c - 'a' + 'A');
      if (!wire.send(line)) return;
    }
  }
  mutable std::mutex mutex_;
  std::vector<std::string> heard_;
  Upstream upstream_{[this](Wire wire) { serve(std::move(wire)); }};
};

std::unique_ptr<FaultProxy> proxy_to(const std::string& place) {
  auto proxy = FaultProxy::start(place, seconds(10));
  EXPECT_TRUE(proxy.ok()) << (proxy.ok() ? "" : proxy.error().text);
  return proxy.ok() ? *std::move(proxy) : nullptr;
}

TEST(FaultProxy, WithoutAFault_BytesPassBothWays_AndSoDoesTheEnd) {
  Shouter upstream;
  const auto proxy = proxy_to(upstream.place());
  Wire client = connect(proxy->address());
  ASSERT_TRUE(client.send("abcdefgh"));
  EXPECT_EQ(client.read(8), "ABCDEFGH");
  client.end();
  EXPECT_EQ(client.read(1), "");
  EXPECT_EQ(client.error(), 0) << "an end, no reset";
  EXPECT_EQ(proxy->counts().accepted, 1u);
  EXPECT_EQ(proxy->counts().up, 8u);
  EXPECT_EQ(proxy->counts().down, 8u);
}

TEST(FaultProxy, AnUpstreamThatEndsFirst_IsHeardToItsEnd) {
  const std::string all(3'000'000, 'x');
  Upstream upstream([&](Wire wire) { EXPECT_TRUE(wire.send(all)); });
  const auto proxy = proxy_to(upstream.place());
  Wire client = connect(proxy->address());
  EXPECT_EQ(client.read(all.size() + 1), all);
  EXPECT_EQ(client.error(), 0);
}

TEST(FaultProxy, AReaderThatIsSlow_HoldsUpTheSender_InBoundedMemory) {
  std::atomic<std::size_t> sent = 0;
  std::atomic<bool> done = false;
  Upstream upstream([&](Wire wire) {
    const std::string piece(64 << 10, 'x');
    while (!done && wire.send(piece)) sent += piece.size();
  });
  const auto proxy = proxy_to(upstream.place());
  Wire client = connect(proxy->address());
  std::size_t before = 0;
  // Nothing is read, so what fits into the kernel's buffers and ours is all that can be sent.
  ASSERT_TRUE(eventually(
      [&] {
        const std::size_t now = sent;
        return now > 0 && now == std::exchange(before, now);
      },
      seconds(20), milliseconds(300)));
  EXPECT_LT(sent, 64u << 20);
  done = true;
  client.close();
}

TEST(FaultProxy, Cut_WithholdsOneAnswer_AndEverythingElsePasses) {
  Shouter upstream;
  const auto proxy = proxy_to(upstream.place());
  Wire first = connect(proxy->address());
  ASSERT_TRUE(first.send("aaaa"));
  EXPECT_EQ(first.read(4), "AAAA");
  proxy->set({FaultKind::cut, 2, {}});
  ASSERT_TRUE(first.send("bbbb"));
  EXPECT_EQ(first.read(4), "BBBB");
  ASSERT_TRUE(first.send("cccc"));
  EXPECT_EQ(first.read(4), "");
  EXPECT_EQ(first.error(), ECONNRESET);
  EXPECT_EQ(upstream.heard(), (std::vector<std::string>{"aaaa", "bbbb", "cccc"})) << "the request has arrived";
  EXPECT_EQ(proxy->counts().cut, 1u);
  Wire second = connect(proxy->address());
  ASSERT_TRUE(second.send("dddd"));
  EXPECT_EQ(second.read(4), "DDDD");
  EXPECT_EQ(proxy->counts().cut, 1u);
}

TEST(FaultProxy, Cut_OfTheFirstAnswer_WithholdsAGreeting) {
  Upstream upstream([](Wire wire) {
    (void)wire.send("hello");
    (void)wire.read(1);
  });
  const auto proxy = proxy_to(upstream.place());
  proxy->set({FaultKind::cut, 1, {}});
  Wire client = connect(proxy->address());
  EXPECT_EQ(client.read(5), "");
  Wire next = connect(proxy->address());
  EXPECT_EQ(next.read(5), "hello");
}

TEST(FaultProxy, AnAnswerInPieces_IsOne) {
  std::atomic<int> pieces = 0;
  std::atomic<bool> go_on = false;
  Upstream upstream([&](Wire wire) {
    (void)wire.read(1);
    for (; pieces < 3; ++pieces) {
      (void)wire.send("p");
      if (pieces > 0) continue;
      EXPECT_TRUE(eventually([&] { return go_on.load(); }));
    }
    (void)wire.read(1);
    (void)wire.send("q");
    (void)wire.read(1);
  });
  const auto proxy = proxy_to(upstream.place());
  proxy->set({FaultKind::cut, 2, {}});
  Wire client = connect(proxy->address());
  ASSERT_TRUE(client.send("a"));
  EXPECT_EQ(client.read(1), "p");
  go_on = true;
  EXPECT_EQ(client.read(2), "pp");
  ASSERT_TRUE(client.send("a"));
  EXPECT_EQ(client.read(1), "") << "the second answer is q";
}

TEST(FaultProxy, Silence_LetsNothingThrough_AndWhatItHeldDoesNotComeLater) {
  Shouter upstream;
  const auto proxy = proxy_to(upstream.place());
  Wire before = connect(proxy->address());
  ASSERT_TRUE(before.send("aaaa"));
  EXPECT_EQ(before.read(4), "AAAA");
  proxy->set({FaultKind::silence, 1, {}});
  Wire during = connect(proxy->address());
  ASSERT_TRUE(before.send("bbbb"));
  ASSERT_TRUE(during.send("cccc"));
  EXPECT_TRUE(stays([&] { return !before.has_something() && !during.has_something(); }, milliseconds(300)));
  EXPECT_EQ(upstream.heard(), std::vector<std::string>{"aaaa"});
  EXPECT_EQ(upstream.accepted(), 1);
  proxy->set({});
  EXPECT_EQ(before.read(4), "");
  EXPECT_EQ(during.read(4), "");
  EXPECT_EQ(upstream.heard(), std::vector<std::string>{"aaaa"});
  Wire after = connect(proxy->address());
  ASSERT_TRUE(after.send("dddd"));
  EXPECT_EQ(after.read(4), "DDDD");
}

TEST(FaultProxy, Delay_HoldsAnswersBack_AndNoRequests) {
  Shouter upstream;
  const auto proxy = proxy_to(upstream.place());
  Wire client = connect(proxy->address());
  proxy->set({FaultKind::delay, 1, milliseconds(400)});
  const auto began = steady_clock::now();
  ASSERT_TRUE(client.send("aaaa"));
  EXPECT_TRUE(eventually([&] { return !upstream.heard().empty(); }, milliseconds(350)));
  EXPECT_EQ(client.read(4), "AAAA");
  EXPECT_GE(steady_clock::now() - began, milliseconds(400));
}

TEST(FaultProxy, WhatWasDelayed_DoesNotComeAfterTheFault) {
  Shouter upstream;
  const auto proxy = proxy_to(upstream.place());
  Wire client = connect(proxy->address());
  proxy->set({FaultKind::delay, 1, std::chrono::minutes(10)});
  ASSERT_TRUE(client.send("aaaa"));
  ASSERT_TRUE(eventually([&] { return !upstream.heard().empty(); }));
  EXPECT_TRUE(stays([&] { return !client.has_something(); }, milliseconds(100)));
  proxy->set({});
  EXPECT_EQ(client.read(4), "");
  EXPECT_EQ(client.error(), ECONNRESET);
}

TEST(FaultProxy, Refuse_ResetsWhatIsThere_AndWhatComes) {
  Shouter upstream;
  const auto proxy = proxy_to(upstream.place());
  Wire before = connect(proxy->address());
  ASSERT_TRUE(before.send("aaaa"));
  EXPECT_EQ(before.read(4), "AAAA");
  proxy->set({FaultKind::refuse, 1, {}});
  EXPECT_EQ(before.read(1), "");
  Wire during = connect(proxy->address());
  EXPECT_EQ(during.read(1), "");
  EXPECT_EQ(upstream.accepted(), 1);
  proxy->set({});
  Wire after = connect(proxy->address());
  ASSERT_TRUE(after.send("bbbb"));
  EXPECT_EQ(after.read(4), "BBBB");
}

TEST(FaultProxy, AnUpstreamThatIsNotThere_EndsTheConnection) {
  const auto proxy = proxy_to("127.0.0.1:" + std::to_string(free_port()));
  Wire client = connect(proxy->address());
  EXPECT_EQ(client.read(1), "");
}

TEST(FaultProxy, TheNextAddressOfAName_IsTried) {
  Shouter upstream;  // on 127.0.0.1 only; localhost may have ::1 first
  const std::string port = upstream.place().substr(upstream.place().rfind(':'));
  const auto proxy = proxy_to("localhost" + port);
  Wire client = connect(proxy->address());
  ASSERT_TRUE(client.send("aaaa"));
  EXPECT_EQ(client.read(4), "AAAA");
}

TEST(FaultProxy, ManyConnections_AreCarriedSideBySide) {
  Shouter upstream;
  const auto proxy = proxy_to(upstream.place());
  std::vector<std::thread> clients;
  std::atomic<int> answered = 0;
  for (int n = 0; n < 40; ++n) {
    clients.emplace_back([&] {
      Wire client = connect(proxy->address());
      for (int turn = 0; turn < 50; ++turn) {
        if (client.send("abcd") && client.read(4) == "ABCD") ++answered;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(answered, 40 * 50);
}

TEST(FaultProxy, MoreConnectionsThanItTakes_WaitForTheirTurn) {
  Shouter upstream;
  const auto proxy = proxy_to(upstream.place());
  std::vector<Wire> clients;
  for (std::size_t n = 0; n < FaultProxy::kMostLinks; ++n) {
    clients.push_back(connect(proxy->address()));
    ASSERT_TRUE(clients.back().send("aaaa"));
    ASSERT_EQ(clients.back().read(4), "AAAA");
  }
  Wire waiting = connect(proxy->address());
  ASSERT_TRUE(waiting.send("bbbb"));
  EXPECT_TRUE(stays([&] { return !waiting.has_something(); }, milliseconds(200)));
  clients.clear();
  EXPECT_EQ(waiting.read(4), "BBBB");
}

TEST(FaultProxy, FaultsThatComeAndGoUnderLoad_LeaveItWorking) {
  Shouter upstream;
  const auto proxy = proxy_to(upstream.place());
  std::atomic<bool> done = false;
  std::vector<std::thread> clients;
  for (int n = 0; n < 4; ++n) {
    clients.emplace_back([&] {
      while (!done) {
        Wire client = connect(proxy->address());
        while (!done && client.send("abcd") && client.read(4) == "ABCD") continue;
      }
    });
  }
  for (int round = 0; round < 30; ++round) {
    for (const FaultKind kind : {FaultKind::cut, FaultKind::delay, FaultKind::refuse, FaultKind::silence}) {
      proxy->set({kind, 3, milliseconds(1)});
      std::this_thread::yield();
    }
    const std::uint64_t before = proxy->counts().down;
    proxy->set({});
    EXPECT_TRUE(eventually([&] { return proxy->counts().down > before; }));
  }
  done = true;
  proxy->set({});
  for (std::thread& client : clients) client.join();
}

TEST(FaultProxy, ItGoes_WhileConnectionsAreOpen) {
  Shouter upstream;
  auto proxy = proxy_to(upstream.place());
  Wire client = connect(proxy->address());
  ASSERT_TRUE(client.send("aaaa"));
  EXPECT_EQ(client.read(4), "AAAA");
  proxy.reset();
  EXPECT_EQ(client.read(1), "");
}

TEST(FaultProxy, WhatIsNoPlace_IsRefused) {
  for (const char* place : {"", "host", ":1", "host:", "host:0", "host:65536", "[::1:80", "::1]:80", "host:1x"}) {
    const auto proxy = FaultProxy::start(place, seconds(1));
    ASSERT_FALSE(proxy.ok()) << place;
    EXPECT_EQ(proxy.error().kind, ErrorKind::invalid) << place;
  }
  const auto unknown = FaultProxy::start("no-such-host.invalid:80", seconds(20));
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().kind, ErrorKind::unavailable);
}

}  // namespace
}  // namespace holdfast
