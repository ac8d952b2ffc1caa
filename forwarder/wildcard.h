// Text against a pattern in which '*' stands for any bytes, none included. Pure; time is bounded by the product of the
// two lengths.
#pragma once

#include <string_view>

namespace holdfast {

// The whole text.
bool matches_wildcard(std::string_view pattern, std::string_view text);

}  // namespace holdfast
