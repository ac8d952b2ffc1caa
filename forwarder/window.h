// What one target is given, when, and what is made of its answers. Pure: no spool, no target, no clock; the forwarder
// is the glue between this and those.
//
// The window holds the records that were read for the target and are not settled, bounded in number and bytes (one
// record more may be in it, and one larger than the bound goes all the same). A round: what was read is offered, what
// waits outside and whose time has come is recalled, what is to go now is taken as a flight, reported on one by one,
// and landed; then the spool is told the settlements.
//
// What an outcome does:
// - delivered, duplicate: settled.
// - retry: waits with its own backoff, in the window; those that would fill more than half of it wait outside.
// - hold_lane: its lane waits outside, with all that is read of it later. One record at a time finds out; when it is
//   accepted, or refused for itself, reading goes back to the lane's first. Where another of the lane was accepted in
//   the same flight the lane is well, and it is a retry.
// - hold_target, and an error: nothing goes until a probe has succeeded, and then one record.
// - rejected: never final at first. The record waits outside, its lane goes on. When the target has accepted another
//   record since, it is tried once more, and is settled as rejected if it is rejected again. One that is the only
//   record for ever is held, and can be seen, for ever.
// Nothing is given up after some number of tries. Several that fail while none succeeds put the target in doubt
// (standing.h).
//
// Threads: one.
#pragma once

#include <map>
#include <random>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "forwarder/flight.h"
#include "forwarder/forwarder_status.h"
#include "forwarder/outside.h"
#include "forwarder/standing.h"

namespace holdfast {

struct WindowOptions {
  std::size_t records = 1024;
  std::size_t bytes = 16u << 20;
  std::size_t held = 1024;  // lanes on hold, and as many records set apart
  Drain drain = Drain::fifo;
  BackoffOptions backoff{};
};

class Window {
 public:
  Window(const WindowOptions& options, std::uint64_t seed);

  struct Room {
    std::size_t records = 0;
    std::size_t bytes = 0;
  };
  Room room() const;
  DueCursor& cursor() { return cursor_; }
  void offer(DueRecord record);
  // Reading goes back to it, at least: for when it is not known whether the spool has taken a settlement.
  void read_again(Sequence sequence);

  // At most one more than there is room for.
  std::optional<Recall> recall(Nanoseconds now) const;
  // Reads it, and only it, given to due().
  DueCursor recall_cursor(const Recall& recall) const;
  // What was found there, if anything: another one means that it has left by an operator's hand.
  void recalled(const Recall& recall, std::optional<DueRecord> found);

  // The target is to be asked whether it is back before anything is taken.
  bool wants_probe(Nanoseconds now) const;
  void probed(const Result<void>& result, Nanoseconds now);

  // Both the view and the records in it stay valid until land(), except the payloads of those that were settled: they
  // are gone, and have made room for others, which may be offered meanwhile. Empty: nothing to do now.
  std::span<const Delivery> take(Nanoseconds now);
  // A second report for the same place changes nothing.
  void report(std::size_t place, Outcome outcome);
  // What was not reported is tried again, and counts against the target, whatever `result` says.
  void land(const Result<void>& result, Nanoseconds now);
  // Those that have not been asked for yet.
  std::vector<Settlement> settlements() { return std::exchange(settlements_, {}); }
  std::size_t unsettled() const { return settlements_.size(); }

  // When something is to be tried, at the earliest; the far future when nothing waits for a time.
  Nanoseconds next() const;
  // The operator says: try now.
  void kick();
  WindowStatus status() const;

 private:
  // Urgent first where the drain says so, then by age.
  struct Place {
    Priority rank = 0;
    Sequence sequence = 0;
    auto operator<=>(const Place&) const = default;
  };

  Place place_of(Mark mark) const;
  Place place_of(const DueRecord& record) const { return place_of(Mark{record.sequence, record.priority}); }
  WindowRecord& take_in(DueRecord record);
  void forget(const WindowRecord& entry);
  void set_refused(WindowRecord& entry);
  bool may_recall() const;
  bool may_try(const WindowRecord& entry, Nanoseconds now) const;
  const WindowRecord* oldest_refused(Nanoseconds now) const;
  const WindowRecord* first_to_ask(Nanoseconds now) const;

  // landing.cc
  bool is_final(const Flown& flown) const;
  void settle(const Flown& flown);
  void make_room(WindowRecord& entry);
  void release_accepted();
  void judge_record(const Flown& flown, Nanoseconds now);
  void judge_target(const Result<void>& result, const Answers& answers, Nanoseconds now);
  void charge(Wait& wait, const Outcome& outcome, Nanoseconds now);
  void blame(const WindowRecord& entry, const Outcome& outcome);
  void refuse(WindowRecord& entry, const Outcome& outcome, Nanoseconds now);
  void refuse_lane(WindowRecord& entry, const Outcome& outcome, Nanoseconds now);
  void reject(WindowRecord& entry, const Flown& flown, Nanoseconds now);
  void set_aside(Lane& lane, WindowRecord& entry);
  void set_aside_others(Lane& lane, const std::string& subject);
  void release(const std::string& subject);
  void make_way();

  const WindowOptions options_;
  std::mt19937_64 random_;
  DueCursor cursor_;
  std::map<Place, WindowRecord> entries_;
  std::size_t bytes_ = 0;
  std::size_t refused_ = 0;  // of the entries
  Outside outside_;
  Standing standing_;
  bool probe_passed_ = false;
  std::vector<Flown> flight_;
  std::vector<Delivery> deliveries_;
  std::vector<std::map<Place, WindowRecord>::node_type> landed_;  // of the flight: settled already
  std::set<std::string_view> accepted_lanes_;                     // of the flight that is landing, when it matters
  bool flight_accepted_ = false;                                  // likewise: it had an accepted record
  std::uint64_t flights_ = 0;
  std::uint32_t failed_flights_ = 0;
  std::uint64_t accepted_ = 0;  // records, in this life
  std::vector<Settlement> settlements_;
  FateCounts fates_;
};

}  // namespace holdfast
