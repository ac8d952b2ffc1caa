// A look at a configuration before its parser sees it. Pure.
#pragma once

#include <optional>
#include <string_view>

namespace holdfast {

// What stands outside strings and comments of one line must be ASCII: no TOML has anything else there, and what toml++
// does with some of it is undefined (its is_non_ascii_horizontal_whitespace), also after a backslash that ends a line
// of a string of several lines. The line of the first character that is not.
std::optional<int> line_beyond_ascii(std::string_view text);

}  // namespace holdfast
