// What the doors to both databases need around a library that may wait for ever: a connect that can be left behind, and
// a watch over every later call.
#pragma once

#include "forwarder/call_watch.h"
#include "forwarder/own_socket.h"
#include "forwarder/sql_connection.h"
#include "forwarder/sql_options.h"

namespace holdfast {

// Must own all that it touches; runs on a thread of its own.
using SqlConnect = std::function<Result<std::unique_ptr<SqlConnection>>()>;

// Within server.connect_limit, sooner when a stop is requested. A connect that is late, in a resolver or a handshake,
// is left behind, and what it makes is closed.
Result<std::unique_ptr<SqlConnection>> connect_within(const SqlServer& server, const std::stop_token& stop,
                                                      SqlConnect connect);

// The session's socket. A call without an answer, and without a byte that reached the server's machine, is ended by
// shutting it down: half as long again as the server itself waits.
class SqlWatch {
 public:
  SqlWatch(int fd, const SqlServer& server);

  CallWatch::Call call() { return CallWatch::Call(watch_); }
  void abort() const { socket_.shut_down(); }
  bool ended() const { return socket_.ended(); }

 private:
  const HeldSocket socket_;
  CallWatch watch_;
};

// Where to connect to.
struct SqlPlace {
  std::string host;
  std::uint16_t port = 0;
};
SqlPlace place_of(const SqlServer& server);
bool is_socket_path(const std::string& host);

// The first line of the file, or why it cannot be used ("file_unusable: ..."); wiped when it goes. An empty path gives
// an empty one.
class SqlPassword {
 public:
  static Result<SqlPassword> read(const std::string& path);
  SqlPassword(SqlPassword&& other) noexcept : text_(std::move(other.text_)) {}
  SqlPassword& operator=(SqlPassword&&) = delete;
  ~SqlPassword();
  const char* c_str() const { return text_.data(); }
  bool empty() const { return *text_.data() == '\0'; }

 private:
  explicit SqlPassword(std::vector<char> text) : text_(std::move(text)) {}
  std::vector<char> text_;  // ends with a NUL; a vector that is moved leaves no copy behind
};

inline constexpr const char* kSystemCertificates = "/etc/ssl/certs/ca-certificates.crt";

}  // namespace holdfast
