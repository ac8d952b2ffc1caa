// Three real nats-servers that are one JetStream cluster, on free ports of the loopback: any of them can be killed and
// started again. Goes with the test.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "forwarder/nats_stream.h"
#include "tests/support/nats_server.h"

namespace holdfast {

class NatsCluster {
 public:
  static constexpr std::size_t kMembers = 3;

  NatsCluster();

  NatsServer& member(std::size_t number) { return *members_[number]; }
  std::string url() const;  // of all of them, with commas between
  // With a replica on each; tries until the cluster is ready for it.
  void make_stream(StreamRequest request);
  // The number of the member that leads the stream's replicas, as one that runs says; nothing: none does.
  std::optional<std::size_t> leader(const std::string& stream);

 private:
  NatsServer& one_that_runs();

  std::array<std::unique_ptr<NatsServer>, kMembers> members_;
};

}  // namespace holdfast
