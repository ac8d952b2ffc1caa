#include "forwarder/outside.h"

namespace holdfast {
namespace {

// A lane is tried with its first record, then with its last, in turns: one record that can never go must not hold all
// that came after it (I6).
Recall lane_recall(const std::string& subject, const Lane& lane) {
  return {lane.probes % 2 == 0 ? lane.lowest : lane.highest, subject};
}

}  // namespace

Lane* Outside::find_lane(const std::string& subject) {
  const auto found = lanes_.find(subject);
  return found == lanes_.end() ? nullptr : &found->second;
}

Lane* Outside::hold_lane(const std::string& subject) {
  if (Lane* lane = find_lane(subject)) return lane;
  return lanes_.size() < limit_ ? &lanes_[subject] : nullptr;
}

// Reading goes back when another lane is released, and then comes by the same records again.
void Outside::set_aside(Lane& lane, const DueRecord& record) {
  const Mark mark{record.sequence, record.priority};
  if (lane.records == 0 || mark.sequence < lane.lowest.sequence) lane.lowest = mark;
  if (lane.records == 0 || mark.sequence > lane.highest.sequence) lane.highest = mark;
  Sequence& counted = lane.counted.at(mark.priority);
  if (mark.sequence <= counted) return;
  counted = mark.sequence;
  ++lane.records;
}

bool Outside::set_apart(const DueRecord& record, const Wait& wait) {
  if (apart_.size() >= limit_) return false;
  apart_[record.sequence] = {wait, record.priority};
  return true;
}

std::optional<Wait> Outside::take_back(Sequence sequence) {
  const auto found = apart_.find(sequence);
  if (found == apart_.end()) return std::nullopt;
  const Wait wait = found->second.wait;
  apart_.erase(found);
  return wait;
}

template <typename Visit>
void Outside::each(Visit visit) const {
  for (const auto& [subject, lane] : lanes_) {
    if (!lane.probe) visit(lane.wait, [&, &name = subject, &held = lane] { return lane_recall(name, held); });
  }
  for (const auto& [sequence, apart] : apart_) {
    visit(apart.wait, [&, at = sequence, &held = apart] { return Recall{{at, held.priority}, std::nullopt}; });
  }
}

std::optional<Recall> Outside::ripe(Nanoseconds now, std::uint64_t accepted) const {
  std::optional<Recall> found;
  each([&](const Wait& wait, const auto& recall) {
    if (found) return;
    if (wait.over(now) || (wait.proven(accepted) && now >= wait.asked_until)) found = recall();
  });
  return found;
}

std::optional<Recall> Outside::oldest(Nanoseconds now, Nanoseconds& tried_at) const {
  std::optional<Recall> found;
  each([&](const Wait& wait, const auto& recall) {
    if (now < wait.asked_until || (found && wait.tried_at >= tried_at)) return;
    tried_at = wait.tried_at;
    found = recall();
  });
  return found;
}

Nanoseconds Outside::next(std::uint64_t accepted, bool asked_only) const {
  Nanoseconds next = Nanoseconds::max();
  each([&](const Wait& wait, const auto&) {
    const bool own_time = !asked_only && !wait.proven(accepted);
    next = std::min(next, own_time ? wait.end() : wait.asked_until);
  });
  return next;
}

void Outside::kick() {
  for (auto& [subject, lane] : lanes_) lane.wait.until = lane.wait.asked_until = Nanoseconds(0);
  for (auto& [sequence, apart] : apart_) apart.wait.until = apart.wait.asked_until = Nanoseconds(0);
}

std::uint64_t Outside::set_aside_records() const {
  std::uint64_t records = 0;
  for (const auto& [subject, lane] : lanes_) records += lane.records;
  return records;
}

const char* Outside::code() const {
  const Wait* last = nullptr;
  for (const auto& [subject, lane] : lanes_) {
    if (last == nullptr || lane.wait.tried_at > last->tried_at) last = &lane.wait;
  }
  for (const auto& [sequence, apart] : apart_) {
    if (last == nullptr || apart.wait.tried_at > last->tried_at) last = &apart.wait;
  }
  return last == nullptr ? "" : last->code;
}

}  // namespace holdfast
