// Subjects and patterns as NATS has them: tokens between dots, `*` for one token, a last `>` for one or more.
#pragma once

#include <string_view>

namespace holdfast {

// No empty token, no white space or control character. In a subject no token is a wildcard ("a*b" is none: the server
// takes it as it is); in a pattern `*` and `>` stand alone, and `>` last.
bool valid_subject(std::string_view subject);
bool valid_pattern(std::string_view pattern);

bool subject_matches(std::string_view pattern, std::string_view subject);
// Some subject matches both.
bool patterns_overlap(std::string_view a, std::string_view b);

}  // namespace holdfast
