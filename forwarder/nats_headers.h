// The header block of a message as it comes from a NATS server, read by ourselves: the client library takes the line
// after an empty value for that value, and knows no empty one (natsMsgHeader_Values of 3.4 and 3.10). Pure.
//
//     NATS/1.0[ <status>[ <description>]] CRLF { <name>:<value> CRLF } CRLF
//
// Spaces and tabs around a value are not part of it; a line that begins with one goes on with the value before it,
// after one space. An empty value is a value. (NATS architecture decision record 4: NATS message headers.)
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spool/envelope.h"

namespace holdfast {

struct NatsHead {
  int status = 0;  // of the server's own messages; 0: none
  std::string description;
  std::vector<Header> headers;  // in their order

  std::string_view value(std::string_view name) const;  // the first of that very name; empty: there is none
};

// Nothing: it is no such block, or a line of it has no name. An empty block is the head of a message without one.
std::optional<NatsHead> parse_nats_head(std::string_view block);

}  // namespace holdfast
