// From a source into the spool: pull, name, route, commit, and only then acknowledge (I1).
//
// What the spool refuses to take now (`full`, `unavailable`) is kept and offered again; the source keeps it alive
// meanwhile. A message that cannot be delivered (no identity, no route, unreadable) is committed too, as one to set
// aside, and acknowledged like the rest: it blocks nothing (I6). Where the source has a dead-letter subject, it is
// published there instead, and acknowledged once that is stored.
//
// Threads: one calls step; status may be asked by any.
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "appliance/dead_letters.h"
#include "appliance/progress.h"
#include "appliance/router.h"
#include "appliance/source.h"
#include "crypto/frame.h"
#include "spool/spool.h"

namespace holdfast {

struct IntakeRules {
  std::string site;       // the one in keys
  IdentityRule identity;  // where the route has none of its own
  std::size_t batch = 256;
  OnConflict on_conflict = OnConflict::quarantine;
  OnDuplicate on_duplicate = OnDuplicate::skip;
  std::uint64_t max_record_bytes = kMaxFrameBody;
};

// What became of a source's messages that one strategy named: how many, and which was the last of those that somebody
// may ask about.
struct VerdictTally {
  VerdictCounts counts;
  RecordId last_duplicate, last_conflict, last_refused;
  Reason last_reason = Reason::none;  // of the last that was refused
};
using VerdictTallies = std::array<VerdictTally, kStrategies>;  // by strategy

// How a message arrives under these rules: its identity and route, or why it is set aside. Its identity's strategy is
// the one that named it, or that was to.
Arrival make_arrival(const IntakeRules& rules, const Router& router, Envelope envelope, Reason unreadable);

enum class IntakeRound : std::uint8_t {
  took,    // a batch was committed
  idle,    // nothing came
  paused,  // the spool takes nothing now; come again in a moment
};

class Intake {
 public:
  // All must outlive it. `progress` is told of every call that could hang.
  Intake(Source& source, Spool& spool, const Router& router, DeadLetters& dead_letters, IntakeRules rules,
         Progress& progress);

  // One round. `io`: this life is over. Nothing else comes out: a source without a connection is a round without
  // messages.
  Result<IntakeRound> step(Nanoseconds wait);

  // Messages pulled that the spool has not taken yet.
  std::size_t in_hand() const { return in_hand_.load(std::memory_order_relaxed); }
  VerdictTallies tallies() const;

 private:
  void receive(std::vector<Incoming> pulled);
  Result<void> publish_dead_letters();
  Result<IntakeRound> commit();
  void tally(std::span<const Verdict> verdicts);
  void acknowledge();

  Source& source_;
  Spool& spool_;
  const Router& router_;
  DeadLetters& dead_letters_;
  const IntakeRules rules_;
  Progress& progress_;
  std::vector<Incoming> incoming_;  // their envelopes are in arrivals_ until these are committed
  std::vector<Arrival> arrivals_;
  std::atomic<std::size_t> in_hand_{0};
  mutable std::mutex tallies_mutex_;
  VerdictTallies tallies_;
};

}  // namespace holdfast
