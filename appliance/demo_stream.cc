#include "appliance/demo_stream.h"

#include <fmt/format.h>

#include <atomic>
#include <charconv>
#include <mutex>
#include <thread>

#include "forwarder/nats_messages.h"
#include "forwarder/nats_stream.h"

namespace holdfast {
namespace {

constexpr Nanoseconds kServerLimit = std::chrono::seconds(20);
constexpr Nanoseconds kReplyLimit = std::chrono::seconds(10);
constexpr auto kLook = std::chrono::milliseconds(5);
constexpr std::uint64_t kWindow = 2000;  // messages that are not acknowledged yet
constexpr std::uint64_t kProgressEvery = 500;
constexpr Nanoseconds kDuplicateWindow = std::chrono::minutes(10);

Error api_error(const std::string& what, const ApiError& error) {
  return {ErrorKind::unavailable, fmt::format("{}: JetStream says {}", what, error_name(error))};
}

}  // namespace

bool wait_until(const std::function<bool()>& condition, Nanoseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(kLook);
  }
  return true;
}

Result<std::unique_ptr<DemoStream>> DemoStream::open(const std::string& url, const std::string& stream,
                                                     const std::string& subject) {
  NatsOptions options;
  options.url = url;
  options.client_name = "holdfast-demo";
  std::unique_ptr<NatsConnection> connection;
  StreamRequest request;
  request.name = stream;
  request.subjects = {subject};
  request.duplicate_window = kDuplicateWindow;
  std::optional<ApiError> refused;
  const bool made = wait_until(
      [&] {
        if (!connection) {
          auto fresh = NatsConnection::connect(options);
          if (!fresh) return false;
          connection = *std::move(fresh);
        }
        const auto reply =
            connection->request(create_stream_subject(stream), create_stream_request(request), kReplyLimit);
        if (!reply || reply->status != 0) return false;  // JetStream is not up yet
        refused = parse_api_error(reply->payload);
        return true;
      },
      kServerLimit);
  if (!made) return Error{ErrorKind::unavailable, "the nats-server at " + url + " does not answer"};
  if (refused) return api_error("making stream " + stream, *refused);
  return std::unique_ptr<DemoStream>(new DemoStream(std::move(connection), stream, subject));
}

Result<void> DemoStream::publish(std::uint64_t first, std::uint64_t count, std::size_t size, const std::string& marker,
                                 const std::function<void(std::uint64_t)>& progress) {
  struct Tally {
    std::atomic<std::uint64_t> acknowledged{0};
    std::atomic<std::uint64_t> refused{0};
  };
  const auto tally = std::make_shared<Tally>();
  const std::string inbox = connection_->new_inbox();
  HOLDFAST_TRY(connection_->subscribe(inbox, [tally](const NatsMessage& message) {
    const bool taken = std::holds_alternative<PubAck>(parse_pub_ack(as_text(message.payload())));
    ++(taken ? tally->acknowledged : tally->refused);
  }));
  const std::string subject = subject_.substr(0, subject_.size() - 1) + "engine";
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto room = [&] { return i - tally->acknowledged < kWindow || tally->refused > 0; };
    if (!wait_until(room, kReplyLimit))
      return Error{ErrorKind::unavailable, "the edge server has stopped acknowledging"};
    std::string payload = fmt::format("{} {:012} ", marker, first + i);
    payload.resize(std::max(size, payload.size()), '.');
    HOLDFAST_TRY(connection_->publish(subject, inbox, {}, as_bytes(payload)));
    if (i % kProgressEvery == 0) progress(i);
  }
  const bool all = wait_until([&] { return tally->acknowledged + tally->refused >= count; }, kReplyLimit);
  if (!all || tally->refused > 0) return Error{ErrorKind::unavailable, "the edge server has not taken every message"};
  progress(count);
  return {};
}

Result<std::uint64_t> DemoStream::messages() {
  const auto reply = connection_->request(stream_info_subject(stream_), "", kReplyLimit);
  if (!reply) return reply.error();
  const auto info = parse_stream_info(reply->payload);
  if (const ApiError* error = std::get_if<ApiError>(&info)) return api_error("asking for stream " + stream_, *error);
  return std::get<StreamInfo>(info).messages;
}

Result<std::vector<std::uint32_t>> DemoStream::count_by_content(std::uint64_t most) {
  const auto wanted = messages();
  if (!wanted) return wanted.error();
  struct Pile {
    std::mutex mutex;
    std::vector<std::uint32_t> counts;
    std::uint64_t seen = 0;
  };
  const auto pile = std::make_shared<Pile>();
  pile->counts.resize(most + 1);
  const std::string inbox = connection_->new_inbox();
  HOLDFAST_TRY(connection_->subscribe(inbox, [pile, most](const NatsMessage& message) {
    if (!parse_ack_subject(message.reply())) return;
    const std::string_view text = as_text(message.payload());
    const std::size_t at = text.find(' ');
    std::uint64_t number = 0;
    if (at != text.npos) std::from_chars(text.data() + at + 1, text.data() + text.size(), number);
    const std::lock_guard lock(pile->mutex);
    ++pile->counts[number <= most ? number : 0];
    ++pile->seen;
  }));
  const std::string request =
      fmt::format(R"({{"stream_name":"{}","config":{{"deliver_subject":"{}","deliver_policy":"all",)"
                  R"("ack_policy":"none","replay_policy":"instant"}}}})",
                  stream_, inbox);
  const auto reply = connection_->request("$JS.API.CONSUMER.CREATE." + stream_, request, kReplyLimit);
  if (!reply) return reply.error();
  if (const auto error = parse_api_error(reply->payload)) return api_error("reading stream " + stream_, *error);
  const auto all = [&] {
    const std::lock_guard lock(pile->mutex);
    return pile->seen >= *wanted;
  };
  if (!wait_until(all, std::chrono::minutes(2)))
    return Error{ErrorKind::unavailable, "the hub has not shown all its messages"};
  const std::lock_guard lock(pile->mutex);
  return pile->counts;
}

}  // namespace holdfast
