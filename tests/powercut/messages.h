// The source's messages: number n is always the same message, so whoever meets it again can tell whether it is whole.
#pragma once

#include "spool/spool.h"

namespace holdfast {

inline constexpr std::string_view kSite = "truck-07";

// From 1. Some are refused at the intake, some are too large for the journal, some are rejected by one target.
Arrival message(std::uint64_t number, RouteNumber route);
bool is_refused(std::uint64_t number);
bool is_rejected(std::uint64_t number);  // by the shore

// Whose message it is; 0 when it is not, to the byte, one that was sent.
std::uint64_t number_of(const std::string& key, const Envelope& envelope);

}  // namespace holdfast
