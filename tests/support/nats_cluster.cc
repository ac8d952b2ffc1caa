#include "tests/support/nats_cluster.h"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "forwarder/nats_connection.h"
#include "forwarder/nats_messages.h"
#include "spool/check.h"
#include "tests/support/patience.h"

namespace holdfast {
namespace {

constexpr auto kAnswerLimit = std::chrono::seconds(5);
constexpr auto kFormLimit = std::chrono::minutes(2);  // an election takes its seconds

std::string member_name(std::size_t number) {
  return fmt::format("member-{}", number);
}

// Empty: no answer.
std::string ask(const std::string& url, const std::string& subject, const std::string& request) {
  NatsOptions options;
  options.url = url;
  options.client_name = "test";
  const auto connection = NatsConnection::connect(options);
  if (!connection.ok()) return {};
  const auto reply = (*connection)->request(subject, request, kAnswerLimit);
  return reply.ok() && reply->status == 0 ? reply->payload : std::string();
}

}  // namespace

NatsCluster::NatsCluster() {
  std::array<int, kMembers> ports{};
  for (int& port : ports) port = free_port();
  for (std::size_t number = 0; number < kMembers; ++number) {
    std::string routes;
    for (const int port : ports) routes += fmt::format("{}\"nats://127.0.0.1:{}\"", routes.empty() ? "" : ", ", port);
    NatsServerOptions options;
    options.extra = fmt::format("server_name: \"{}\"\ncluster {{ name: hub, listen: \"127.0.0.1:{}\", routes: [{}] }}",
                                member_name(number), ports[number], routes);
    members_[number] = std::make_unique<NatsServer>(options);
  }
}

std::string NatsCluster::url() const {
  std::string all;
  for (const auto& member : members_) all += (all.empty() ? "" : ",") + member->url();
  return all;
}

NatsServer& NatsCluster::one_that_runs() {
  for (const auto& member : members_) {
    if (member->running()) return *member;
  }
  CHECK(false);
  return *members_.front();
}

void NatsCluster::make_stream(StreamRequest request) {
  request.replicas = kMembers;
  const bool made = eventually(
      [&] {
        const std::string answer =
            ask(one_that_runs().url(), create_stream_subject(request.name), create_stream_request(request));
        return !answer.empty() && !parse_api_error(answer);
      },
      kFormLimit);
  CHECK(made);
}

std::optional<std::size_t> NatsCluster::leader(const std::string& stream) {
  const std::string answer = ask(one_that_runs().url(), stream_info_subject(stream), "");
  boost::system::error_code error;
  const boost::json::value parsed = boost::json::parse(answer, error);
  const auto* cluster = error || !parsed.is_object() ? nullptr : parsed.as_object().if_contains("cluster");
  const auto* name = cluster == nullptr || !cluster->is_object() ? nullptr : cluster->as_object().if_contains("leader");
  for (std::size_t number = 0; number < kMembers; ++number) {
    if (name != nullptr && name->is_string() && name->as_string() == member_name(number)) return number;
  }
  return std::nullopt;
}

}  // namespace holdfast
