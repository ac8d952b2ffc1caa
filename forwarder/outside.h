// What waits outside the window, so that it takes no room from what flows: lanes on hold, and single records. Only
// where they are is kept, never the records themselves; they are read again when their time has come. Pure.
//
// Bounded: so many lanes, and as many single records. What finds no room stays in the window and fills it, and so holds
// the target as a whole.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>

#include "forwarder/wait.h"
#include "spool/spool.h"

namespace holdfast {

// Where a record is: what it takes to read it again.
struct Mark {
  Sequence sequence = 0;
  Priority priority = 0;
};

// A subject that the target does not take for now.
struct Lane {
  Wait wait;
  Mark lowest;                                  // of those set aside
  Mark highest;                                 // likewise
  std::uint64_t records = 0;                    // set aside so far
  std::array<Sequence, kPriorities> counted{};  // up to here, of each priority
  std::optional<Mark> probe;                    // in the window, to find out
  std::uint64_t probes = 0;                     // so far
  std::uint64_t failed_in = 0;                  // the flight in which it failed last
};

struct Apart {
  Wait wait;
  Priority priority = 0;
};

// To be read again: one record, with its lane's hold at stake or only its own.
struct Recall {
  Mark mark;
  std::optional<std::string> lane;
};

class Outside {
 public:
  explicit Outside(std::size_t limit) : limit_(limit) {}

  Lane* find_lane(const std::string& subject);
  // The lane, made when it is not there; nothing: there is no room for another.
  Lane* hold_lane(const std::string& subject);
  void set_aside(Lane& lane, const DueRecord& record);
  void release_lane(const std::string& subject) { lanes_.erase(subject); }

  bool is_apart(Sequence sequence) const { return apart_.contains(sequence); }
  // False: there is no room for another.
  bool set_apart(const DueRecord& record, const Wait& wait);
  std::optional<Wait> take_back(Sequence sequence);

  // What is to be read again because its own time has come, or what it waited for has happened.
  std::optional<Recall> ripe(Nanoseconds now, std::uint64_t accepted) const;
  // What was tried longest ago, whatever its own time; and when that was.
  std::optional<Recall> oldest(Nanoseconds now, Nanoseconds& tried_at) const;

  // When the next one is ripe; with `asked_only`, when the next one may be tried at all. The far future when nothing
  // is.
  Nanoseconds next(std::uint64_t accepted, bool asked_only) const;
  // Everything may be tried at once.
  void kick();

  std::size_t lanes() const { return lanes_.size(); }
  std::size_t apart() const { return apart_.size(); }
  std::uint64_t set_aside_records() const;
  // The code of whichever failed last.
  const char* code() const;

 private:
  // Calls with each Wait that has nothing in the window, and a function that makes the Recall for it.
  template <typename Visit>
  void each(Visit visit) const;

  const std::size_t limit_;
  std::map<std::string, Lane> lanes_;
  std::map<Sequence, Apart> apart_;
};

}  // namespace holdfast
