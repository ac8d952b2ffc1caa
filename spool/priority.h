// Priorities: a rank, 0 before 9. Numbers are in frame headers and never reused.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace holdfast {

using Priority = std::uint8_t;
inline constexpr Priority kPriorities = 10;  // ranks 0..9
inline constexpr Priority kNormalPriority = 5;
inline constexpr Priority kUnknownPriority = 6;

// flash 0, immediate 1, urgent 2, high 3, normal, routine and medium 5, none 6, low 7, deferred 9; nothing for other
// words. Case does not matter.
std::optional<Priority> priority_from_text(std::string_view name);
std::string_view priority_text(Priority priority);

}  // namespace holdfast
