// Stands between NATS clients and a nats-server on the loopback and does to acknowledgements what a bad moment does:
// loses them, or keeps the first of them from arriving until somebody has pulled the plug. Everything else passes.
//
// Threads: one of its own carries; any may call.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/nats_frames.h"

namespace holdfast {

struct RelayCounts {
  std::uint64_t delivered = 0;     // messages of a stream that the client's socket has, redeliveries included
  std::uint64_t acks_passed = 0;   // to the server
  std::uint64_t acks_dropped = 0;  // on the way there
};

class NatsRelay {
 public:
  explicit NatsRelay(int server_port);
  ~NatsRelay();
  NatsRelay(const NatsRelay&) = delete;
  NatsRelay& operator=(const NatsRelay&) = delete;

  std::string url() const;
  // Until told otherwise no +ACK reaches the server.
  void drop_acks(bool drop);
  // The next +ACK does not pass, nor does anything after it, either way, until cut().
  void hold_at_ack();
  bool holding() const;
  // Ends all connections; what they held is lost. New ones pass everything.
  void cut();
  RelayCounts counts() const;

 private:
  struct Way {
    int from = -1;
    int to = -1;
    NatsFrames frames = {};
    std::string out = {};
    std::uint64_t deliveries = 0;  // in `out`
  };
  struct Link {
    int client = -1;
    int server = -1;
    Way up = {};
    Way down = {};
    bool over = false;
  };

  void run(const std::stop_token& stop);
  void accept_one();
  bool carry(Way& way);
  void sort(Way& way);
  bool send(Way& way);
  void close_what_is_over();

  const int server_port_;
  int listener_ = -1;
  int port_ = 0;

  mutable std::mutex mutex_;
  std::vector<Link> links_;
  RelayCounts counts_;
  bool dropping_ = false;
  bool hold_next_ack_ = false;
  bool holding_ = false;

  std::jthread thread_;  // last: stops first
};

}  // namespace holdfast
