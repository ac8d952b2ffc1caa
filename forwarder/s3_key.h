// The names that an S3 target gives to objects: a contract with whoever reads the bucket. Pure.
//
// A prefix and a suffix of the configuration, and between them the wire key (spool/identity.h) with every byte outside
// A-Z, a-z, 0-9, '-' and '.', and a '.' at either end, as _XX in upper case. So two keys never have one name, no name
// holds a '/' that means something, and none holds a byte that a URL would spell in two ways: no client, proxy or
// server can disagree on what it is called, or on its signature. A name that would be longer than 200 bytes is "h_3A"
// and the SHA-256 of the wire key in hexadecimal: a store that keeps objects as files takes it, and with the longest
// prefix it is below the 1024 bytes of S3.
//
//     seq:truck-07:TELEMETRY:12:1700000000000000000 -> seq_3Atruck-07_3ATELEMETRY_3A12_3A1700000000000000000
#pragma once

#include <string>
#include <string_view>

namespace holdfast {

std::string s3_object_key(std::string_view prefix, std::string_view wire_key, std::string_view suffix);

}  // namespace holdfast
