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

// What the library's threads bring, and the connection that they bring it from. A number is given to one publish, ever.
struct NatsTarget::Link {
  struct Answer {
    std::uint64_t number = 0;
    std::optional<Outcome> outcome;  // nothing: not JetStream's
  };

  std::string inbox;
  std::uint64_t next_number = 1;

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Answer> answers;
  std::vector<std::string> refused;  // subjects that the user may not publish to
  bool lost = false;
  bool woken = false;

  std::unique_ptr<NatsConnection> connection;  // last: goes first, and no callback runs after

  void answered(const NatsMessage& message) {
    const std::string_view subject = message.subject();
    const auto number =
        parse_decimal<decltype(Answer::number)>(subject.substr(std::min(inbox.size() + 1, subject.size())));
    if (!number) return;
    Answer answer;
    answer.number = *number;
    answer.outcome = outcome_of_answer(message.status(), as_text(message.payload()));
    const std::lock_guard lock(mutex);
    answers.push_back(std::move(answer));
    if (answers.size() == 1) changed.notify_all();
  }
  void wake() {
    const std::lock_guard lock(mutex);
    woken = true;
    changed.notify_all();
  }
};

// What became of each record of the window so far.
struct NatsTarget::Round {
  Round(std::span<const Delivery> records, const Report& to, Link& on)
      : window(records),
        report(to),
        link(on),
        first(on.next_number),
        reported(records.size()),
        foreign(records.size()) {
    link.next_number += records.size();
  }

  std::span<const Delivery> window;
  const Report& report;
  Link& link;
  const std::uint64_t first;  // the number of the first record's publish
  std::vector<bool> reported;
  std::vector<bool> foreign;  // answered by something that is not JetStream
  std::size_t open = window.size();
  Moment moved_at = steady_clock::now();
  std::uint64_t arrived = 0;

  void settle(std::size_t place, Outcome outcome) {
    if (reported[place]) return;
    reported[place] = true;
    --open;
    report(place, std::move(outcome));
  }
  // Answers to earlier rounds are dropped: those records are on their way again, or settled.
  void hear(std::vector<Link::Answer> answers, const std::vector<std::string>& refused) {
    for (Link::Answer& answer : answers) {
      if (answer.number < first || answer.number - first >= window.size()) continue;
      const auto place = static_cast<std::size_t>(answer.number - first);
      if (answer.outcome) {
        settle(place, *std::move(answer.outcome));
      } else {
        foreign[place] = true;
      }
    }
    for (const std::string& subject : refused) {
      for (std::size_t i = 0; i < window.size(); ++i) {
        if (!reported[i] && window[i].record->envelope.subject == subject) settle(i, hold_lane("not_permitted"));
      }
    }
    if (!answers.empty() || !refused.empty()) moved_at = steady_clock::now();
  }

  void look_at_bytes() {
    const std::uint64_t now_arrived = link.connection->bytes_arrived();
    if (now_arrived != arrived) moved_at = steady_clock::now();
    arrived = now_arrived;
  }
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
  Round round(window, report, *link);
  auto result = publish(round, window);
  if (result.ok()) result = collect(round);
  return result;
}

Result<void> NatsTarget::publish(Round& round, std::span<const Delivery> window) {
  Link& link = round.link;
  const std::size_t max_payload = link.connection->max_payload();
  {
    const std::lock_guard lock(mutex_);
    publishing_ = true;
  }
  Result<void> result;
  std::string reply_to;
  for (std::size_t i = 0; i < window.size() && result.ok(); ++i) {
    const Envelope& envelope = window[i].record->envelope;
    const std::vector<Header> headers = wire_headers(window[i], options_.site);
    if (auto refusal = refuse_unsent(envelope, headers, max_payload)) {
      round.settle(i, *std::move(refusal));
      continue;
    }
    reply_to = fmt::format("{}.{}", link.inbox, round.first + i);
    result = link.connection->publish(envelope.subject, reply_to, headers, envelope.payload);
    if (!result.ok() && result.error().kind == ErrorKind::invalid) {
      round.settle(i, rejected(Reason::unencodable));
      result = {};
    }
    if (i % kPublishesBetweenLooks == kPublishesBetweenLooks - 1 && result.ok()) result = drain(round);
  }
  const std::lock_guard lock(mutex_);
  publishing_ = false;
  return result;
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
