// What a NATS server takes on the wire. Pure.
#pragma once

#include <span>
#include <string_view>

#include "spool/envelope.h"

namespace holdfast {

// A name that may stand in an API subject: not empty, no dot, wildcard, slash, white space or control character; at
// most 255 bytes.
bool valid_api_name(std::string_view name);

// The bytes that headers take; 0 for none. They count towards a server's max_payload.
std::size_t header_bytes(std::span<const Header> headers);
// The client library turns line ends into spaces and cuts at a NUL; what it would change is not sent at all.
bool header_fits_wire(const Header& header);
// A publish line that the server's default limit (4096 bytes) takes; a longer one costs the connection.
bool subject_fits_wire(std::string_view subject);

}  // namespace holdfast
