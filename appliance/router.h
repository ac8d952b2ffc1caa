// Which route a message takes, how urgent it is, and whether the route names it by a rule of its own. Pure.
//
// The first rule with a matching subject decides. Its priority gives way to the message's own, when a header
// `Holdfast-Priority` (or `Nats-Sinks-Priority`) is there: a known word means what it says, any other one means
// unknown.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "spool/envelope.h"
#include "spool/identity.h"
#include "spool/manifest.h"
#include "spool/priority.h"
#include "spool/reason.h"

namespace holdfast {

struct RouteRule {
  std::vector<std::string> subjects;  // patterns
  RouteNumber route{};
  Priority priority = kNormalPriority;
  std::optional<IdentityRule> identity{};  // of the messages that it takes, in place of their source's
};

struct Routed {
  RouteNumber route{};
  Priority priority = kNormalPriority;
  const IdentityRule* identity = nullptr;  // the route's own, in the router; none: the source's
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
