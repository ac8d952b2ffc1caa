#include "forwarder/nats_readback.h"

#include <algorithm>
#include <map>

#include "forwarder/nats_conditions.h"
#include "forwarder/nats_stream.h"
#include "spool/ascii.h"

namespace holdfast {
namespace {

constexpr auto kAskLimit = std::chrono::seconds(5);
constexpr std::size_t kMostRead = 100'000;  // messages in one walk: more is no stream to try things out on

Error unavailable(std::string text) {
  return {ErrorKind::unavailable, std::move(text)};
}

std::string header_of(const StoredContent& message, std::string_view name) {
  for (const Header& header : message.headers) {
    if (equal_ignoring_case(header.name, name)) return header.value;
  }
  return {};
}

class NatsReadback : public Readback {
 public:
  explicit NatsReadback(NatsOptions nats) : nats_(std::move(nats)) {}

  Result<std::vector<Held>> look(std::span<const Delivery> records) override {
    if (records.empty()) return std::vector<Held>();
    HOLDFAST_TRY(find(records.front(), false));
    HOLDFAST_TRY(read_on());
    std::vector<Held> all;
    for (const Delivery& delivery : records) {
      Held held;
      const auto [begin, end] = messages_.equal_range(delivery.wire_key);
      for (auto at = begin; at != end; ++at) {
        ++held.copies;
        held.as_sent = held.as_sent && at->second.payload == delivery.record->envelope.payload;
        held.position = held.position ? std::min(*held.position, at->second.sequence) : at->second.sequence;
      }
      all.push_back(held);
    }
    return all;
  }

  Result<void> remove(std::span<const Delivery> records) override {
    if (records.empty()) return {};
    HOLDFAST_TRY(find(records.front(), true));
    HOLDFAST_TRY(read_on());
    for (const Delivery& delivery : records) {
      const auto [begin, end] = messages_.equal_range(delivery.wire_key);
      for (auto at = begin; at != end; at = messages_.erase(at)) HOLDFAST_TRY(erase(at->second.sequence));
    }
    return {};
  }

 private:
  struct Message {
    std::uint64_t sequence = 0;
    Bytes payload;
  };

  // The stream, and where to read from. All records of one run have one subject.
  Result<void> find(const Delivery& record, bool from_the_beginning) {
    if (!connection_ || !connection_->alive()) {
      auto connection = NatsConnection::connect(nats_);
      if (!connection.ok()) return connection.error();
      connection_ = *std::move(connection);
    }
    if (!stream_.empty()) return {};
    subject_ = record.record->envelope.subject;
    auto stream = stream_that_takes(*connection_, subject_);
    if (!stream.ok()) return stream.error();
    const auto reply = connection_->request(stream_info_subject(*stream), "", kAskLimit);
    if (!reply.ok()) return reply.error();
    const auto info = parse_stream_info(reply->payload);
    const auto* found = std::get_if<StreamInfo>(&info);
    if (found == nullptr) return unavailable("the stream says nothing of itself");
    next_ = from_the_beginning ? 1 : found->last_sequence + 1;
    stream_ = *std::move(stream);
    return {};
  }

  Result<void> read_on() {
    for (std::size_t count = 0; count < kMostRead; ++count) {
      const auto reply =
          connection_->request(get_message_subject(stream_), next_message_request(next_, subject_), kAskLimit);
      if (!reply.ok()) return reply.error();
      auto answer = parse_stored_content(reply->payload);
      const auto* error = std::get_if<ApiError>(&answer);
      if (error != nullptr && error->is(ApiCode::no_message)) return {};
      if (error != nullptr) return unavailable("the stream does not show its messages: " + error_name(*error));
      auto& message = std::get<StoredContent>(answer);
      next_ = message.place.sequence + 1;
      // Of others nothing is kept.
      if (header_of(message, "Holdfast-Certification").empty()) continue;
      messages_.emplace(header_of(message, "Nats-Msg-Id"), Message{message.place.sequence, std::move(message.payload)});
    }
    return unavailable("too many messages are on the subject");
  }

  Result<void> erase(std::uint64_t sequence) {
    const auto reply =
        connection_->request(delete_message_subject(stream_), delete_message_request(sequence), kAskLimit);
    if (!reply.ok()) return reply.error();
    const auto error = parse_api_error(reply->payload);
    constexpr int kNotThere = 404;
    if (!error || error->code == kNotThere || error->is(ApiCode::no_message)) return {};
    return unavailable("the stream does not let a message be deleted: " + error_name(*error));
  }

  const NatsOptions nats_;
  std::unique_ptr<NatsConnection> connection_;
  std::string stream_;
  std::string subject_;
  std::uint64_t next_ = 1;
  std::multimap<std::string, Message> messages_;  // by their ids: certification records that were read and not removed
};

}  // namespace

std::unique_ptr<Readback> make_nats_readback(const NatsTargetOptions& target) {
  return std::make_unique<NatsReadback>(target.nats);
}

}  // namespace holdfast
