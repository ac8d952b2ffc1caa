#include "tests/identity/hub_ear.h"

#include "spool/check.h"
#include "tests/support/patience.h"

namespace holdfast {
namespace {

// Heard, and in no stream.
constexpr const char* kMark = "telemetry.heard.so.far";

std::unique_ptr<NatsConnection> connect(const std::string& url) {
  NatsOptions options;
  options.url = url;
  auto made = NatsConnection::connect(options);
  CHECK(made.ok());
  return *std::move(made);
}

}  // namespace

HubEar::HubEar(const std::string& url) : connection_(connect(url)) {
  CHECK(connection_->subscribe("telemetry.>", [this](const NatsMessage& message) { heard(message); }).ok());
  CHECK(connection_->flush(std::chrono::seconds(5)).ok());
}

void HubEar::heard(const NatsMessage& message) {
  const std::lock_guard lock(mutex_);
  if (message.subject() == kMark) {
    ++marks_;
    return;
  }
  std::string key;
  for (const Header& header : message.headers().value_or(std::vector<Header>{})) {
    if (header.name == "Nats-Msg-Id") key = header.value;
  }
  keys_.push_back(std::move(key));
}

std::vector<std::string> HubEar::keys() {
  int before = 0;
  {
    const std::lock_guard lock(mutex_);
    before = marks_;
  }
  CHECK(connection_->publish(kMark, {}, {}, {}).ok());
  CHECK(eventually([&] {
    const std::lock_guard lock(mutex_);
    return marks_ > before;
  }));
  const std::lock_guard lock(mutex_);
  return keys_;
}

}  // namespace holdfast
