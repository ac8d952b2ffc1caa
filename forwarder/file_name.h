// The names that a file target gives: a contract with whoever reads its directory. Pure.
//
// The wire key (spool/identity.h) with every byte outside a-z, 0-9, `-`, `_` and `.`, and a `.` at either end, as %xx
// in lower case: two keys never have one name, on file systems either that ignore case, refuse ":" or drop a last dot,
// and any URL decoder gives the key back. A name that would be longer than 200 bytes is "h%3a" and the SHA-256 of the
// wire key in hexadecimal.
//
//     seq:truck-07:TELEMETRY:12:1700000000000000000 ->
//     seq%3atruck-07%3a%54%45%4c%45%4d%45%54%52%59%3a12%3a1700000000000000000
//
// The format's suffix follows: nothing, or ".json". Names that begin with a dot are never a record: ours are temporary.
#pragma once

#include <string>
#include <string_view>

namespace holdfast {

std::string record_file_name(std::string_view wire_key, std::string_view suffix);

// Of a file that is being written, by the writer of that name, for the n-th record of a window.
std::string temporary_file_name(std::string_view writer, std::size_t n);
bool is_temporary_file_of(std::string_view writer, std::string_view name);

}  // namespace holdfast
