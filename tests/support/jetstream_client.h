// What a test does to a JetStream server itself: makes streams, publishes, reads them back. Aborts the test on a
// failure.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "forwarder/nats_connection.h"
#include "forwarder/nats_messages.h"
#include "forwarder/nats_stream.h"
#include "tests/support/patience.h"

namespace holdfast {

struct SeenMessage {
  std::string subject;
  std::vector<Header> headers;
  std::string payload;
  std::uint64_t sequence = 0;
  std::int64_t timestamp_ns = 0;
  // Of the first header with this very name; empty when there is none.
  std::string header(const std::string& name) const;
};

class JetStreamClient {
 public:
  explicit JetStreamClient(const std::string& url);
  explicit JetStreamClient(const NatsOptions& options);

  void make_stream(const std::string& name, const std::vector<std::string>& subjects);
  void make_stream(const StreamRequest& request);
  void delete_stream(const std::string& name);
  void delete_messages(const std::string& stream, const std::string& subject);
  void delete_consumer(const std::string& stream, const std::string& consumer);
  // Tries until JetStream answers (a server that was just started takes its time).
  StreamInfo stream(const std::string& name);
  // Nothing when there is none.
  std::optional<ConsumerInfo> consumer(const std::string& stream, const std::string& name);
  void make_consumer(const std::string& stream, const ConsumerConfig& config);

  // Waits for its acknowledgement.
  void publish(const std::string& subject, const std::string& payload, const std::vector<Header>& headers = {});
  // `count` messages "<first>", "<first + 1>", ... padded to `size`; fast, and all acknowledged in the end. With `ids`
  // each has a header message-id, of that and its number.
  void publish_many(const std::string& subject, std::uint64_t first, std::uint64_t count, std::size_t size = 0,
                    const std::string& ids = "");
  std::vector<SeenMessage> read_all(const std::string& stream);

  NatsConnection& connection() { return *connection_; }

 private:
  NatsReply ask(const std::string& subject, const std::string& request);
  std::unique_ptr<NatsConnection> connection_;
};

}  // namespace holdfast
