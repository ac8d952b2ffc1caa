// The targets of a route, and the bits that stand for them in what is known of a record: one for each place in its
// route. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "spool/check.h"
#include "spool/manifest.h"

namespace holdfast {

using Route = std::vector<RouteTarget>;
using TargetBits = std::uint64_t;
inline constexpr std::size_t kMaxRouteTargets = 64;

// Of a number that the table does not have: one without targets.
inline const Route& route_of(const Manifest& manifest, RouteNumber number) {
  static const Route kNone;
  const auto place = static_cast<std::size_t>(number);
  return place == 0 || place > manifest.routes.size() ? kNone : manifest.routes[place - 1];
}

inline TargetBits all_bits(const Route& route) {
  CHECK(route.size() <= kMaxRouteTargets);
  return route.size() == kMaxRouteTargets ? ~TargetBits{0} : (TargetBits{1} << route.size()) - 1;
}

inline TargetBits required_bits(const Route& route) {
  TargetBits bits = 0;
  for (std::size_t i = 0; i < route.size(); ++i) bits |= TargetBits{route[i].required} << i;
  return bits;
}

// None: the target is not of this route.
inline TargetBits bit_of(const Route& route, TargetNumber target) {
  for (std::size_t i = 0; i < route.size(); ++i) {
    if (route[i].target == target) return TargetBits{1} << i;
  }
  return 0;
}

template <typename Visit>
void for_each_target(const Route& route, TargetBits bits, Visit visit) {
  for (std::size_t i = 0; i < route.size(); ++i) {
    if ((bits >> i & 1) != 0) visit(route[i].target);
  }
}

inline std::vector<TargetNumber> targets_of(const Route& route, TargetBits bits) {
  std::vector<TargetNumber> targets;
  for_each_target(route, bits, [&](TargetNumber target) { targets.push_back(target); });
  return targets;
}

inline std::vector<TargetNumber> all_targets(const Route& route) {
  return targets_of(route, all_bits(route));
}

// Nothing that no target is required to have ever is (R23).
inline bool has_every_required(const Route& route, TargetBits waiting) {
  const TargetBits required = required_bits(route);
  return required != 0 && (waiting & required) == 0;
}

// A record may leave without it. Whoever is not of the route is waited for.
inline bool is_optional(const Route& route, TargetNumber target) {
  const auto place = std::ranges::find(route, target, &RouteTarget::target);
  return place != route.end() && !place->required;
}

}  // namespace holdfast
