#include "forwarder/nats_messages.h"

#include <fmt/format.h>

#include <array>

#include "crypto/text.h"
#include "forwarder/nats_stream.h"

namespace holdfast {
namespace {

constexpr std::string_view kApi = "$JS.API.";
constexpr std::string_view kAckPrefix = "$JS.ACK.";

template <typename Number>
bool read_number(std::string_view text, Number& out) {
  const auto number = parse_decimal<Number>(text);
  if (number) out = *number;
  return number.has_value();
}

std::string api_subject(std::string_view verb, std::string_view stream, std::string_view consumer = {}) {
  return fmt::format("{}{}.{}{}{}", kApi, verb, stream, consumer.empty() ? "" : ".", consumer);
}

}  // namespace

std::optional<AckSubject> parse_ack_subject(std::string_view reply) {
  if (!reply.starts_with(kAckPrefix)) return std::nullopt;
  reply.remove_prefix(kAckPrefix.size());
  std::array<std::string_view, 10> tokens;
  std::size_t count = 0;
  for (std::size_t dot = 0; dot != std::string_view::npos; ++count) {
    if (count == tokens.size()) return std::nullopt;
    dot = reply.find('.');
    tokens[count] = reply.substr(0, dot);
    if (tokens[count].empty()) return std::nullopt;
    if (dot != std::string_view::npos) reply.remove_prefix(dot + 1);
  }
  // Stream, consumer and five numbers; with domain and account before them two more; and perhaps a token at the end.
  if (count < 7) return std::nullopt;
  const std::string_view* token = tokens.data() + (count >= 9 ? 2 : 0);
  AckSubject ack;
  ack.stream = token[0];
  ack.consumer = token[1];
  const bool good = read_number(token[2], ack.deliveries) && read_number(token[3], ack.stream_sequence) &&
                    read_number(token[4], ack.consumer_sequence) && read_number(token[5], ack.timestamp_ns) &&
                    read_number(token[6], ack.pending);
  if (!good) return std::nullopt;
  return ack;
}

std::string error_name(const ApiError& error) {
  if (error.err_code == 0 && error.code == 0) return "a reply that is not one";
  return fmt::format("error {}", error.err_code != 0 ? error.err_code : error.code);
}

std::string in_domain(std::string api_subject, std::string_view domain) {
  constexpr std::string_view kRoot = "$JS.";
  if (domain.empty() || !api_subject.starts_with(kApi)) return api_subject;
  return api_subject.insert(kRoot.size(), fmt::format("{}.", domain));
}

std::string stream_names_subject() {
  return "$JS.API.STREAM.NAMES";
}
std::string stream_info_subject(std::string_view stream) {
  return api_subject("STREAM.INFO", stream);
}
std::string get_message_subject(std::string_view stream) {
  return api_subject("STREAM.MSG.GET", stream);
}
std::string delete_message_subject(std::string_view stream) {
  return api_subject("STREAM.MSG.DELETE", stream);
}
std::string consumer_info_subject(std::string_view stream, std::string_view consumer) {
  return api_subject("CONSUMER.INFO", stream, consumer);
}
std::string create_consumer_subject(std::string_view stream, std::string_view consumer) {
  return api_subject("CONSUMER.DURABLE.CREATE", stream, consumer);
}
std::string delete_consumer_subject(std::string_view stream, std::string_view consumer) {
  return api_subject("CONSUMER.DELETE", stream, consumer);
}
std::string pull_subject(std::string_view stream, std::string_view consumer) {
  return api_subject("CONSUMER.MSG.NEXT", stream, consumer);
}
std::string create_stream_subject(std::string_view stream) {
  return api_subject("STREAM.CREATE", stream);
}
std::string delete_stream_subject(std::string_view stream) {
  return api_subject("STREAM.DELETE", stream);
}

std::string get_message_request(std::uint64_t sequence) {
  return fmt::format(R"({{"seq":{}}})", sequence);
}

std::string pull_request(const PullRequest& request) {
  const std::string bytes = request.max_bytes > 0 ? fmt::format(R"(,"max_bytes":{})", request.max_bytes) : "";
  return fmt::format(R"({{"batch":{}{},"expires":{},"idle_heartbeat":{}}})", request.batch, bytes,
                     request.expires.count(), request.heartbeat.count());
}

}  // namespace holdfast
