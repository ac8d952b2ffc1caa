// An HTTP proxy on the loopback that does one thing: CONNECT. Wherever it is asked to go it goes to one port of the
// loopback. It can want a login, and can swallow every byte, as a network does that was cut off without a word.
//
// Threads: one of its own for each connection; any may call.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace holdfast {

class ConnectProxy {
 public:
  // `login`: "user:password" that it wants; empty: none.
  explicit ConnectProxy(int to_port, std::string login = {});
  ~ConnectProxy();
  ConnectProxy(const ConnectProxy&) = delete;
  ConnectProxy& operator=(const ConnectProxy&) = delete;

  std::string url() const;
  void swallow(bool all) { swallowing_ = all; }
  int tunnels() const { return tunnels_; }  // that were made

 private:
  void accept_all();
  void serve(int client);
  void carry(int client, int server);

  const int to_port_;
  const std::string login_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stop_{false};
  std::atomic<bool> swallowing_{false};
  std::atomic<int> tunnels_{0};
  std::vector<std::thread> serving_;
  std::thread accepting_;
};

}  // namespace holdfast
