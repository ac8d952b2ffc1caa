// What JetStream says and is told, as values. Pure: a parser takes any bytes, and refuses rather than guesses.
//
// Replies come from a server that may be anything: no text of theirs is shown or logged, and numbers that do not fit
// are refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "forwarder/utc_time.h"
#include "spool/clock.h"
#include "spool/envelope.h"

namespace holdfast {

// The reply subject of a delivered message: what acknowledging it takes, and where it stood.
struct AckSubject {
  std::string_view stream;
  std::string_view consumer;
  std::uint64_t deliveries = 0;
  std::uint64_t stream_sequence = 0;
  std::uint64_t consumer_sequence = 0;
  std::int64_t timestamp_ns = 0;
  std::uint64_t pending = 0;
};
// Both forms, without and with domain and account, and with one more token at the end.
std::optional<AckSubject> parse_ack_subject(std::string_view reply);

// Codes of JetStream that we act on (err_code).
enum class ApiCode : std::uint16_t {
  consumer_not_found = 10014,
  no_resources = 10023,
  no_message = 10037,
  not_enabled_for_account = 10039,
  no_storage = 10047,
  too_large = 10054,
  stream_not_found = 10059,
  wrong_stream = 10060,
  wrong_last_sequence = 10071,
  not_enabled = 10076,
  store_failed = 10077,
  header_too_large = 10097,
  stream_sealed = 10109,
  stream_offline = 10118,
  duplicate_in_progress = 10158,
  wrong_last_sequence_meanwhile = 10164,
};

struct ApiError {
  int code = 0;       // as HTTP's
  int err_code = 0;   // JetStream's own; 0: the reply was not one
  std::string words;  // the server's; only ever kept sealed beside a record
  bool is(ApiCode wanted) const { return err_code == static_cast<int>(wanted); }
};
// "error 10059": for texts.
std::string error_name(const ApiError& error);

template <typename T>
using ApiReply = std::variant<T, ApiError>;

// A "duplicate" without a sequence is no acknowledgement: a cluster says so of a message that it has not stored yet. It
// comes out as duplicate_in_progress, as later servers have it.
struct PubAck {
  std::uint64_t sequence = 0;
  bool duplicate = false;
};

struct StreamInfo {
  std::string created;  // as the server writes it: for comparing
  std::vector<std::string> subjects;
  bool work_queue = false;
  bool only_subjects = true;  // false: it also takes from other streams (mirror, sources)
  std::uint64_t messages = 0;
  std::uint64_t first_sequence = 0;
  std::uint64_t last_sequence = 0;
};

struct ConsumerConfig {
  std::string name;
  std::string description;
  std::vector<std::string> filters;  // none: all that the stream has
  std::string deliver_policy = "all";
  std::uint64_t start_sequence = 0;  // with deliver_policy by_start_sequence
  std::string start_time;            // with by_start_time: RFC 3339
  std::string ack_policy = "explicit";
  std::string replay_policy = "instant";
  Nanoseconds ack_wait{0};
  std::vector<Nanoseconds> backoff;  // of one delivery after the other, in place of ack_wait
  std::int64_t max_deliver = -1;
  std::int64_t max_ack_pending = 0;
  bool push = false;  // it has a deliver_subject
  bool headers_only = false;
};

struct ConsumerInfo {
  std::string created;
  ConsumerConfig config;
  std::uint64_t delivered_sequence = 0;  // of the stream: the last that was handed out
  std::uint64_t floor_sequence = 0;      // of the stream: all up to it are acknowledged
  std::uint64_t pending = 0;             // not handed out yet
  std::uint64_t unacknowledged = 0;      // of what was
};

struct StoredMessage {
  std::string subject;
  std::uint64_t sequence = 0;
  std::int64_t timestamp_ns = 0;
};

struct StoredContent {
  StoredMessage place;
  std::vector<Header> headers;
  Bytes payload;
};

ApiReply<PubAck> parse_pub_ack(std::string_view json);
ApiReply<StreamInfo> parse_stream_info(std::string_view json);
ApiReply<ConsumerInfo> parse_consumer_info(std::string_view json);
ApiReply<StoredMessage> parse_stored_message(std::string_view json);
ApiReply<StoredContent> parse_stored_content(std::string_view json);
// Of a request whose success holds nothing that we read (a deletion).
std::optional<ApiError> parse_api_error(std::string_view json);

// Of another JetStream domain than that of the server we are connected to; none: as it is.
std::string in_domain(std::string api_subject, std::string_view domain);
std::string stream_info_subject(std::string_view stream);
std::string get_message_subject(std::string_view stream);
std::string consumer_info_subject(std::string_view stream, std::string_view consumer);
std::string create_consumer_subject(std::string_view stream, std::string_view consumer);
std::string delete_consumer_subject(std::string_view stream, std::string_view consumer);
std::string pull_subject(std::string_view stream, std::string_view consumer);
std::string create_consumer_request(std::string_view stream, const ConsumerConfig& config);
std::string get_message_request(std::uint64_t sequence);
// The first at or above a sequence whose subject matches a filter.
std::string next_message_request(std::uint64_t at_or_above, std::string_view filter);
std::string last_message_request(std::string_view subject);

struct PullRequest {
  std::uint64_t batch = 1;
  std::uint64_t max_bytes = 0;  // 0: no limit
  Nanoseconds expires{0};
  Nanoseconds heartbeat{0};
};
std::string pull_request(const PullRequest& request);

}  // namespace holdfast
