#include "forwarder/nats_target.h"

#include <fmt/format.h>

#include <condition_variable>
#include <deque>
#include <vector>

#include "crypto/text.h"
#include "forwarder/bounded_call.h"
#include "forwarder/nats_wire.h"

namespace holdfast {
namespace {

using std::chrono::steady_clock;

constexpr auto kLook = std::chrono::milliseconds(250);  // how often a wait looks for bytes that moved
constexpr std::size_t kPublishesBetweenLooks = 64;      // at what has been answered
constexpr auto kProbeLimit = std::chrono::seconds(5);

Error interrupted() {
  return {ErrorKind::unavailable, "interrupted"};
}

}  // namespace

// What the library's threads bring, and the connection that they bring it from. A number is given to one request, ever.
struct NatsTarget::Link {
  struct Answer {
    std::uint64_t number = 0;
    std::optional<Outcome> outcome;                  // to a publish; nothing: not JetStream's
    std::optional<ApiReply<StoredContent>> content;  // to a look at what is there
  };

  std::string inbox;  // of publishes
  std::string looks;  // at a key's last message
  std::uint64_t next_number = 1;

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Answer> answers;
  std::vector<std::string> refused;  // subjects that the user may not publish to
  bool lost = false;
  bool woken = false;

  std::unique_ptr<NatsConnection> connection;  // last: goes first, and no callback runs after

  static std::optional<std::uint64_t> number_in(const NatsMessage& message, const std::string& before) {
    const std::string_view subject = message.subject();
    return parse_decimal<std::uint64_t>(subject.substr(std::min(before.size() + 1, subject.size())));
  }
  void answered(const NatsMessage& message) {
    const auto number = number_in(message, inbox);
    if (number) add({*number, outcome_of_answer(message.status(), as_text(message.payload())), std::nullopt});
  }
  void looked(const NatsMessage& message) {
    const auto number = number_in(message, looks);
    if (!number) return;
    // Nobody there to ask says as much as an answer that is none.
    add({*number, std::nullopt,
         message.status() == 0 ? parse_stored_content(as_text(message.payload()))
                               : ApiReply<StoredContent>(ApiError{})});
  }
  void wake() {
    const std::lock_guard lock(mutex);
    woken = true;
    changed.notify_all();
  }

 private:
  void add(Answer answer) {
    const std::lock_guard lock(mutex);
    answers.push_back(std::move(answer));
    if (answers.size() == 1) changed.notify_all();
  }
};

// What became of each record of the window so far.
struct NatsTarget::Round {
  // A record is put; where a bucket has its key already, that is looked at, and it may be put once more. Each step has
  // its own numbers, one for each place.
  enum Step : std::uint64_t { first_put, look, second_put, steps };
  struct Next {
    std::size_t place = 0;
    std::optional<std::uint64_t> revision;  // to be put on; nothing: to be looked at
  };

  Round(std::span<const Delivery> records, const Report& to, Link& on, const NatsTargetOptions& its_options)
      : window(records),
        report(to),
        link(on),
        options(its_options),
        first(on.next_number),
        reported(records.size()),
        foreign(records.size()),
        looked_at(records.size()) {
    link.next_number += records.size() * steps;
  }

  std::span<const Delivery> window;
  const Report& report;
  Link& link;
  const NatsTargetOptions& options;
  const std::uint64_t first;  // the number of the first record's publish
  std::vector<bool> reported;
  std::vector<bool> foreign;    // answered by something that is not JetStream
  std::vector<bool> looked_at;  // what is there already has been asked for
  std::vector<Next> next;       // what the answers ask for
  std::size_t open = window.size();
  Moment moved_at = steady_clock::now();
  std::uint64_t arrived = 0;

  std::uint64_t number(std::size_t place, Step step) const { return first + step * window.size() + place; }

  void settle(std::size_t place, Outcome outcome) {
    if (reported[place]) return;
    reported[place] = true;
    --open;
    report(place, std::move(outcome));
  }
  // Answers to earlier rounds are dropped: those records are on their way again, or settled.
  void hear(std::vector<Link::Answer> answers, const std::vector<std::string>& refused) {
    for (Link::Answer& answer : answers) {
      if (answer.number < first || answer.number - first >= window.size() * steps) continue;
      const auto place = static_cast<std::size_t>((answer.number - first) % window.size());
      hear_one(place, static_cast<Step>((answer.number - first) / window.size()), std::move(answer));
    }
    for (const std::string& subject : refused) hear_refusal(subject);
    if (!answers.empty() || !refused.empty()) moved_at = steady_clock::now();
  }

  void look_at_bytes() {
    const std::uint64_t now_arrived = link.connection->bytes_arrived();
    if (now_arrived != arrived) moved_at = steady_clock::now();
    arrived = now_arrived;
  }

 private:
  void hear_one(std::size_t place, Step step, Link::Answer answer) {
    if (answer.content) {
      hear_content(place, *answer.content);
    } else if (!answer.outcome) {
      foreign[place] = true;
    } else if (step == first_put && options.to.bucket && says_taken(*answer.outcome)) {
      next.push_back({place, std::nullopt});
    } else {
      settle(place, *std::move(answer.outcome));
    }
  }
  void hear_content(std::size_t place, const ApiReply<StoredContent>& reply) {
    if (reported[place]) return;  // its payload is gone
    if (const auto* error = std::get_if<ApiError>(&reply)) {
      // Gone again meanwhile, or not to be read for now: the next try shows.
      return settle(place, error->is(ApiCode::no_message) ? retry("key_taken") : retry("unknown_error"));
    }
    ExistingVerdict verdict =
        judge_existing(std::get<StoredContent>(reply), window[place], options.to.bucket->existing);
    if (verdict.outcome) return settle(place, *std::move(verdict.outcome));
    next.push_back({place, verdict.revision});
  }
  // A refusal names a subject, and no record.
  void hear_refusal(const std::string& subject) {
    const bool of_looks = options.to.bucket && subject == get_message_subject(bucket_stream(options.to.bucket->name));
    for (std::size_t place = 0; place < window.size(); ++place) {
      if (reported[place]) continue;
      if (of_looks && looked_at[place]) settle(place, hold_target("look_not_permitted"));
      if (of_looks) continue;
      const auto wire = wire_for(window[place], options.to, options.site);
      if (wire && wire->subject == subject) settle(place, hold_lane("not_permitted"));
    }
  }
};

// Sending may wait for a peer that does not read.
class NatsTarget::Publishing {
 public:
  explicit Publishing(NatsTarget& target) : target_(target) { set(true); }
  ~Publishing() { set(false); }
  Publishing(const Publishing&) = delete;
  Publishing& operator=(const Publishing&) = delete;

 private:
  void set(bool publishing) {
    const std::lock_guard lock(target_.mutex_);
    target_.publishing_ = publishing;
  }
  NatsTarget& target_;
};

NatsTarget::NatsTarget(NatsTargetOptions options) : options_(std::move(options)) {}

NatsTarget::~NatsTarget() = default;

Result<void> NatsTarget::connect() {
  if (link_ && link_->connection->alive()) return {};
  const auto link = std::make_shared<Link>();
  std::stop_source stop;
  std::shared_ptr<Link> old;  // goes after the lock: closing takes its time
  {
    const std::lock_guard lock(mutex_);
    old = std::move(link_);
    stop_ = stop;
    if (interrupted_) stop.request_stop();
  }
  old.reset();
  NatsEvents events;
  events.lost = [at = link.get()] {
    const std::lock_guard lock(at->mutex);
    at->lost = true;
    at->changed.notify_all();
  };
  events.publish_refused = [at = link.get()](std::string subject) {
    const std::lock_guard lock(at->mutex);
    at->refused.push_back(std::move(subject));
    at->changed.notify_all();
  };
  auto connection = NatsConnection::connect(options_.nats, std::move(events), stop.get_token());
  if (!connection.ok()) return connection.error();
  link->connection = *std::move(connection);
  link->inbox = link->connection->new_inbox();
  HOLDFAST_TRY(link->connection->subscribe(link->inbox + ".*",
                                           [at = link.get()](const NatsMessage& message) { at->answered(message); }));
  if (options_.to.bucket) {
    link->looks = link->connection->new_inbox();
    HOLDFAST_TRY(link->connection->subscribe(link->looks + ".*",
                                             [at = link.get()](const NatsMessage& message) { at->looked(message); }));
  }
  const std::lock_guard lock(mutex_);
  link_ = link;
  return {};
}

bool NatsTarget::take_interruption() {
  const std::lock_guard lock(mutex_);
  return std::exchange(interrupted_, false);
}

Result<void> NatsTarget::deliver(std::span<const Delivery> window, const Report& report) {
  if (window.empty()) return {};
  const auto connected = connect();
  if (take_interruption()) return interrupted();
  if (!connected.ok()) return connected.error();
  const std::shared_ptr<Link> link = link_;
  Round round(window, report, *link, options_);
  auto result = publish(round);
  if (result.ok()) result = collect(round);
  return result;
}

Result<void> NatsTarget::publish(Round& round) {
  const Publishing publishing(*this);
  for (std::size_t place = 0; place < round.window.size(); ++place) {
    auto wire = wire_for(round.window[place], options_.to, options_.site);
    if (wire) {
      HOLDFAST_TRY(put(round, place, *std::move(wire)));
    } else {
      round.settle(place, rejected(Reason::unencodable));
    }
    if (place % kPublishesBetweenLooks == kPublishesBetweenLooks - 1) HOLDFAST_TRY(drain(round));
  }
  return {};
}

Result<void> NatsTarget::put(Round& round, std::size_t place, Wire wire) {
  const Delivery& delivery = round.window[place];
  const Bytes& payload = delivery.record->envelope.payload;
  const std::vector<Header> headers = wire_headers(delivery, options_.site, wire);
  if (auto refusal = refuse_unsent(wire, headers, payload, round.link.connection->max_payload())) {
    round.settle(place, *std::move(refusal));
    return {};
  }
  const auto step = wire.expected_last.value_or(0) > 0 ? Round::second_put : Round::first_put;
  const std::string reply_to = fmt::format("{}.{}", round.link.inbox, round.number(place, step));
  const auto sent = round.link.connection->publish(wire.subject, reply_to, headers, payload);
  if (sent.ok() || sent.error().kind != ErrorKind::invalid) return sent;
  round.settle(place, rejected(Reason::unencodable));
  return {};
}

// What a bucket that has the keys already asks for.
Result<void> NatsTarget::go_on(Round& round) {
  if (round.next.empty()) return {};
  const Publishing publishing(*this);
  for (const Round::Next& next : std::exchange(round.next, {})) {
    if (round.reported[next.place]) continue;
    auto wire = wire_for(round.window[next.place], options_.to, options_.site);
    CHECK(wire);
    if (next.revision) {
      wire->expected_last = next.revision;
      HOLDFAST_TRY(put(round, next.place, *std::move(wire)));
      continue;
    }
    round.looked_at[next.place] = true;
    const std::string reply_to = fmt::format("{}.{}", round.link.looks, round.number(next.place, Round::look));
    HOLDFAST_TRY(round.link.connection->publish(get_message_subject(wire->stream), reply_to, {},
                                                as_bytes(last_message_request(wire->subject))));
  }
  return {};
}

// Takes what has been answered without waiting.
Result<void> NatsTarget::drain(Round& round) {
  std::vector<Link::Answer> answers;
  std::vector<std::string> refused;
  {
    const std::lock_guard lock(round.link.mutex);
    answers.swap(round.link.answers);
    refused.swap(round.link.refused);
  }
  round.hear(std::move(answers), refused);
  if (take_interruption()) return interrupted();
  return {};
}

Result<void> NatsTarget::collect(Round& round) {
  Link& link = round.link;
  round.moved_at = steady_clock::now();
  for (;;) {
    HOLDFAST_TRY(drain(round));
    HOLDFAST_TRY(go_on(round));
    if (round.open == 0) return {};
    std::unique_lock lock(link.mutex);
    const auto news = [&] { return !link.answers.empty() || !link.refused.empty() || link.lost || link.woken; };
    link.changed.wait_for(lock, kLook, news);
    link.woken = false;
    const bool quiet = link.answers.empty() && link.refused.empty();
    const bool lost = link.lost || !link.connection->alive();
    lock.unlock();
    if (!quiet) continue;
    if (lost) return Error{ErrorKind::unavailable, "the connection was lost before all records were acknowledged"};
    round.look_at_bytes();
    if (steady_clock::now() - round.moved_at < options_.progress_limit) continue;
    return give_up(round);
  }
}

// Something else than a stream answers on those subjects: that is their lane's trouble. The others may be on their way
// still; a fresh connection will not take their late answers for those of another try.
Result<void> NatsTarget::give_up(Round& round) {
  for (std::size_t i = 0; i < round.window.size(); ++i) {
    if (round.foreign[i]) round.settle(i, hold_lane("not_a_stream"));
  }
  if (round.open == 0) return {};
  round.link.connection->abort();
  return Error{ErrorKind::unavailable,
               fmt::format("no acknowledgement and nothing sent for {} s",
                           std::chrono::duration_cast<std::chrono::seconds>(options_.progress_limit).count())};
}

Result<void> NatsTarget::probe() {
  const auto connected = connect();
  if (take_interruption()) return interrupted();
  if (!connected.ok()) return connected.error();
  return link_->connection->flush(kProbeLimit);
}

void NatsTarget::interrupt() {
  std::shared_ptr<Link> link;
  bool publishing = false;
  {
    const std::lock_guard lock(mutex_);
    interrupted_ = true;
    stop_.request_stop();
    link = link_;
    publishing = publishing_;
  }
  if (!link) return;
  if (publishing) link->connection->abort();  // it may wait for a peer that does not read
  link->wake();
}

}  // namespace holdfast
