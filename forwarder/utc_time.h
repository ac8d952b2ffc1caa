// A moment as text and back, to the nanosecond. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast {

// 2024-05-01T12:00:00.123456789Z, or with an offset (+02:00); years 1678 to 2261. Nanoseconds since 1970.
std::optional<std::int64_t> parse_time(std::string_view text);
std::string format_time(std::int64_t ns_since_1970);

}  // namespace holdfast
