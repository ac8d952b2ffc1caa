// Stands between a client and a server on the loopback and does to their bytes what a bad moment does: refuses,
// swallows everything, or lets a word of the client pass and keeps the answer to it from arriving.
//
// Threads: one of its own carries; any may call.
#pragma once

#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace holdfast {

class TcpRelay {
 public:
  explicit TcpRelay(int server_port);
  ~TcpRelay();
  TcpRelay(const TcpRelay&) = delete;
  TcpRelay& operator=(const TcpRelay&) = delete;

  int port() const { return port_; }

  // New connections are closed at once, and those that there are end.
  void refuse(bool refusing);
  // Nothing arrives any more, either way; connections are accepted.
  void swallow(bool swallowing);
  // When the client next says `word`, it reaches the server, and nothing that the server says after that reaches the
  // client, until cut().
  void hold_answer_to(std::string word);
  bool holding() const;  // the server has answered it
  // Ends all connections. New ones pass everything.
  void cut();

 private:
  struct Link {
    int client = -1;
    int server = -1;
    std::string up = {};    // to the server
    std::string down = {};  // to the client
    bool deaf = false;      // the client's: its answer is held
    bool over = false;
  };

  void run(const std::stop_token& stop);
  void accept_one();
  bool carry_up(Link& link);
  bool carry_down(Link& link);
  void end_all();

  const int server_port_;
  int listener_ = -1;
  int port_ = 0;

  mutable std::mutex mutex_;
  std::vector<Link> links_;
  bool refusing_ = false;
  bool swallowing_ = false;
  std::string word_;
  bool holding_ = false;

  std::jthread thread_;  // last: stops first
};

}  // namespace holdfast
