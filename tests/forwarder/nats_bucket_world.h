// A key-value bucket of a real server as a world of the contract.
#pragma once

#include "forwarder/nats_target.h"
#include "tests/forwarder/target_worlds.h"
#include "tests/support/jetstream_client.h"
#include "tests/support/nats_server.h"

namespace holdfast {

class NatsBucketWorld : public TargetWorld {
 public:
  NatsBucketWorld() { JetStreamClient(server_.url()).make_stream("KV_STATE", {"$KV.STATE.>"}); }

  std::unique_ptr<Target> target() override {
    NatsTargetOptions options;
    options.site = "truck-07";
    options.nats.url = server_.url();
    options.nats.connect_limit = std::chrono::minutes(2);  // a test that waits for it has failed
    options.progress_limit = std::chrono::minutes(2);
    options.to.bucket = NatsBucket{"STATE", std::nullopt, ExistingValue::fail};
    return std::make_unique<NatsTarget>(std::move(options));
  }
  std::multimap<std::string, std::string> upstream() override {
    std::multimap<std::string, std::string> copies;
    for (const SeenMessage& message : JetStreamClient(server_.url()).read_all("KV_STATE"))
      copies.emplace(message.header("Nats-Msg-Id"), message.payload);
    return copies;
  }
  // While the server knows the id, it looks at nothing else (nats_bucket_test has it without).
  bool tells_conflicts() const override { return false; }
  void break_upstream() override { server_.stop(); }
  void repair_upstream() override { server_.start(); }
  bool hang(Target&) override {
    server_.freeze();
    return true;
  }

 private:
  NatsServer server_;
};

}  // namespace holdfast
