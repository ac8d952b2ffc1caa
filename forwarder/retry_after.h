// How long an HTTP server asks to be left alone (RFC 9110, section 10.2.3). Pure.
//
// A moment is taken against the server's own Date: the box's clock is often wrong. Without one a moment says nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "forwarder/http_client.h"

namespace holdfast {

// Nothing: it did not ask, or not so that it can be understood. Not negative; bounded by a day.
std::optional<Nanoseconds> retry_after(const HttpResponse& response);

// Seconds since 1970 of an HTTP date in any of its three forms (RFC 9110, section 5.6.7).
std::optional<std::int64_t> parse_http_date(std::string_view text);

}  // namespace holdfast
