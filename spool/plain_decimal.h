// The one text of a decimal number: all spellings of a value in JSON (1, 1.0, 10e-1) have the same. No binary number is
// made on the way, so nothing is rounded. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast {

inline constexpr std::size_t kMaxPlainDecimal = 100;  // what names a message is a number that somebody could write down

// No exponent, no plus, no leading or trailing zeros, a zero before a leading point, 0 without a sign. Nothing when
// that would be longer than kMaxPlainDecimal. `number` must be one by the grammar of JSON (RFC 8259, section 6).
std::optional<std::string> plain_decimal(std::string_view number);

}  // namespace holdfast
