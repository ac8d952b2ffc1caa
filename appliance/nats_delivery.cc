// The part of the source through which messages go: what arrives, what is pulled, acknowledged, kept alive and asked
// for.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "appliance/nats_source.h"
#include "crypto/text.h"
#include "spool/subject.h"

namespace holdfast {
namespace {

using std::chrono::steady_clock;

constexpr auto kExpires = std::chrono::seconds(5);  // of one request
constexpr auto kHeartbeat = std::chrono::milliseconds(1500);
constexpr auto kRefusedPause = std::chrono::seconds(1);  // after a request that was refused, not served
constexpr std::uint64_t kPullBytes = 8u << 20;           // of one request, or one message of the server's largest
constexpr std::uint64_t kMessageOverhead = 64u << 10;    // subjects and headers beside the payload
constexpr int kKeepAlivesPerAckWait = 3;
constexpr auto kConfirmLimit = std::chrono::seconds(5);                      // for all of a batch
constexpr std::string_view kUndecodedHeader = "Holdfast-Undecoded-Headers";  // base64: nothing of a message is lost
constexpr char kReceiptMark = ' ';

std::string make_receipt(std::uint64_t incarnation, std::string_view reply) {
  return fmt::format("{}{}{}", incarnation, kReceiptMark, reply);
}

struct Receipt {
  std::uint64_t incarnation = 0;
  std::string_view reply;
};

std::optional<Receipt> read_receipt(std::string_view text) {
  Receipt receipt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), receipt.incarnation);
  const auto used = static_cast<std::size_t>(end - text.data());
  if (error != std::errc{} || used == text.size() || *end != kReceiptMark) return std::nullopt;
  receipt.reply = text.substr(used + 1);
  return receipt;
}

}  // namespace

void NatsSource::arrived(const NatsMessage& message, std::uint64_t binding, std::uint64_t incarnation) {
  // A status may have a reply subject too, so it is the reply's form that tells.
  if (const auto ack = parse_ack_subject(message.reply())) {
    delivered(message, *ack, incarnation);
  } else {
    told(message, binding);
  }
}

void NatsSource::delivered(const NatsMessage& message, const AckSubject& ack, std::uint64_t incarnation) {
  Incoming incoming;
  Envelope& envelope = incoming.envelope;
  envelope.source = options_.name;
  envelope.subject = message.subject();
  const ByteView payload = message.payload();
  envelope.payload.assign(payload.begin(), payload.end());
  envelope.origin = {std::string(ack.stream), ack.stream_sequence, ack.timestamp_ns};
  if (auto headers = message.headers()) {
    envelope.headers = *std::move(headers);
    note_omitted_payload(envelope);
  } else {
    incoming.unreadable = Reason::undecodable_headers;
    envelope.headers.push_back({std::string(kUndecodedHeader), to_base64(as_bytes(message.head_bytes()))});
  }
  incoming.receipt = make_receipt(incarnation, message.reply());
  incoming.deliveries = ack.deliveries;

  const Moment now = steady_clock::now();
  const std::lock_guard lock(mutex_);
  if (incarnation != incarnation_) return;  // of a consumer that is no more: comes again from the new one
  credit_.heard(now);
  credit_.came();
  if (!is_ours_by_subject(envelope.subject)) {  // never acknowledged, nor kept alive
    foreign_ = rebind_ = true;
    attention_.notify_all();
    return;
  }
  in_hand_.add(ack.stream_sequence, std::string(message.reply()), now);
  if (ack.deliveries > 1) ++status_.redelivered;
  status_.pending = ack.pending;
  queue_.push_back(std::move(incoming));
  if (queue_.size() == 1) arrived_.notify_all();
}

bool NatsSource::is_ours_by_subject(std::string_view subject) const {
  const auto& subjects = options_.consumer.subjects;
  return subjects.empty() || std::any_of(subjects.begin(), subjects.end(),
                                         [&](const std::string& pattern) { return subject_matches(pattern, subject); });
}

// A status of the server's: a heartbeat, or the end of a request.
void NatsSource::told(const NatsMessage& message, std::uint64_t binding) {
  constexpr int kHeartbeatStatus = 100;
  const NatsHead head = message.head().value_or(NatsHead());
  const std::string_view subject = message.subject();
  const std::uint64_t number =
      parse_decimal<std::uint64_t>(subject.substr(std::min(subject.rfind('.') + 1, subject.size()))).value_or(0);
  const std::uint64_t left = parse_decimal<std::uint64_t>(head.value("Nats-Pending-Messages")).value_or(0);

  const Moment now = steady_clock::now();
  const std::lock_guard lock(mutex_);
  if (binding != binding_) return;
  credit_.heard(now);
  if (!message.payload().empty() || head.status == 0 || head.status == kHeartbeatStatus) return;
  const bool was_open = credit_.ended(number, left);
  if (was_open && !ends_served_request(head.status, head.description)) {
    // The consumer or its stream is gone, or it refuses such requests: look, and do not ask in a circle.
    ask_again_at_ = now + kRefusedPause;
    rebind_ = true;
  }
  attention_.notify_all();
}

bool NatsSource::wants_more(Moment now) const {
  if (!connection_ || paused_ || rebind_ || now < ask_again_at_) return false;
  return credit_.open() + queue_.size() <= options_.batch;
}

void NatsSource::ask_for_more() {
  Connection connection;
  std::vector<std::string> inboxes;
  {
    const Moment now = steady_clock::now();
    const std::lock_guard lock(mutex_);
    connection = connection_;
    while (wants_more(now)) {
      inboxes.push_back(fmt::format("{}.{}", inbox_, credit_.ask(options_.batch, kExpires, now)));
    }
  }
  if (inboxes.empty()) return;
  PullRequest request{options_.batch, kPullBytes, kExpires, kHeartbeat};
  request.max_bytes = std::max<std::uint64_t>(kPullBytes, connection->max_payload() + kMessageOverhead);
  const std::string text = pull_request(request);
  const std::string subject = in_domain(pull_subject(options_.stream, options_.consumer.name), options_.domain);
  for (const std::string& inbox : inboxes) {
    if (!connection->publish(subject, inbox, {}, as_bytes(text)).ok()) return;  // lost: the thread sees it
  }
}

Result<std::vector<Incoming>> NatsSource::pull(std::size_t max, Nanoseconds wait) {
  ask_for_more();
  std::vector<Incoming> taken;
  {
    std::unique_lock lock(mutex_);
    arrived_.wait_for(lock, wait, [&] { return !queue_.empty() || interrupted_; });
    interrupted_ = false;
    const std::size_t count = std::min(max, queue_.size());
    taken.reserve(count);
    const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(count);
    std::move(queue_.begin(), end, std::back_inserter(taken));
    queue_.erase(queue_.begin(), end);
    status_.pulled += count;
  }
  if (!taken.empty()) ask_for_more();
  return taken;
}

// Whatever comes of it, what is named here is not kept alive any longer: if the server has not heard, it comes again.
Result<void> NatsSource::acknowledge(std::span<const Incoming> committed) {
  Connection connection;
  std::vector<std::string_view> replies;
  replies.reserve(committed.size());
  {
    const std::lock_guard lock(mutex_);
    connection = connection_;
    for (const Incoming& incoming : committed) {
      const auto receipt = read_receipt(incoming.receipt);
      if (!receipt || receipt->incarnation != incarnation_) continue;
      const auto ack = parse_ack_subject(receipt->reply);
      if (!ack) continue;
      in_hand_.remove(ack->stream_sequence);
      replies.push_back(receipt->reply);
    }
  }
  if (!connection) return Error{ErrorKind::unavailable, "there is no connection to acknowledge on"};
  HOLDFAST_TRY(send_acknowledgements(*connection, replies));
  const std::lock_guard lock(mutex_);
  status_.acknowledged += replies.size();
  return {};
}

Result<void> NatsSource::send_acknowledgements(NatsConnection& connection, std::span<const std::string_view> replies) {
  std::string inbox;
  std::uint64_t binding = 0;
  if (options_.confirmed) {
    const std::lock_guard lock(mutex_);
    inbox = fmt::format("{}{}{}", inbox_, kConfirmation, ++acknowledging_);
    confirmed_ = 0;
    binding = binding_;
  }
  std::string subject;
  for (const std::string_view reply : replies) {
    subject = reply;
    HOLDFAST_TRY(connection.publish(subject, inbox, {}, as_bytes("+ACK")));
  }
  if (!options_.confirmed) return {};
  std::unique_lock lock(mutex_);
  const auto all = [&] { return confirmed_ >= replies.size(); };
  confirmation_.wait_for(lock, kConfirmLimit, [&] { return all() || binding != binding_ || !connection_; });
  if (all()) return {};
  status_.unconfirmed += replies.size() - confirmed_;
  return Error{ErrorKind::unavailable, "the server did not confirm every acknowledgement"};
}

// It says that the server has taken an acknowledgement, not which: they are counted. One that is late counts for
// nothing.
void NatsSource::confirmed(const NatsMessage& message, std::uint64_t binding) {
  const std::string_view subject = message.subject();
  const auto number = parse_decimal<std::uint64_t>(subject.substr(std::min(subject.rfind('.') + 1, subject.size())));
  const std::lock_guard lock(mutex_);
  if (binding != binding_ || number != acknowledging_ || message.status() != 0) return;
  ++confirmed_;
  confirmation_.notify_all();
}

void NatsSource::keep_alive() {
  Connection connection;
  std::vector<std::string> due;
  {
    const std::lock_guard lock(mutex_);
    if (!connection_) return;
    connection = connection_;
    due = in_hand_.due(ack_wait_ / kKeepAlivesPerAckWait, steady_clock::now());
  }
  std::uint64_t sent = 0;
  for (const std::string& reply : due) {
    if (!connection->publish(reply, {}, {}, as_bytes("+WPI")).ok()) break;
    ++sent;
  }
  const std::lock_guard lock(mutex_);
  status_.in_progress_sent += sent;
}

void NatsSource::pause(bool paused) {
  {
    const std::lock_guard lock(mutex_);
    if (paused_ == paused) return;
    paused_ = paused;
  }
  if (!paused) ask_for_more();
}

void NatsSource::interrupt() {
  const std::lock_guard lock(mutex_);
  interrupted_ = true;
  arrived_.notify_all();
}

SourceStatus NatsSource::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

}  // namespace holdfast
