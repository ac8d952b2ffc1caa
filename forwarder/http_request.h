// What the HTTP target makes of records: a contract with whoever runs the endpoint (docs/targets.md). Pure.
//
// raw: the payload, byte for byte, and all else in headers: Holdfast-Subject, -Site, -Stream, -Sequence, -Timestamp
// (nanoseconds since 1970, the stream's), -Spool-Sequence, -Accepted-At, -Clock; the producer's under
// Holdfast-Header-<name>; of a payload that was left out, Holdfast-Payload-Omitted has its size. Bytes of a value
// outside 0x21 to 0x7E, and '%', travel as %XX; so do bytes of a name that no header's name may have. A line of the
// envelope holds all of that but the -Site, -Spool-Sequence, -Accepted-At and -Clock headers, which go with it.
//
// The same record gives the same body for ever.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "forwarder/target.h"

namespace holdfast {

enum class HttpBody : std::uint8_t { raw, envelope };

// Beside the key and what the configuration adds.
std::vector<Header> http_record_headers(const Delivery& delivery, const std::string& site, HttpBody body);

// A line of JSON as file_content.h has it, for each.
Bytes http_envelopes(std::span<const Delivery> records);

}  // namespace holdfast
