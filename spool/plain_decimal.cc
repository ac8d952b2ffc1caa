#include "spool/plain_decimal.h"

#include <algorithm>
#include <cstdint>

namespace holdfast {
namespace {

// Above the digits of any body, below what wraps.
constexpr std::int64_t kBeyond = 1'000'000'000'000'000;

std::int64_t exponent_of(std::string_view text) {
  std::int64_t value = 0;
  for (const char c : text) {
    if (c >= '0' && c <= '9') value = std::min(kBeyond, 10 * value + (c - '0'));
  }
  return text.starts_with('-') ? -value : value;
}

// The digits with the point behind the first `before` of them, zeros where there are none.
std::string written(bool negative, std::string digits, std::int64_t before) {
  const auto count = static_cast<std::int64_t>(digits.size());
  if (before >= count) {
    digits.append(static_cast<std::size_t>(before - count), '0');
  } else if (before > 0) {
    digits.insert(static_cast<std::size_t>(before), 1, '.');
  } else {
    digits.insert(0, "0." + std::string(static_cast<std::size_t>(-before), '0'));
  }
  return negative ? "-" + digits : digits;
}

}  // namespace

std::optional<std::string> plain_decimal(std::string_view number) {
  constexpr std::string_view kSignificant = "123456789";
  const bool negative = number.starts_with('-');
  if (negative) number.remove_prefix(1);
  const std::size_t mark = std::min(number.find_first_of("eE"), number.size());
  const std::int64_t exponent = exponent_of(number.substr(std::min(mark + 1, number.size())));
  number = number.substr(0, mark);

  const std::size_t point = std::min(number.find('.'), number.size());
  const std::size_t first = number.find_first_of(kSignificant);
  if (first == std::string_view::npos) return "0";
  const std::size_t last = number.find_last_of(kSignificant);
  const bool across = first < point && point < last;
  const auto count = static_cast<std::int64_t>(last - first) + (across ? 0 : 1);
  // How many digits stand before the point, from the first significant one; negative: zeros between the point and it.
  const std::int64_t before =
      static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first) + (first < point ? 0 : 1) + exponent;

  const std::int64_t length = before >= count ? before : before > 0 ? count + 1 : 2 - before + count;
  if (length + (negative ? 1 : 0) > static_cast<std::int64_t>(kMaxPlainDecimal)) return std::nullopt;
  std::string digits(number.substr(first, last - first + 1));
  std::erase(digits, '.');
  return written(negative, std::move(digits), before);
}

}  // namespace holdfast
