// Bytes made smaller, and back: gzip (RFC 1952) and zstd (RFC 8878), each a format that any tool reads. Pure.
//
// The same bytes give the same result with one release of the library: nothing of the time or the machine is in it.
// With another release it may be another, so what was compressed is compared by what is in it, never as it stands.
//
// Memory: the result; of bytes that are taken from outside, never more than `limit`.
#pragma once

#include <optional>

#include "crypto/bytes.h"

namespace holdfast {

enum class Compression : std::uint8_t { none, gzip, zstd };

const char* compression_suffix(Compression compression);  // "", ".gz", ".zst"

Bytes compress(ByteView bytes, Compression compression);
// Nothing: not whole, not of that format, with anything behind it, or of more than `limit` bytes when it is open.
std::optional<Bytes> decompress(ByteView bytes, Compression compression, std::size_t limit);

// What the two doors do (gzip.cc, zstd.cc).
Bytes gzip(ByteView bytes);
std::optional<Bytes> gunzip(ByteView bytes, std::size_t limit);
Bytes zstd_compress(ByteView bytes);
std::optional<Bytes> zstd_decompress(ByteView bytes, std::size_t limit);

}  // namespace holdfast
