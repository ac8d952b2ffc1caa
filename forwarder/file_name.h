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
// The format's suffix follows: nothing, or ".json"; then that of the compression, ".gz" or ".zst". Names that begin
// with a dot are never a record: ours are temporary.
//
// Where a name is, its layout says: `flat`, all in one directory; `date`, in one of the day of the message's own time
// in its stream, "2023-11-14", for that is the same on every attempt, and no clock of the box is asked (1970 where the
// stream's server had none); `subject`, in one for each token of the subject, "telemetry/engine/1". A token is written
// as a key is, but with = for %, so that no directory has a record's name; one without a byte is "=", and one longer
// than 200 bytes its digest. The eighth directory holds what is left of a longer subject, dots and all. With `date` a
// message that the spool takes in again under one key on another day (its identity no place in a stream, and forgotten
// by the ledger) gets a second file.
#pragma once

#include <string>
#include <string_view>

#include "spool/envelope.h"

namespace holdfast {

enum class FileLayout : std::uint8_t { flat, date, subject };

// "" or a path beneath the target's directory, without "." or "..".
std::string record_directory(FileLayout layout, const Envelope& envelope);

std::string record_file_name(std::string_view wire_key, std::string_view suffix);

// Of a file that is being written, by the writer of that name, for the n-th record of a window.
std::string temporary_file_name(std::string_view writer, std::size_t n);
bool is_temporary_file_of(std::string_view writer, std::string_view name);

}  // namespace holdfast
