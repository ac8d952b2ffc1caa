// Which route a message takes, and how urgent it is. Pure.
//
// The first rule with a matching subject decides. Its priority gives way to the message's own, when a header
// `Holdfast-Priority` (or `Nats-Sinks-Priority`) is there: a known word means what it says, any other one means
// unknown.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "spool/envelope.h"
#include "spool/manifest.h"
#include "spool/priority.h"
#include "spool/reason.h"

namespace holdfast {

struct RouteRule {
  std::vector<std::string> subjects;  // patterns
  RouteNumber route{};
  Priority priority = kNormalPriority;
};

struct Routed {
  RouteNumber route{};
  Priority priority = kNormalPriority;
  bool operator==(const Routed&) const = default;
};

// Threads: const, any.
class Router {
 public:
  explicit Router(std::vector<RouteRule> rules) : rules_(std::move(rules)) {}

  // Reason::no_route when no rule matches.
  std::variant<Routed, Reason> route(const Envelope& envelope) const;

 private:
  std::vector<RouteRule> rules_;
};

}  // namespace holdfast
