// A command's answer as text for a terminal of 80 columns. Pure: from the JSON that --json would print, and nothing
// else.
#pragma once

#include <string>
#include <string_view>

#include "appliance/json.h"

namespace holdfast {

inline constexpr std::size_t kColumns = 80;

// Ends with a newline. `command` as in commands.h ("spool list").
std::string report_text(std::string_view command, const Json& answer);

}  // namespace holdfast
