// Records made for a target, delivered once, and what it said: for tests of targets alone.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "forwarder/flight.h"
#include "spool/identity.h"

namespace holdfast {

using Kinds = std::vector<OutcomeKind>;

struct Delivered {
  Result<void> result;
  std::vector<std::optional<Outcome>> outcomes;  // by place; nothing: not reported

  // All were reported.
  Kinds kinds() const {
    Kinds kinds;
    for (const auto& outcome : outcomes) {
      if (outcome) kinds.push_back(outcome->kind);
    }
    return kinds;
  }
  std::size_t count(OutcomeKind kind) const {
    return static_cast<std::size_t>(std::count_if(
        outcomes.begin(), outcomes.end(), [&](const auto& outcome) { return outcome && outcome->kind == kind; }));
  }
};

inline DueRecord made_record(std::uint64_t number, std::string_view payload, std::string subject = "telemetry.a") {
  DueRecord record;
  record.sequence = number;
  record.key = "msg:" + std::to_string(number);
  record.envelope.subject = std::move(subject);
  record.envelope.payload.assign(payload.begin(), payload.end());
  record.envelope.origin = {"TELEMETRY", number, static_cast<std::int64_t>(number)};
  record.bytes = payload.size();
  return record;
}

// One delivery of the records, each under its own wire key. A report that comes twice, or after deliver has returned,
// is a failure of the test.
inline Delivered deliver(Target& target, const std::vector<DueRecord>& records) {
  std::vector<Delivery> window;
  for (const DueRecord& record : records) window.push_back({&record, wire_key(record.key)});
  Delivered delivered;
  delivered.outcomes.resize(records.size());
  bool over = false;
  delivered.result = target.deliver(window, [&](std::size_t place, Outcome outcome) {
    EXPECT_FALSE(over) << "a report after the delivery";
    ASSERT_LT(place, delivered.outcomes.size());
    EXPECT_FALSE(delivered.outcomes[place]) << "place " << place << " was reported twice";
    delivered.outcomes[place] = std::move(outcome);
  });
  over = true;
  return delivered;
}

}  // namespace holdfast
