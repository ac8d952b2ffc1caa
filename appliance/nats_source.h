// A JetStream consumer of the local NATS server as a source.
//
// A thread of its own connects, for ever; finds the stream (waits for it), the consumer (makes it if there is none, and
// compares it with what was asked for), and looks whether the stream went back before anything is pulled, and every
// minute. Two requests of a batch each are in flight; what they bring waits in a queue of that size until pull() takes
// it, and is kept alive meanwhile. A server that is not there, or will not do, is a state, never an error of pull.
//
// A consumer that it made itself (its description says so) it makes again when the stream went back; with anybody
// else's it holds and says so. Acknowledgements are for one incarnation of the consumer: what was pulled from an
// earlier one is not acknowledged.
//
// Threads: as Source says. `memory` is asked from the source's own thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "appliance/acknowledged_mark.h"
#include "appliance/consumer_fit.h"
#include "appliance/in_hand.h"
#include "appliance/pull_credit.h"
#include "appliance/source.h"
#include "appliance/stream_check.h"
#include "forwarder/nats_connection.h"
#include "spool/spool.h"

namespace holdfast {

struct NatsSourceOptions {
  std::string name;
  NatsOptions nats;
  std::string domain;  // of JetStream; none: the server's own
  std::string stream;
  ConsumerWish consumer;
  bool bind_only = false;  // a consumer that is not there is waited for
  // Waits until the server says that it has each acknowledgement.
  bool confirmed = false;
  std::size_t batch = 256;
  Nanoseconds check_every = std::chrono::minutes(1);  // whether the stream went back
};

// What the spool remembers of the stream, and is told of it (Spool::last_committed, first_committed, note_stream).
struct StreamMemory {
  std::function<Result<std::vector<StreamPosition>>(std::uint64_t at_or_below)> last_committed;
  std::function<Result<std::optional<std::uint64_t>>()> first_committed;
  std::function<void(const StreamFloor&)> note;
};

// Of a binding's inbox: where confirmations of acknowledgements come.
inline constexpr const char* kConfirmation = ".acknowledged.";

class NatsSource : public Source {
 public:
  NatsSource(NatsSourceOptions options, StreamMemory memory);
  // Within some seconds: what was acknowledged is sent, what was not is given back, to be handed out again soon.
  ~NatsSource() override;

  Result<std::vector<Incoming>> pull(std::size_t max, Nanoseconds wait) override;
  Result<void> acknowledge(std::span<const Incoming> committed) override;
  void pause(bool paused) override;
  void keep_alive() override;
  SourceStatus status() const override;
  void interrupt() override;

 private:
  using Connection = std::shared_ptr<NatsConnection>;
  enum class Bind : std::uint8_t { bound, not_yet, failed };
  // A stream and a consumer as they were found together.
  struct Found {
    StreamInfo stream;
    ConsumerInfo consumer;
  };

  // The thread (nats_source.cc).
  void run(const std::stop_token& stop);
  bool attend(const Connection& connection, const std::stop_token& stop);
  void serve(const Connection& connection, const std::stop_token& stop);
  bool is_silent(Moment now) const;
  void rest(Nanoseconds time, const std::stop_token& stop);
  void give_back(NatsConnection& connection);

  // Finding what to pull from (nats_binding.cc).
  Bind bind(NatsConnection& connection, const std::stop_token& stop);
  std::optional<Found> find(NatsConnection& connection, Bind& end);
  // `start`: the first sequence (0: the stream's first); nothing: as configured.
  std::optional<ConsumerInfo> make_consumer(NatsConnection& connection, std::optional<std::uint64_t> start, Bind& end);
  std::optional<std::uint64_t> start_of_missing(NatsConnection& connection, const StreamInfo& stream);
  bool make_again(NatsConnection& connection, Found& found, std::uint64_t start, Bind& end);
  Result<StreamVerdict> check(NatsConnection& connection, const Found& found);
  bool handed_out_foreign();
  void note_find(std::string text);  // under the lock
  Bind refuse(SourceState state, std::string why);
  Bind fail(std::string why);
  bool still_good(const Connection& connection, bool check_stream_too);
  void enter(NatsConnection& connection, const Found& found, std::string drift);
  // `end`: the stream's last sequence, before the consumer was asked.
  void note_floor(const Found& found, std::uint64_t end, Moment asked_at);

  // Messages (nats_delivery.cc).
  void arrived(const NatsMessage& message, std::uint64_t binding, std::uint64_t incarnation);
  void delivered(const NatsMessage& message, const AckSubject& ack, std::uint64_t incarnation);
  void told(const NatsMessage& message, std::uint64_t binding);
  void ask_for_more();
  bool wants_more(Moment now) const;  // under the lock
  bool is_ours_by_subject(std::string_view subject) const;
  void confirmed(const NatsMessage& message, std::uint64_t binding);
  Result<void> send_acknowledgements(NatsConnection& connection, std::span<const std::string_view> replies);

  const NatsSourceOptions options_;
  const ConsumerConfig asked_;
  const StreamMemory memory_;

  mutable std::mutex mutex_;
  std::condition_variable arrived_;        // for pull
  std::condition_variable_any attention_;  // for the thread
  SourceStatus status_;
  std::deque<Incoming> queue_;
  InHand in_hand_;
  PullCredit credit_;
  Connection live_;        // while there is one
  Connection connection_;  // while it is bound: what may be asked and acknowledged on
  std::string inbox_;      // of this binding
  // Of the acknowledgements that are being sent: their number, and how many the server has confirmed.
  std::uint64_t acknowledging_ = 0, confirmed_ = 0;
  std::condition_variable confirmation_;
  std::uint64_t binding_ = 0;
  std::uint64_t incarnation_ = 0;
  Nanoseconds ack_wait_{0};
  StreamSeen seen_;
  ConsumerInfo known_;  // the consumer as last told; no time of creation: never
  AcknowledgedMark acknowledged_;
  Moment ask_again_at_{};  // not before: requests are being refused
  bool paused_ = false;
  bool interrupted_ = false;
  bool rebind_ = false;   // something is wrong with stream or consumer
  bool foreign_ = false;  // a message outside the configured subjects came from this binding

  std::jthread thread_;  // last: stops first
};

}  // namespace holdfast
