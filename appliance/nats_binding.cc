// The part of the source that finds what to pull from: the stream, the consumer, and whether they can be trusted.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "appliance/nats_source.h"

namespace holdfast {
namespace {

constexpr auto kAnswerLimit = std::chrono::seconds(4);       // for one question to JetStream
constexpr auto kLookAgain = std::chrono::milliseconds(600);  // before it is believed that a stream went back
constexpr int kNobody = 503;
constexpr Nanoseconds kShortestBackoff = std::chrono::seconds(1);

// The answer of JetStream; an error of the connection where there is none.
template <typename T>
Result<ApiReply<T>> ask(NatsConnection& connection, const std::string& domain, const std::string& subject,
                        const std::string& request, ApiReply<T> (*parse)(std::string_view)) {
  const auto reply = connection.request(in_domain(subject, domain), request, kAnswerLimit);
  if (!reply.ok()) return reply.error();
  if (reply->status != 0) return ApiReply<T>(ApiError{reply->status, 0, {}});
  return parse(reply->payload);
}

bool means_no_stream(const ApiError& error) {
  return error.is(ApiCode::stream_not_found) || error.is(ApiCode::not_enabled) ||
         error.is(ApiCode::not_enabled_for_account) || (error.code == kNobody && error.err_code == 0);
}

// What a question about one stored message came to; a message that is not there is an answer.
Result<std::optional<StoredMessage>> stored_or_none(Result<ApiReply<StoredMessage>> answer) {
  if (!answer.ok()) return answer.error();
  if (auto* message = std::get_if<StoredMessage>(&*answer)) return std::optional(std::move(*message));
  const ApiError& error = std::get<ApiError>(*answer);
  if (error.is(ApiCode::no_message)) return std::optional<StoredMessage>{};
  return Error{ErrorKind::unavailable, "asking for a stored message gave " + error_name(error)};
}

std::string start_text(std::optional<std::uint64_t> start) {
  if (!start) return "as configured";
  return *start > 1 ? fmt::format("from sequence {} on", *start) : "from its beginning on";
}

}  // namespace

void NatsSource::note_find(std::string text) {
  ++status_.finds;
  status_.last_find = std::move(text);
}

NatsSource::Bind NatsSource::refuse(SourceState state, std::string why) {
  const std::lock_guard lock(mutex_);
  status_.state = state;
  status_.why = std::move(why);
  return Bind::not_yet;
}

NatsSource::Bind NatsSource::fail(std::string why) {
  const std::lock_guard lock(mutex_);
  status_.state = SourceState::connecting;
  status_.why = std::move(why);
  return Bind::failed;
}

// Stream and consumer as they are; the consumer is made when it is not there. Nothing: `end` says how it went.
std::optional<NatsSource::Found> NatsSource::find(NatsConnection& connection, Bind& end) {
  Found found;
  const auto stream = ask(connection, options_.domain, stream_info_subject(options_.stream), "", parse_stream_info);
  if (!stream.ok()) {
    end = fail("JetStream does not answer: " + stream.error().text);
    return std::nullopt;
  }
  if (const auto* error = std::get_if<ApiError>(&*stream)) {
    const std::string why = fmt::format("stream {}: {}", options_.stream,
                                        error->is(ApiCode::stream_not_found) ? "is not there" : error_name(*error));
    end = means_no_stream(*error) ? refuse(SourceState::no_stream, why) : fail(why);
    return std::nullopt;
  }
  found.stream = std::get<StreamInfo>(*stream);

  const auto consumer = ask(connection, options_.domain, consumer_info_subject(options_.stream, options_.consumer.name),
                            "", parse_consumer_info);
  if (!consumer.ok()) {
    end = fail("JetStream does not answer: " + consumer.error().text);
    return std::nullopt;
  }
  if (const auto* info = std::get_if<ConsumerInfo>(&*consumer)) {
    found.consumer = *info;
    return found;
  }
  const ApiError& error = std::get<ApiError>(*consumer);
  if (!error.is(ApiCode::consumer_not_found)) {
    const std::string why = fmt::format("consumer {}: {}", options_.consumer.name, error_name(error));
    end = means_no_stream(error) ? refuse(SourceState::no_stream, why) : fail(why);
    return std::nullopt;
  }
  if (options_.bind_only) {
    end = refuse(SourceState::held, fmt::format("consumer {} of stream {} is not there, and consumer_mode is \"bind\"",
                                                options_.consumer.name, options_.stream));
    return std::nullopt;
  }
  const auto start = start_of_missing(connection, found.stream);
  auto made = make_consumer(connection, start, end);
  if (!made) return std::nullopt;
  found.consumer = *std::move(made);
  const std::lock_guard lock(mutex_);
  if (start)
    note_find(fmt::format("consumer {} was gone; it hands out again {}", options_.consumer.name, start_text(start)));
  return found;
}

// Where to begin when the consumer that we knew is gone: behind its floor, if the stream is the one that it belonged
// to. All up to there was acknowledged. (A work queue has nothing of that left, and lets its consumers begin at the
// beginning only.) One that an earlier life knew: where that began, whatever has come meanwhile; "new" would skip it.
std::optional<std::uint64_t> NatsSource::start_of_missing(NatsConnection& connection, const StreamInfo& stream) {
  if (stream.work_queue) return std::nullopt;
  Found before{stream, {}};
  bool known = false;
  {
    const std::lock_guard lock(mutex_);
    known = !known_.created.empty();
    if (known && seen_.created != stream.created) return 0;
    before.consumer = known_;
  }
  std::optional<std::uint64_t> start;
  if (known) {
    start = before.consumer.floor_sequence + 1;
  } else {
    if (asked_.deliver_policy == "all") return std::nullopt;
    const auto first = memory_.first_committed();
    const auto last = memory_.last_committed(std::numeric_limits<std::int64_t>::max());
    if (!first.ok() || !last.ok()) return 0;
    if (!*first) return std::nullopt;
    // More than the stream has: it is another one by now.
    if (!last->empty() && last->front().sequence > stream.last_sequence) return 0;
    if (**first > stream.last_sequence + 1) return 0;
    start = **first;
    before.consumer.delivered_sequence = stream.last_sequence;
  }
  const auto verdict = check(connection, before);
  if (!verdict.ok()) return 0;
  return verdict->went_back ? verdict->resume_at : start;
}

std::optional<ConsumerInfo> NatsSource::make_consumer(NatsConnection& connection, std::optional<std::uint64_t> start,
                                                      Bind& end) {
  ConsumerConfig config = asked_;
  if (start) {
    config.deliver_policy = *start > 1 ? "by_start_sequence" : "all";
    config.start_sequence = *start > 1 ? *start : 0;
    config.start_time.clear();
  }
  const auto made = ask(connection, options_.domain, create_consumer_subject(options_.stream, options_.consumer.name),
                        create_consumer_request(options_.stream, config), parse_consumer_info);
  if (!made.ok()) {
    end = fail("JetStream does not answer: " + made.error().text);
    return std::nullopt;
  }
  if (const auto* error = std::get_if<ApiError>(&*made)) {
    const std::string why = fmt::format("consumer {} cannot be made: {}", options_.consumer.name, error_name(*error));
    end = means_no_stream(*error) ? refuse(SourceState::no_stream, why) : refuse(SourceState::held, why);
    return std::nullopt;
  }
  return std::get<ConsumerInfo>(*made);
}

Result<StreamVerdict> NatsSource::check(NatsConnection& connection, const Found& found) {
  StreamSeen seen;
  {
    const std::lock_guard lock(mutex_);
    // Of a consumer that is new nothing can be concluded from what was seen before it.
    if (known_.created == found.consumer.created) seen = seen_;
  }
  const std::string subject = get_message_subject(options_.stream);
  StreamQuestions questions;
  questions.committed = memory_.last_committed;
  questions.stored = [&](std::uint64_t sequence) {
    return stored_or_none(
        ask(connection, options_.domain, subject, get_message_request(sequence), parse_stored_message));
  };
  questions.next = [&](std::uint64_t at_or_above, const std::string& filter) {
    return stored_or_none(
        ask(connection, options_.domain, subject, next_message_request(at_or_above, filter), parse_stored_message));
  };
  questions.in_hand = [&](std::uint64_t sequence) {
    const std::lock_guard lock(mutex_);
    return in_hand_.has(sequence);
  };
  return check_stream(found.stream, found.consumer, seen, questions);
}

// Deletes the consumer and makes it anew. False: `end` says how it went.
bool NatsSource::make_again(NatsConnection& connection, Found& found, std::uint64_t start, Bind& end) {
  if (options_.bind_only || !is_ours(found.consumer.config)) {
    end = refuse(SourceState::held, fmt::format("stream {} went back and consumer {} is not ours: make it again",
                                                options_.stream, options_.consumer.name));
    return false;
  }
  const auto deleted = connection.request(
      in_domain(delete_consumer_subject(options_.stream, options_.consumer.name), options_.domain), "", kAnswerLimit);
  if (!deleted.ok()) {
    end = fail("JetStream does not answer: " + deleted.error().text);
    return false;
  }
  auto made = make_consumer(connection, start, end);
  if (!made) return false;
  found.consumer = *std::move(made);
  const std::lock_guard lock(mutex_);
  ++status_.went_back;
  note_find(fmt::format("stream {} went back (its last sequence is {}); consumer {} was made again and hands out {}",
                        options_.stream, found.stream.last_sequence, options_.consumer.name, start_text(start)));
  seen_ = {found.stream.created, 0};
  return true;
}

bool NatsSource::handed_out_foreign() {
  const std::lock_guard lock(mutex_);
  return std::exchange(foreign_, false);
}

NatsSource::Bind NatsSource::bind(NatsConnection& connection, const std::stop_token& stop) {
  Bind end = Bind::failed;
  const Moment asked_at = std::chrono::steady_clock::now();
  auto found = find(connection, end);
  if (!found) return end;
  auto verdict = check(connection, *found);
  if (verdict.ok() && verdict->went_back) {
    // Once more, of a fresh look: an acknowledged message of a work queue takes a moment to go, a new one to come.
    rest(kLookAgain, stop);
    found = find(connection, end);
    if (!found) return end;
    verdict = check(connection, *found);
  }
  if (!verdict.ok()) return fail(verdict.error().text);
  if (verdict->went_back && !make_again(connection, *found, verdict->resume_at, end)) return end;

  if (handed_out_foreign()) {
    return refuse(SourceState::held, fmt::format("consumer {} of stream {} hands out messages outside the subjects",
                                                 options_.consumer.name, options_.stream));
  }
  ConsumerFit fit = fit_of(asked_, found->consumer.config, found->stream);
  if (!fit.hold.empty()) {
    return refuse(SourceState::held,
                  fmt::format("consumer {} of stream {}: {}", options_.consumer.name, options_.stream, fit.hold));
  }
  note_floor(*found, found->stream.last_sequence, asked_at);
  enter(connection, *found, fit.drift.empty() ? "" : fmt::format("consumer {}: {}", options_.consumer.name, fit.drift));
  return Bind::bound;
}

void NatsSource::enter(NatsConnection& connection, const Found& found, std::string drift) {
  const std::lock_guard lock(mutex_);
  if (known_.created != found.consumer.created || seen_.created != found.stream.created) {
    if (!seen_.created.empty() && seen_.created != found.stream.created) {
      ++status_.went_back;
      note_find(fmt::format("stream {} was made again; all of it is new", options_.stream));
    }
    // What was pulled from another incarnation comes again.
    ++incarnation_;
    queue_.clear();
    in_hand_.forget();
  }
  ++binding_;
  credit_.forget();
  inbox_ = connection.new_inbox();
  const auto& [its_own, backoff] = std::tie(found.consumer.config.ack_wait, found.consumer.config.backoff);
  ack_wait_ = its_own > Nanoseconds(0) ? its_own : options_.consumer.ack_wait;
  for (const Nanoseconds wait : backoff) ack_wait_ = std::min(ack_wait_, std::max(wait, kShortestBackoff));
  seen_ = {found.stream.created, found.stream.last_sequence};
  known_ = found.consumer;
  rebind_ = false;
  status_.state = SourceState::flowing;
  status_.why = std::move(drift);
  status_.pending = found.consumer.pending;
}

// A consumer that has handed out all that is for it stands still while others fill the stream: of that it hands out
// nothing again.
void NatsSource::note_floor(const Found& found, std::uint64_t end, Moment asked_at) {
  const bool at_end = found.consumer.pending == 0 && found.consumer.unacknowledged == 0;
  const std::uint64_t acknowledged = std::max(acknowledged_up_to(found.consumer), at_end ? end : 0) + 1;
  StreamFloor floor{options_.stream, std::min(found.stream.first_sequence, acknowledged), acknowledged, std::nullopt};
  // What an earlier consumer was told to have is handed out again by this one.
  const auto last = memory_.last_committed(std::numeric_limits<std::int64_t>::max());
  const std::uint64_t committed = !last.ok()      ? std::numeric_limits<std::uint64_t>::max()
                                  : last->empty() ? 0
                                                  : last->front().sequence;
  if (const auto until = acknowledged_.see(found.consumer, committed, asked_at))
    floor.acknowledged_ago = std::chrono::steady_clock::now() - *until;
  memory_.note(floor);
}

// The consumer, and when it is time the stream, are still those that we are bound to. False: look at everything anew.
bool NatsSource::still_good(const Connection& connection, bool check_stream_too) {
  const Moment asked_at = std::chrono::steady_clock::now();
  std::uint64_t last = 0;
  {
    const std::lock_guard lock(mutex_);
    last = seen_.last_sequence;
  }
  const auto told = ask(*connection, options_.domain, consumer_info_subject(options_.stream, options_.consumer.name),
                        "", parse_consumer_info);
  if (!told.ok()) {
    connection->abort();  // it does not even answer this
    return false;
  }
  const auto* consumer = std::get_if<ConsumerInfo>(&*told);
  {
    const std::lock_guard lock(mutex_);
    if (consumer == nullptr || consumer->created != known_.created) return false;
    known_ = *consumer;
    status_.pending = consumer->pending;
    credit_.heard(std::chrono::steady_clock::now());
  }
  if (!check_stream_too) return true;
  const auto stream = ask(*connection, options_.domain, stream_info_subject(options_.stream), "", parse_stream_info);
  const auto* info = stream.ok() ? std::get_if<StreamInfo>(&*stream) : nullptr;
  if (info == nullptr) return false;
  const auto verdict = check(*connection, {*info, *consumer});
  if (!verdict.ok() || verdict->went_back) return false;
  note_floor({*info, *consumer}, last, asked_at);
  const std::lock_guard lock(mutex_);
  seen_.last_sequence = std::max(seen_.last_sequence, info->last_sequence);
  return true;
}

}  // namespace holdfast
