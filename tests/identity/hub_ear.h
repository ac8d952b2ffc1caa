// Hears everything that is published to a hub under telemetry.>, before its JetStream has judged it. The hub's
// duplicate window, which hides what we send twice from the stream, hides nothing from here.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "forwarder/nats_connection.h"

namespace holdfast {

class HubEar {
 public:
  explicit HubEar(const std::string& url);
  // The key of each message heard, in the order they came; of all that the hub had when this was called.
  std::vector<std::string> keys();

 private:
  void heard(const NatsMessage& message);

  std::mutex mutex_;
  std::vector<std::string> keys_;
  int marks_ = 0;
  std::unique_ptr<NatsConnection> connection_;  // last: ends first
};

}  // namespace holdfast
