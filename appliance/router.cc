#include "appliance/router.h"

#include <algorithm>

#include "spool/subject.h"

namespace holdfast {
namespace {

// Ours decides where both are there.
Priority priority_of(const Envelope& envelope, Priority otherwise) {
  for (const std::string_view name : {"Holdfast-Priority", "Nats-Sinks-Priority"}) {
    if (const auto word = find_header(envelope, name)) return priority_from_text(*word).value_or(kUnknownPriority);
  }
  return otherwise;
}

bool takes(const RouteRule& rule, const Envelope& envelope) {
  return std::any_of(rule.subjects.begin(), rule.subjects.end(),
                     [&](const std::string& pattern) { return subject_matches(pattern, envelope.subject); });
}

}  // namespace

std::variant<Routed, Reason> Router::route(const Envelope& envelope) const {
  for (const RouteRule& rule : rules_) {
    if (!takes(rule, envelope)) continue;
    return Routed{rule.route, priority_of(envelope, rule.priority), rule.identity ? &*rule.identity : nullptr};
  }
  return Reason::no_route;
}

}  // namespace holdfast
