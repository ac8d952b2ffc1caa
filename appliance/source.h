// The source seam: where messages come in.
//
// pull() hands out messages in the order they came; each stays unacknowledged, and is kept alive, until acknowledge()
// names it. A message that is never acknowledged comes again: that is what makes an error harmless here. Nothing is
// asked of the server beyond what pull() will hand out soon, so not calling it is back-pressure.
//
// Threads: one thread calls pull and acknowledge; keep_alive, status and interrupt may come from any.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "spool/clock.h"
#include "spool/envelope.h"
#include "spool/reason.h"
#include "spool/result.h"

namespace holdfast {

struct Incoming {
  Envelope envelope;
  Reason unreadable = Reason::none;  // not none: what could be read is in the envelope, and why the rest could not
  std::string receipt;               // what acknowledging it takes; opaque
  std::uint64_t deliveries = 1;      // how often the server has handed it out
};

enum class SourceState : std::uint8_t {
  connecting,  // no connection; tries for ever
  no_stream,   // connected; the stream is not there (yet)
  flowing,
  held,  // something an operator must decide: `why` says it
};

struct SourceStatus {
  std::string name;
  SourceState state = SourceState::connecting;
  std::string why;  // one line of ours: what was tried, where, and why not; no peer's words
  std::uint64_t pulled = 0;
  std::uint64_t acknowledged = 0;
  std::uint64_t unconfirmed = 0;  // acknowledgements that the server was to confirm, and did not in time
  std::uint64_t redelivered = 0;  // came with a delivery count above 1
  std::uint64_t pending = 0;      // waiting in the stream, as the server last said
  std::uint64_t reconnects = 0;
  std::uint64_t in_progress_sent = 0;
  std::uint64_t went_back = 0;  // times the stream was found to have gone back
  std::uint64_t finds = 0;      // of that, and of a consumer that was gone
  std::string last_find;        // what was found then, and done; one line of ours
};

class Source {
 public:
  virtual ~Source() = default;
  // At most `max` messages; waits at most `wait` for the first. None: nothing came, or there is no connection (status
  // says which).
  virtual Result<std::vector<Incoming>> pull(std::size_t max, Nanoseconds wait) = 0;
  // `unavailable`: the connection went; the messages will come again and be recognised.
  virtual Result<void> acknowledge(std::span<const Incoming> committed) = 0;
  // Asks for nothing more while paused; what was pulled or is on its way is kept alive.
  virtual void pause(bool paused) = 0;
  // Tells the server that what is unacknowledged is still being worked on, when that is due. Called every second or so.
  virtual void keep_alive() = 0;
  virtual SourceStatus status() const = 0;
  virtual void interrupt() = 0;  // a pull in progress returns soon
};

}  // namespace holdfast
