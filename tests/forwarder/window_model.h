// A window between a spool and a target that are both made of a few maps: the same turns as the forwarder's, in a
// test's hands.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "forwarder/window.h"

namespace holdfast {

class WindowModel {
 public:
  using Answer = std::function<Outcome(const DueRecord&)>;

  explicit WindowModel(WindowOptions options = {}, std::uint64_t seed = 1) : window(options, seed), options_(options) {}

  Sequence put(const std::string& subject, std::size_t bytes = 100, Priority priority = kNormalPriority) {
    DueRecord record;
    record.sequence = ++last_;
    record.priority = priority;
    record.key = "k:" + std::to_string(last_);
    record.envelope.subject = subject;
    record.bytes = bytes;
    record.surely_unsent = true;
    waiting[last_] = record;
    return last_;
  }

  // What due() promises: in order, above the cursor, as many as fit but at least one.
  std::vector<DueRecord> due(DueCursor& cursor, std::size_t max_records, std::size_t max_bytes) {
    std::vector<std::pair<Priority, Sequence>> order;
    const bool by_priority = options_.drain == Drain::priority;
    for (const auto& [sequence, record] : waiting) {
      if (sequence > cursor.after.at(by_priority ? record.priority : 0)) {
        order.emplace_back(by_priority ? record.priority : Priority{0}, sequence);
      }
    }
    std::sort(order.begin(), order.end());
    std::vector<DueRecord> found;
    std::size_t bytes = 0;
    for (const auto& [rank, sequence] : order) {
      DueRecord& record = waiting[sequence];
      if (found.size() == max_records || (!found.empty() && bytes + record.bytes > max_bytes)) break;
      bytes += record.bytes;
      found.push_back(record);
      record.surely_unsent = false;
      cursor.after.at(rank) = sequence;
      ++read;
    }
    return found;
  }

  void top_up() {
    for (int turn = 0; turn < 1000; ++turn) {
      const Window::Room room = window.room();
      if (room.records == 0) break;
      auto found = due(window.cursor(), room.records, room.bytes);
      if (found.empty()) break;
      for (DueRecord& record : found) window.offer(std::move(record));
    }
    for (int turn = 0; turn < 1000; ++turn) {
      const auto recall = window.recall(now);
      if (!recall) return;
      DueCursor cursor = window.recall_cursor(*recall);
      auto found = due(cursor, 1, SIZE_MAX);
      window.recalled(*recall, found.empty() ? std::nullopt : std::optional(found.front()));
    }
  }

  // One round: the sequences that flew.
  std::vector<Sequence> round(const Answer& answer, const Result<void>& result = {}) {
    top_up();
    if (window.wants_probe(now)) {
      ++probes;
      window.probed(probe, now);
    }
    std::vector<Sequence> flew;
    const auto flight = window.take(now);
    for (std::size_t place = 0; place < flight.size(); ++place) flew.push_back(flight[place].record->sequence);
    for (std::size_t place = 0; place < flight.size(); ++place) {
      const std::optional<Outcome> outcome = answer ? std::optional(answer(*flight[place].record)) : std::nullopt;
      if (outcome) window.report(place, *outcome);
    }
    window.land(result, now);
    settle();
    return flew;
  }

  void settle() {
    for (Settlement& settlement : window.settlements()) {
      EXPECT_TRUE(settled.emplace(settlement.sequence, settlement).second) << "settled twice " << settlement.sequence;
      EXPECT_EQ(waiting.erase(settlement.sequence), 1U);
    }
  }

  bool more_to_read() {
    const bool by_priority = options_.drain == Drain::priority;
    if (window.room().records == 0) return false;
    return std::any_of(waiting.begin(), waiting.end(), [&](const auto& record) {
      return record.first > window.cursor().after.at(by_priority ? record.second.priority : 0);
    });
  }

  // Goes to where something is to be read or tried. False: nothing waits for a time.
  bool forward() {
    if (more_to_read()) return true;
    const Nanoseconds next = window.next();
    if (next == Nanoseconds::max()) return false;
    now = std::max(now, next);
    return true;
  }

  Window window;
  std::map<Sequence, DueRecord> waiting;
  std::map<Sequence, Settlement> settled;
  Nanoseconds now = std::chrono::hours(1);
  Result<void> probe;
  int probes = 0;
  std::uint64_t read = 0;

 private:
  const WindowOptions options_;
  Sequence last_ = 0;
};

inline Outcome outcome(OutcomeKind kind, const char* state = "") {
  Outcome made;
  made.kind = kind;
  made.state = state;
  return made;
}

}  // namespace holdfast
