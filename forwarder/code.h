// The codes that say why a target's records wait, and what each means: fixed words of ours, for status and log. A
// peer's own words are never among them (I7). Pure.
#pragma once

#include <string_view>

#include "spool/result.h"

namespace holdfast {

// Of a call that said nothing of any record: the code that its text begins with, else "unreachable".
const char* code_of(const Error& error);

// One line for an operator; empty for a code that is not one.
std::string_view code_text(std::string_view code);

}  // namespace holdfast
