#include "appliance/quantity.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <ctime>
#include <limits>

namespace holdfast {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

constexpr std::array kByteUnits{
    Unit{"B", 1}, Unit{"KiB", 1ull << 10}, Unit{"MiB", 1ull << 20}, Unit{"GiB", 1ull << 30}, Unit{"TiB", 1ull << 40},
};

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::array kTimeUnits{
    Unit{"ms", 1'000'000},     Unit{"s", kSecond},         Unit{"m", 60 * kSecond},
    Unit{"h", 3600 * kSecond}, Unit{"d", 86400 * kSecond},
};

// "12unit" in the smallest unit; nothing when it is not that or is above `limit`.
template <std::size_t N>
std::optional<std::uint64_t> parse_with_unit(std::string_view text, const std::array<Unit, N>& units,
                                             std::uint64_t limit) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec != std::errc{}) return std::nullopt;
  const std::string_view name(parsed.ptr, static_cast<std::size_t>(end - parsed.ptr));
  for (const Unit& unit : units) {
    if (unit.name != name) continue;
    if (number > limit / unit.factor) return std::nullopt;
    return number * unit.factor;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  return parse_with_unit(text, kByteUnits, std::numeric_limits<std::int64_t>::max());
}

std::optional<Nanoseconds> parse_duration(std::string_view text) {
  const auto count = parse_with_unit(text, kTimeUnits, std::numeric_limits<std::int64_t>::max());
  if (!count) return std::nullopt;
  return Nanoseconds(static_cast<std::int64_t>(*count));
}

std::optional<double> parse_percent(std::string_view text) {
  if (text.empty() || text.back() != '%') return std::nullopt;
  text.remove_suffix(1);
  const std::size_t dot = text.find('.');
  const std::string_view whole = text.substr(0, dot);
  const std::string_view decimals = dot == std::string_view::npos ? std::string_view("0") : text.substr(dot + 1);
  if (whole.empty() || whole.size() > 3 || decimals.empty() || decimals.size() > 3) return std::nullopt;
  double value = 0;
  double place = 1;
  for (const char c : whole) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  for (const char c : decimals) {
    if (c < '0' || c > '9') return std::nullopt;
    value += (c - '0') * (place /= 10);
  }
  if (value > 100) return std::nullopt;
  return value;
}

std::string bytes_text(std::uint64_t bytes) {
  std::size_t unit = 0;
  while (unit + 1 < kByteUnits.size() && bytes >= kByteUnits[unit + 1].factor) ++unit;
  const double amount = static_cast<double>(bytes) / static_cast<double>(kByteUnits[unit].factor);
  if (unit == 0 || amount >= 99.95) return fmt::format("{:.0f} {}", amount, kByteUnits[unit].name);
  return fmt::format("{:.1f} {}", amount, kByteUnits[unit].name);
}

std::string count_text(std::uint64_t count) {
  const std::string digits = std::to_string(count);
  std::string text;
  for (std::size_t place = 0; place < digits.size(); ++place) {
    if (place > 0 && (digits.size() - place) % 3 == 0) text += ',';
    text += digits[place];
  }
  return text;
}

std::string duration_text(Nanoseconds duration) {
  const std::int64_t seconds =
      std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::seconds>(duration).count());
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  if (seconds < 86400) return fmt::format("{} h {} min", seconds / 3600, seconds % 3600 / 60);
  return fmt::format("{} d {} h", seconds / 86400, seconds % 86400 / 3600);
}

std::string wall_text(std::int64_t since_1970_ns) {
  const std::time_t seconds = static_cast<std::time_t>(since_1970_ns / static_cast<std::int64_t>(kSecond));
  std::tm parts{};
  if (::gmtime_r(&seconds, &parts) == nullptr) return "unknown";
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

}  // namespace holdfast
