// The thread of the source: connects, binds, looks after what it is bound to, and begins again.
#include "appliance/nats_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "forwarder/backoff.h"
#include "forwarder/nats_limits.h"

namespace holdfast {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr BackoffOptions kBackoff{milliseconds(250), seconds(5)};  // the server is on this machine, or near
constexpr auto kPoll = seconds(1);                                 // for a stream that is not there
constexpr auto kHeldPoll = seconds(5);                             // for an operator to have mended something
constexpr auto kRebindPause = milliseconds(200);
constexpr auto kTick = seconds(1);     // at most, between two looks at what is bound
constexpr auto kLook = seconds(5);     // between two questions about the consumer
constexpr auto kSilence = seconds(5);  // three heartbeats and a half
constexpr auto kGoodbye = seconds(1);  // for each of two flushes
constexpr auto kGiveBackDelay = seconds(1);
constexpr int kMostBindings = 32;  // on one connection: each leaves a subscription behind

}  // namespace

NatsSource::NatsSource(NatsSourceOptions options, StreamMemory memory)
    : options_(std::move(options)),
      asked_(asked_consumer({options_.consumer, options_.subjects, options_.ack_wait})),
      memory_(std::move(memory)) {
  status_.name = options_.name;
  if (!valid_api_name(options_.stream) || !valid_api_name(options_.consumer)) {
    status_.state = SourceState::held;
    status_.why = "the name of the stream or the consumer is not one that NATS allows";
    return;
  }
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

NatsSource::~NatsSource() {
  Connection connection;
  {
    const std::lock_guard lock(mutex_);
    paused_ = true;
    connection = live_;
  }
  if (connection && connection->alive()) give_back(*connection);
  thread_.request_stop();
  if (connection) connection->abort();
  connection.reset();
  if (thread_.joinable()) thread_.join();
}

// What came and was not acknowledged is handed out again soon, not only after ack_wait. Not at once: this connection's
// own requests are still open. Flushed before, for what is on its way to arrive, and after, or the last
// acknowledgements may not leave.
void NatsSource::give_back(NatsConnection& connection) {
  if (!connection.flush(kGoodbye).ok()) return;
  std::vector<std::string> replies;
  {
    const std::lock_guard lock(mutex_);
    if (!connection_) return;  // it is being looked at whether these may be answered at all
    connection_ = nullptr;
    replies = in_hand_.due(Nanoseconds(0), steady_clock::now());
  }
  const std::string later = fmt::format(R"(-NAK {{"delay":{}}})", Nanoseconds(kGiveBackDelay).count());
  for (const std::string& reply : replies) {
    if (!connection.publish(reply, {}, {}, as_bytes(later)).ok()) return;
  }
  if (!replies.empty()) (void)connection.flush(kGoodbye);
}

void NatsSource::rest(Nanoseconds time, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  attention_.wait_for(lock, stop, time, [&] { return stop.stop_requested(); });
}

void NatsSource::run(const std::stop_token& stop) {
  Backoff backoff;
  std::mt19937_64 random(std::random_device{}());
  bool connected_before = false;
  while (!stop.stop_requested()) {
    NatsEvents events;
    events.lost = [this] {
      const std::lock_guard lock(mutex_);
      attention_.notify_all();
    };
    auto made = NatsConnection::connect(options_.nats, std::move(events), stop);
    if (!made.ok()) {
      (void)fail(made.error().text);
    } else {
      const Connection connection = *std::move(made);
      {
        const std::lock_guard lock(mutex_);
        live_ = connection;
        if (connected_before) ++status_.reconnects;
      }
      connected_before = true;
      if (attend(connection, stop)) backoff.reset();
      const std::lock_guard lock(mutex_);
      live_ = nullptr;
    }
    if (!stop.stop_requested()) rest(backoff.next(kBackoff, random()), stop);
  }
}

// As long as the connection lives. True: something was bound on it.
bool NatsSource::attend(const Connection& connection, const std::stop_token& stop) {
  bool bound = false;
  for (int bindings = 0; bindings < kMostBindings && connection->alive() && !stop.stop_requested();) {
    switch (bind(*connection, stop)) {
      case Bind::failed:
        return bound;
      case Bind::not_yet:
        rest(status().state == SourceState::no_stream ? Nanoseconds(kPoll) : Nanoseconds(kHeldPoll), stop);
        break;
      case Bind::bound:
        bound = true;
        ++bindings;
        serve(connection, stop);
        rest(kRebindPause, stop);
        break;
    }
  }
  if (!connection->alive()) (void)fail("the connection was lost");
  return bound;
}

// Until the connection is lost or something must be looked at anew.
void NatsSource::serve(const Connection& connection, const std::stop_token& stop) {
  std::string inbox;
  std::uint64_t binding = 0, incarnation = 0;
  Nanoseconds tick = kTick;
  {
    const std::lock_guard lock(mutex_);
    inbox = inbox_;
    binding = binding_;
    incarnation = incarnation_;
    tick = std::min<Nanoseconds>(kTick, ack_wait_ / 6);
  }
  const auto subscribed = connection->subscribe(inbox + ".*", [this, binding, incarnation](const NatsMessage& message) {
    arrived(message, binding, incarnation);
  });
  if (!subscribed.ok()) return;
  {
    const std::lock_guard lock(mutex_);
    connection_ = connection;
  }
  Moment look_at = steady_clock::now() + kLook;
  Moment check_at = steady_clock::now() + options_.check_every;
  while (connection->alive() && !stop.stop_requested()) {
    ask_for_more();
    keep_alive();
    {
      std::unique_lock lock(mutex_);
      attention_.wait_for(lock, stop, tick,
                          [&] { return rebind_ || wants_more(steady_clock::now()) || !connection->alive(); });
      credit_.expire(steady_clock::now());
      if (rebind_) break;
    }
    const Moment now = steady_clock::now();
    const bool check = now >= check_at;
    if (now < look_at && !check && !is_silent(now)) continue;
    if (!still_good(connection, check)) break;
    look_at = steady_clock::now() + kLook;
    if (check) check_at = steady_clock::now() + options_.check_every;
  }
  const std::lock_guard lock(mutex_);
  connection_ = nullptr;  // nothing is asked for or acknowledged before all has been looked at again
}

bool NatsSource::is_silent(Moment now) const {
  const std::lock_guard lock(mutex_);
  return credit_.silent(now, kSilence);
}

}  // namespace holdfast
