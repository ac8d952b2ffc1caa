// A peer that behaves as no NATS server should: for what a client must survive.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>

namespace holdfast {

// Listens on the loopback, greets everybody with the same bytes, and then reads (or not) without ever answering.
class OddPeer {
 public:
  enum class Manner { reads_and_keeps_silent, does_not_read, hangs_up };
  explicit OddPeer(std::string greeting, Manner manner = Manner::reads_and_keeps_silent);
  ~OddPeer();
  OddPeer(const OddPeer&) = delete;
  OddPeer& operator=(const OddPeer&) = delete;

  std::string url(const std::string& scheme = "nats") const;
  int accepted() const { return accepted_; }

 private:
  void serve();
  const std::string greeting_;
  const Manner manner_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stop_{false};
  std::atomic<int> accepted_{0};
  std::thread thread_;
};

// A server's greeting; `more`: further fields, each followed by a comma.
std::string info_line(const std::string& more = {});

}  // namespace holdfast
