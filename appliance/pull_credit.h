// What was asked of the server and has not come: how many messages, in which requests. So that requests follow each
// other without a gap, no more is asked for than was decided, and a silent server is noticed. Pure; the caller holds
// the lock.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "forwarder/bounded_call.h"
#include "spool/clock.h"

namespace holdfast {

// Whether a status of the server's that ends a request says that it was served, as far as there was something. Others
// say that the consumer or its stream is gone, or that it refuses such requests. `why`: its Description.
bool ends_served_request(int status, std::string_view why);

class PullCredit {
 public:
  // The number of a new request for `batch` messages that the server ends after `expires`.
  std::uint64_t ask(std::uint64_t batch, Nanoseconds expires, Moment now);
  void came();  // a message
  // A request has ended with `left` messages not sent. True: it was one of ours. The last one to end takes all that is
  // open.
  bool ended(std::uint64_t number, std::uint64_t left);
  void heard(Moment now) { heard_at_ = now; }  // any sign of the server
  // Requests whose end got lost.
  void expire(Moment now);
  void forget();

  std::uint64_t open() const { return open_; }  // messages that may still come
  bool waiting() const { return !requests_.empty(); }
  // Nothing has been heard for so long, though something was asked.
  bool silent(Moment now, Nanoseconds limit) const { return waiting() && now - heard_at_ > limit; }

 private:
  std::uint64_t last_ = 0;
  std::uint64_t open_ = 0;
  std::map<std::uint64_t, Moment> requests_;  // by number: when their end is taken to be lost
  Moment heard_at_;
};

}  // namespace holdfast
