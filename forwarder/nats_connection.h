// One connection to a NATS server: publish, subscribe, request, and an end.
//
// The client library behind it (nats_connection.cc is the only file that knows it) can hang in most of its calls and
// measures every wait by the wall clock. So every wait here is ours, on the monotonic clock, and no call outlasts its
// limit by more than two seconds, whatever the peer does. A connection is never mended: when it is lost, alive() says
// so for good and the owner makes another.
//
// Errors are `unavailable`, or `invalid` for what can never be sent; their texts are ours and hold no peer's words, no
// subject and no secret. A refusal of credentials is told by credentials_refused(); a file that cannot be used begins
// with "file_unusable".
//
// Threads: any, except that the owner destroys it when no other call is in progress. Callbacks come from threads of the
// library, one at a time for each subscription; they must return soon, and must not destroy the connection.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "spool/clock.h"
#include "spool/envelope.h"
#include "spool/result.h"

namespace holdfast {

struct NatsOptions {
  std::string url;         // nats://host:4222, tls://...; several with commas between them: the first that answers
  std::string connect_to;  // "host:port" in place of the URL's own; names are checked as the URL has them
  std::string creds_file;  // a user's JWT and seed
  std::string nkey_file;   // a user's seed
  std::string tls_ca;      // none: the system's
  std::string tls_cert;
  std::string tls_key;
  std::string client_name = "holdfast";
  Nanoseconds connect_limit = std::chrono::seconds(10);
  Nanoseconds ping_interval = std::chrono::seconds(15);  // two unanswered ones end it
};

// A message while its callback runs.
class NatsMessage {
 public:
  explicit NatsMessage(void* raw) : raw_(raw) {}
  std::string_view subject() const;
  std::string_view reply() const;
  ByteView payload() const;
  // By name, values of one name in the order they came (the order of names is not kept). Nothing: the library cannot
  // read them.
  std::optional<std::vector<Header>> headers() const;
  // 0 for a message; for a status of the server's own (no payload) its code: 100, 404, 408, 409, 503.
  int status() const;
  // Empty when absent. For telling statuses apart, not for showing.
  std::string_view status_header(const char* name) const;

 private:
  void* raw_;
};

struct NatsReply {
  int status = 0;  // 503: nobody answers there
  std::string payload;
};

// What the server says on its own account.
struct NatsEvents {
  std::function<void()> lost;  // once; not after abort() or destruction
  // The user may not publish to this subject. Told as far as the library can say it; the message is gone.
  std::function<void(std::string subject)> publish_refused;
};

class NatsConnection {
 public:
  // Within options.connect_limit; sooner when a stop is requested.
  static Result<std::unique_ptr<NatsConnection>> connect(const NatsOptions& options, NatsEvents events = {},
                                                         std::stop_token stop = {});
  // Closes without sending what is still buffered: flush() before, if it matters. Returns within a few seconds. No
  // callback runs after.
  ~NatsConnection();
  NatsConnection(const NatsConnection&) = delete;
  NatsConnection& operator=(const NatsConnection&) = delete;

  bool alive() const;
  // Ends it: calls in progress return soon, alive() is false.
  void abort();

  using Callback = std::function<void(const NatsMessage&)>;
  // Until the connection is destroyed. Nothing is dropped by the library: what is asked for must be bounded.
  Result<void> subscribe(const std::string& subject, Callback callback);
  // A subject that only this connection uses, for replies.
  std::string new_inbox();

  // Into the library's buffer, which is sent within a millisecond or so. Text of subject, reply and headers is sent as
  // it is: the caller has looked at it (see nats_limits.h).
  Result<void> publish(const std::string& subject, const std::string& reply, std::span<const Header> headers,
                       ByteView payload);
  Result<NatsReply> request(const std::string& subject, std::string_view payload, Nanoseconds limit);
  // Everything published so far has reached the server. Late: the connection is ended.
  Result<void> flush(Nanoseconds limit);

  // Of headers and payload together, as the server last said.
  std::size_t max_payload() const;
  // Bytes that have reached the peer's machine: while it grows a slow link is only slow.
  std::uint64_t bytes_arrived() const;

 private:
  struct Parts;
  explicit NatsConnection(std::unique_ptr<Parts> parts);
  Result<void> listen_for_replies();
  std::unique_ptr<Parts> parts_;
};

// The error of a connect that failed because the server does not know or take the credentials (state
// "credentials_refused").
bool credentials_refused(const Error& error);

}  // namespace holdfast
