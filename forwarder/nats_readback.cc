#include "forwarder/nats_readback.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "forwarder/nats_conditions.h"
#include "forwarder/nats_stream.h"
#include "forwarder/nats_wire.h"

namespace holdfast {
namespace {

constexpr auto kAnswerLimit = std::chrono::seconds(10);
constexpr std::size_t kMostMessages = 100'000;  // read in one look

Error unavailable(std::string text) {
  return {ErrorKind::unavailable, std::move(text)};
}

std::string_view id_of(const StoredContent& stored) {
  const auto found = std::find_if(stored.headers.begin(), stored.headers.end(),
                                  [](const Header& header) { return header.name == kIdHeader; });
  return found == stored.headers.end() ? std::string_view() : std::string_view(found->value);
}

class NatsReadback : public Readback {
 public:
  explicit NatsReadback(NatsTargetOptions options) : options_(std::move(options)) {}

  Result<std::vector<Held>> look(std::span<const Delivery> records) override {
    if (records.empty()) return std::vector<Held>();
    HOLDFAST_TRY(reach(records.front(), From::end));
    const auto found = find(records);
    if (!found.ok()) return found.error();
    std::vector<Held> held(records.size());
    for (std::size_t place = 0; place < records.size(); ++place) {
      held[place].copies = (*found)[place].size();
      for (const StoredContent& copy : (*found)[place]) {
        held[place].as_sent &= is_same_message(copy, records[place]);
        held[place].position = std::min(held[place].position.value_or(copy.place.sequence), copy.place.sequence);
      }
    }
    return held;
  }

  Result<void> remove(std::span<const Delivery> records) override {
    if (records.empty()) return {};
    HOLDFAST_TRY(reach(records.front(), From::beginning));
    const auto found = find(records);
    if (!found.ok()) return found.error();
    for (const auto& copies : *found) {
      for (const StoredContent& copy : copies) {
        const auto reply = ask(delete_message_subject(stream_), delete_message_request(copy.place.sequence));
        if (!reply.ok()) return reply.error();
        const auto error = parse_api_error(*reply);
        if (error && !error->is(ApiCode::no_message))
          return unavailable("a message cannot be deleted: " + error_name(*error));
      }
    }
    return {};
  }

 private:
  using Copies = std::vector<StoredContent>;
  enum class From : std::uint8_t { beginning, end };

  // Connected, and it is known where to look; from where is what the first call says.
  Result<void> reach(const Delivery& record, From from) {
    if (!connection_ || !connection_->alive()) {
      auto connection = NatsConnection::connect(options_.nats);
      if (!connection.ok()) return connection.error();
      connection_ = *std::move(connection);
    }
    if (!stream_.empty()) return {};
    auto stream = stream_behind(*connection_, options_, record);
    if (!stream.ok()) return stream.error();
    const auto reply = ask(stream_info_subject(*stream), "");
    if (!reply.ok()) return reply.error();
    const auto info = parse_stream_info(*reply);
    if (const auto* error = std::get_if<ApiError>(&info))
      return unavailable("the stream cannot be read back: " + error_name(*error));
    begin_ = from == From::beginning ? 1 : std::get<StreamInfo>(info).last_sequence + 1;
    stream_ = *std::move(stream);
    return {};
  }

  // Each subject is read once, however many of the records went to it.
  Result<std::vector<Copies>> find(std::span<const Delivery> records) {
    std::vector<Copies> found(records.size());
    std::map<std::string, std::multimap<std::string_view, std::size_t>> places;  // by subject, by key
    for (std::size_t place = 0; place < records.size(); ++place) {
      const auto wire = wire_for(records[place], options_.to, options_.site);
      if (wire) places[wire->subject].emplace(records[place].wire_key, place);
    }
    read_ = 0;
    for (const auto& [subject, by_key] : places) {
      HOLDFAST_TRY(read(subject, [&](StoredContent stored) {
        const auto [first, last] = by_key.equal_range(id_of(stored));
        for (auto at = first; at != last; ++at) found[at->second].push_back(stored);
      }));
    }
    return found;
  }

  template <typename Visit>
  Result<void> read(const std::string& subject, Visit visit) {
    for (std::uint64_t at = begin_;;) {
      if (++read_ > kMostMessages) return unavailable("the stream has too many messages to be read back");
      const bool bucket = options_.to.bucket.has_value();
      const auto reply =
          ask(get_message_subject(stream_), bucket ? last_message_request(subject) : next_message_request(at, subject));
      if (!reply.ok()) return reply.error();
      auto message = parse_stored_content(*reply);
      if (const auto* error = std::get_if<ApiError>(&message)) {
        if (error->is(ApiCode::no_message)) return {};
        return unavailable("a message cannot be read back: " + error_name(*error));
      }
      at = std::get<StoredContent>(message).place.sequence + 1;
      visit(std::get<StoredContent>(std::move(message)));
      if (bucket) return {};
    }
  }

  Result<std::string> ask(const std::string& subject, const std::string& request) {
    const auto reply = connection_->request(subject, request, kAnswerLimit);
    if (!reply.ok()) return reply.error();
    if (reply->status != 0) return unavailable(fmt::format("JetStream does not answer (status {})", reply->status));
    return reply->payload;
  }

  const NatsTargetOptions options_;
  std::string stream_;
  std::unique_ptr<NatsConnection> connection_;
  std::uint64_t begin_ = 1;  // what is older is not looked at
  std::size_t read_ = 0;     // messages, in this look
};

}  // namespace

std::unique_ptr<Readback> make_nats_readback(NatsTargetOptions options) {
  options.nats.connect_to.clear();
  return std::make_unique<NatsReadback>(std::move(options));
}

}  // namespace holdfast
