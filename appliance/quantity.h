// Sizes, durations and shares, as an operator writes them and as he reads them. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "spool/clock.h"

namespace holdfast {

// A whole number and its unit, with nothing between: "10GiB". B, KiB, MiB, GiB, TiB; nothing for other words or what
// does not fit.
std::optional<std::uint64_t> parse_bytes(std::string_view text);
// Likewise "500ms". ms, s, m, h, d.
std::optional<Nanoseconds> parse_duration(std::string_view text);
// "1%" or "0.5%": 0 to 100, at most three decimals.
std::optional<double> parse_percent(std::string_view text);

// "0 B", "17 KiB", "3.2 GiB": at most two units' worth of precision.
std::string bytes_text(std::uint64_t bytes);
// "1,234,567".
std::string count_text(std::uint64_t count);
// "0 s", "12 s", "5 min 3 s", "2 h 10 min", "6 d 4 h": the two largest units. Negative ones read as none.
std::string duration_text(Nanoseconds duration);
// "2026-10-15 12:34:56Z" from nanoseconds since 1970.
std::string wall_text(std::int64_t since_1970_ns);

}  // namespace holdfast
