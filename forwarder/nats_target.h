// A JetStream stream or key-value bucket of another NATS server as a target (nats_wire.h has the wire contract,
// nats_bucket.h what a value in a bucket is).
//
// `delivered` means that JetStream has acknowledged that very record (a single server may acknowledge before its disk
// has it: the README says so). Connects when first needed, and keeps the connection until it fails or nothing moves on
// it for the progress limit.
//
// In a bucket a record is created: put on the condition that its key has no value. Where it has one the server says so,
// the last message on the key is read (STREAM.MSG.GET, which asks the leader and no lagging replica), and what is done
// is decided by what it is. So no value is replaced that was not looked at, whoever else writes to the bucket, and
// however often the record comes.
//
// Errors of deliver and probe are `unavailable`; a refusal of the credentials begins with "credentials_refused".
#pragma once

#include <memory>
#include <mutex>
#include <stop_token>
#include <string>

#include "forwarder/nats_connection.h"
#include "forwarder/nats_wire.h"
#include "forwarder/target.h"

namespace holdfast {

struct NatsTargetOptions {
  std::string site;  // for Holdfast-Site
  NatsDestination to;
  NatsOptions nats;
  // Neither an answer nor a byte that reached the peer's machine for so long: the connection is given up. The wait
  // starts anew with each.
  Nanoseconds progress_limit = std::chrono::seconds(8);
};

class NatsTarget : public Target {
 public:
  explicit NatsTarget(NatsTargetOptions options);
  ~NatsTarget() override;

  Result<void> deliver(std::span<const Delivery> window, const Report& report) override;
  Result<void> probe() override;
  // When no call is in progress, the next one returns at once.
  void interrupt() override;

 private:
  struct Link;       // a connection, and what it brings
  struct Round;      // one deliver
  class Publishing;  // while it is there, an interruption ends the connection
  Result<void> connect();
  Result<void> publish(Round& round);
  Result<void> put(Round& round, std::size_t place, Wire wire);
  Result<void> go_on(Round& round);
  Result<void> drain(Round& round);
  Result<void> collect(Round& round);
  Result<void> give_up(Round& round);
  bool take_interruption();

  const NatsTargetOptions options_;
  std::shared_ptr<Link> link_;  // replaced by the calling thread only, under the mutex; read by interrupt

  std::mutex mutex_;
  bool interrupted_ = false;
  bool publishing_ = false;
  std::stop_source stop_;  // of a connect in progress
};

}  // namespace holdfast
