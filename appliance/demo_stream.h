// The demo's own hands on a JetStream server: one stream, numbered messages into it, and what came out of it by their
// numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "forwarder/nats_connection.h"

namespace holdfast {

// Looks at a condition until it holds; false when the limit is over.
bool wait_until(const std::function<bool()>& condition, Nanoseconds limit);

class DemoStream {
 public:
  // Waits for the server to answer, and makes the stream when it is not there.
  static Result<std::unique_ptr<DemoStream>> open(const std::string& url, const std::string& stream,
                                                  const std::string& subject);

  // Messages first..first+count-1, each marked and padded to `size`; all are in the stream when this returns.
  // `progress` is called now and then with how many have been sent; false stops.
  Result<void> publish(std::uint64_t first, std::uint64_t count, std::size_t size, const std::string& marker,
                       const std::function<void(std::uint64_t)>& progress);
  Result<std::uint64_t> messages();
  // How often each number 1..most is in the stream, by content. Messages without one count under 0.
  Result<std::vector<std::uint32_t>> count_by_content(std::uint64_t most);

 private:
  DemoStream(std::unique_ptr<NatsConnection> connection, std::string stream, std::string subject)
      : connection_(std::move(connection)), stream_(std::move(stream)), subject_(std::move(subject)) {}
  std::unique_ptr<NatsConnection> connection_;
  std::string stream_;
  std::string subject_;
};

}  // namespace holdfast
