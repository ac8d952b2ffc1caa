#include "appliance/dead_letters.h"

#include <algorithm>

#include "spool/ascii.h"

namespace holdfast {
namespace {

constexpr std::string_view kErrorHeader = "Holdfast-Error";
constexpr std::string_view kSubjectHeader = "Holdfast-Original-Subject";
// After a server did not take one: what is refused meanwhile goes to quarantine at once, and the intake does not wait.
constexpr Nanoseconds kRest = std::chrono::seconds(10);

// A route that is missing is the operator's mistake: its messages wait in quarantine for the next try.
bool is_the_messages_own(Reason reason) {
  return reason != Reason::none && reason != Reason::no_route;
}

}  // namespace

bool DeadLetters::takes(const Arrival& arrival) const {
  if (!target_ || !is_the_messages_own(arrival.refused)) return false;
  return std::ranges::none_of(arrival.envelope.headers,
                              [](const Header& header) { return equal_ignoring_case(header.name, kErrorHeader); });
}

std::vector<bool> DeadLetters::publish(std::span<const Arrival* const> refused) {
  std::vector<bool> stored(refused.size());
  const Nanoseconds now = system_clock().monotonic();
  if (refused.empty() || (failed_at_ && now - *failed_at_ < kRest)) return stored;
  const WallTime wall = system_clock().wall();
  std::vector<DueRecord> records(refused.size());
  std::vector<Delivery> window;
  for (std::size_t i = 0; i < refused.size(); ++i) {
    DueRecord& record = records[i];
    record.key = refused[i]->identity.key;
    record.accepted_wall_ns = wall.since_1970.count();
    record.clock_trusted = wall.trusted;
    record.envelope = refused[i]->envelope;
    record.envelope.subject = subject_;
    record.envelope.headers.push_back({std::string(kErrorHeader), std::string(reason_text(refused[i]->refused))});
    record.envelope.headers.push_back({std::string(kSubjectHeader), refused[i]->envelope.subject});
    window.push_back({&record, wire_key(record.key)});
  }
  std::size_t count = 0;
  const auto delivered = target_->deliver(window, [&](std::size_t place, const Outcome& outcome) {
    stored[place] = outcome.kind == OutcomeKind::delivered || outcome.kind == OutcomeKind::duplicate;
    count += stored[place] ? 1u : 0u;
  });
  failed_at_ = delivered && count > 0 ? std::nullopt : std::optional(now);
  published_.fetch_add(count, std::memory_order_relaxed);
  return stored;
}

}  // namespace holdfast
