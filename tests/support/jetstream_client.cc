#include "tests/support/jetstream_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "spool/check.h"

namespace holdfast {
namespace {

constexpr auto kLimit = std::chrono::seconds(10);
constexpr std::uint64_t kWindow = 4000;  // publishes that are not acknowledged yet

std::unique_ptr<NatsConnection> connect(const NatsOptions& options) {
  auto connection = NatsConnection::connect(options);
  if (!connection.ok()) {
    std::fprintf(stderr, "%s\n", connection.error().text.c_str());
    std::abort();
  }
  return *std::move(connection);
}

NatsOptions options_for(const std::string& url) {
  NatsOptions options;
  options.url = url;
  options.client_name = "test";
  return options;
}

void check_done(const NatsReply& reply) {
  const auto error = parse_api_error(reply.payload);
  if (!error) return;
  std::fprintf(stderr, "JetStream: %s %s\n", error_name(*error).c_str(), error->words.c_str());
  std::abort();
}

}  // namespace

std::string SeenMessage::header(const std::string& name) const {
  for (const Header& header : headers) {
    if (header.name == name) return header.value;
  }
  return {};
}

JetStreamClient::JetStreamClient(const std::string& url) : JetStreamClient(options_for(url)) {}

JetStreamClient::JetStreamClient(const NatsOptions& options) : connection_(connect(options)) {}

// Until somebody answers there.
NatsReply JetStreamClient::ask(const std::string& subject, const std::string& request) {
  NatsReply answer;
  const bool answered = eventually([&] {
    const auto reply = connection_->request(subject, request, kLimit);
    if (!reply.ok() || reply->status != 0) return false;
    answer = *reply;
    return true;
  });
  CHECK(answered);
  return answer;
}

void JetStreamClient::make_stream(const std::string& name, const std::vector<std::string>& subjects) {
  StreamRequest request;
  request.name = name;
  request.subjects = subjects;
  make_stream(request);
}

void JetStreamClient::make_stream(const StreamRequest& request) {
  check_done(ask(create_stream_subject(request.name), create_stream_request(request)));
}

void JetStreamClient::delete_stream(const std::string& name) {
  check_done(ask(delete_stream_subject(name), ""));
}

void JetStreamClient::delete_messages(const std::string& stream_name, const std::string& subject) {
  check_done(ask("$JS.API.STREAM.PURGE." + stream_name, fmt::format(R"({{"filter":"{}"}})", subject)));
}

void JetStreamClient::delete_consumer(const std::string& stream, const std::string& consumer) {
  check_done(ask(delete_consumer_subject(stream, consumer), ""));
}

StreamInfo JetStreamClient::stream(const std::string& name) {
  StreamInfo info;
  const bool there = eventually([&] {
    auto reply = parse_stream_info(ask(stream_info_subject(name), "").payload);
    if (!std::holds_alternative<StreamInfo>(reply)) return false;
    info = std::get<StreamInfo>(std::move(reply));
    return true;
  });
  CHECK(there);
  return info;
}

std::optional<ConsumerInfo> JetStreamClient::consumer(const std::string& stream, const std::string& name) {
  auto reply = parse_consumer_info(ask(consumer_info_subject(stream, name), "").payload);
  if (!std::holds_alternative<ConsumerInfo>(reply)) return std::nullopt;
  return std::get<ConsumerInfo>(std::move(reply));
}

void JetStreamClient::make_consumer(const std::string& stream, const ConsumerConfig& config) {
  check_done(ask(create_consumer_subject(stream, config.name), create_consumer_request(stream, config)));
}

void JetStreamClient::publish(const std::string& subject, const std::string& payload,
                              const std::vector<Header>& headers) {
  const auto acknowledged = std::make_shared<std::atomic<bool>>(false);
  const std::string inbox = connection_->new_inbox();
  CHECK(connection_
            ->subscribe(inbox,
                        [acknowledged](const NatsMessage& message) {
                          CHECK(std::holds_alternative<PubAck>(parse_pub_ack(as_text(message.payload()))));
                          *acknowledged = true;
                        })
            .ok());
  CHECK(connection_->publish(subject, inbox, headers, as_bytes(payload)).ok());
  CHECK(eventually([&] { return acknowledged->load(); }, kLimit));
}

void JetStreamClient::publish_many(const std::string& subject, std::uint64_t first, std::uint64_t count,
                                   std::size_t size, const std::string& ids) {
  const auto acknowledged = std::make_shared<std::atomic<std::uint64_t>>(0);
  const std::string inbox = connection_->new_inbox();
  CHECK(connection_
            ->subscribe(inbox,
                        [acknowledged](const NatsMessage& message) {
                          CHECK(std::holds_alternative<PubAck>(parse_pub_ack(as_text(message.payload()))));
                          ++*acknowledged;
                        })
            .ok());
  for (std::uint64_t i = 0; i < count; ++i) {
    CHECK(eventually([&] { return i - *acknowledged < kWindow; }, kLimit));
    std::string payload = std::to_string(first + i);
    if (payload.size() < size) payload.append(size - payload.size(), '.');
    std::vector<Header> headers;
    if (!ids.empty()) headers.push_back({"message-id", ids + std::to_string(first + i)});
    CHECK(connection_->publish(subject, inbox, headers, as_bytes(payload)).ok());
  }
  CHECK(eventually([&] { return *acknowledged == count; }, kLimit));
}

std::vector<SeenMessage> JetStreamClient::read_all(const std::string& stream_name) {
  struct Pile {
    std::mutex mutex;
    std::vector<SeenMessage> messages;
  };
  const auto pile = std::make_shared<Pile>();
  const std::uint64_t wanted = stream(stream_name).messages;
  const std::string inbox = connection_->new_inbox();
  CHECK(connection_
            ->subscribe(inbox,
                        [pile](const NatsMessage& message) {
                          const auto position = parse_ack_subject(message.reply());
                          if (!position) return;
                          const std::lock_guard lock(pile->mutex);
                          pile->messages.push_back({std::string(message.subject()),
                                                    message.headers().value_or(std::vector<Header>{}),
                                                    std::string(as_text(message.payload())), position->stream_sequence,
                                                    position->timestamp_ns});
                        })
            .ok());
  const std::string name = "reader" + inbox.substr(inbox.rfind('.') + 1);
  const std::string request = fmt::format(
      R"({{"stream_name":"{}","config":{{"durable_name":"{}","deliver_policy":"all","ack_policy":"none"}}}})",
      stream_name, name);
  check_done(ask(fmt::format("$JS.API.CONSUMER.DURABLE.CREATE.{}.{}", stream_name, name), request));
  const std::string next = fmt::format("$JS.API.CONSUMER.MSG.NEXT.{}.{}", stream_name, name);
  // No more at once than the client keeps for us.
  for (std::uint64_t asked = 0; asked < wanted;) {
    const std::uint64_t some = std::min<std::uint64_t>(wanted - asked, 10'000);
    asked += some;
    CHECK(connection_->publish(next, inbox, {}, as_bytes(fmt::format(R"({{"batch":{}}})", some))).ok());
    CHECK(eventually(
        [&] {
          const std::lock_guard lock(pile->mutex);
          return pile->messages.size() >= asked;
        },
        2 * kLimit));
  }
  check_done(ask(fmt::format("$JS.API.CONSUMER.DELETE.{}.{}", stream_name, name), ""));
  const std::lock_guard lock(pile->mutex);
  return pile->messages;
}

}  // namespace holdfast
