// An HTTP/1.1 server of ours on the loopback that answers as a test tells it to, well or badly: cut off, too slow, too
// long, not at all. For what a client must survive; what real servers do is asked of real ones (nginx_server.h).
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "spool/clock.h"

namespace holdfast {

struct StubRequest {
  std::string method;
  std::string path;                            // with its query
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;

  std::string header(const std::string& lower_case_name) const;
};

// How an answer goes out.
enum class Manner {
  whole,
  close_unanswered,  // as a server that dies with the request in hand
  cut_in_head,
  cut_in_body,   // half of the body, and the end
  wrong_length,  // Content-Length says more than there is, and the connection stays open
  hang,          // nothing ever
  trickle,       // the head, and then a byte now and then for ever
  endless,       // the body again and again
  no_http,       // something else
};

struct StubAnswer {
  int status = 204;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  Nanoseconds delay{0};
  Manner manner = Manner::whole;
};

class HttpStub {
 public:
  using Answer = std::function<StubAnswer(const StubRequest& request)>;

  // Answers 204 until it is told otherwise.
  HttpStub();
  explicit HttpStub(Answer answer);
  ~HttpStub();
  HttpStub(const HttpStub&) = delete;
  HttpStub& operator=(const HttpStub&) = delete;

  // Called on one thread a connection, one call at a time.
  void answer_with(Answer answer);
  void start();  // on the same port
  void stop();   // ends every connection; connecting is refused

  int port() const { return port_; }
  std::string url(const std::string& path = "/in") const;
  int requests() const { return requests_; }
  int connections() const { return connections_; }

 private:
  void accept_all();
  void serve(int fd);
  bool answer(int fd, const StubRequest& request);
  bool wait(Nanoseconds time);  // false: it is stopping

  std::mutex answering_;
  Answer answer_;
  int port_ = 0;
  int listener_ = -1;
  std::atomic<int> requests_{0};
  std::atomic<int> connections_{0};

  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  bool stopping_ = false;
  std::vector<int> open_;
  std::vector<std::thread> serving_;
  std::thread accepting_;
};

}  // namespace holdfast
