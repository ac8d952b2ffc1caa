// The one door to zlib. Its counters are 32 bits: what is larger goes in pieces.
#include <zlib.h>

#include <limits>

#include "forwarder/compression.h"
#include "spool/check.h"

namespace holdfast {
namespace {

constexpr int kLevel = 6;
constexpr int kGzipWindow = 15 + 16;  // the largest window, with gzip's header
constexpr int kMemory = 8;
constexpr int kUnknownSystem = 255;
constexpr std::size_t kPiece = 64u << 10;

uInt at_most(std::size_t size) {
  return static_cast<uInt>(std::min<std::size_t>(size, std::numeric_limits<uInt>::max()));
}

// zlib takes a pointer to what it will not change.
Bytef* unchanged(ByteView bytes) {
  return const_cast<Bytef*>(bytes.data());
}

}  // namespace

Bytes gzip(ByteView bytes) {
  z_stream stream{};
  CHECK(deflateInit2(&stream, kLevel, Z_DEFLATED, kGzipWindow, kMemory, Z_DEFAULT_STRATEGY) == Z_OK);
  gz_header header{};
  header.os = kUnknownSystem;  // no time, no name, no system
  CHECK(deflateSetHeader(&stream, &header) == Z_OK);
  Bytes out;
  int state = Z_OK;
  while (state != Z_STREAM_END) {
    if (stream.avail_in == 0) {
      stream.next_in = unchanged(bytes);
      stream.avail_in = at_most(bytes.size());
      bytes = bytes.subspan(stream.avail_in);
    }
    const std::size_t had = out.size();
    out.resize(had + kPiece);
    stream.next_out = out.data() + had;
    stream.avail_out = kPiece;
    state = deflate(&stream, bytes.empty() ? Z_FINISH : Z_NO_FLUSH);
    CHECK(state == Z_OK || state == Z_STREAM_END || state == Z_BUF_ERROR);
    out.resize(out.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  return out;
}

std::optional<Bytes> gunzip(ByteView bytes, std::size_t limit) {
  z_stream stream{};
  CHECK(inflateInit2(&stream, kGzipWindow) == Z_OK);
  Bytes out;
  int state = Z_OK;
  while (state == Z_OK) {
    if (stream.avail_in == 0) {
      stream.next_in = unchanged(bytes);
      stream.avail_in = at_most(bytes.size());
      bytes = bytes.subspan(stream.avail_in);
    }
    const std::size_t had = out.size();
    out.resize(had + std::min(kPiece, limit - had + 1));  // one more than it may be shows that it is more
    stream.next_out = out.data() + had;
    stream.avail_out = static_cast<uInt>(out.size() - had);
    state = inflate(&stream, Z_NO_FLUSH);
    out.resize(out.size() - stream.avail_out);
    if (out.size() > limit) break;
  }
  const bool whole = state == Z_STREAM_END && stream.avail_in == 0 && bytes.empty();
  inflateEnd(&stream);
  if (!whole || out.size() > limit) return std::nullopt;
  return out;
}

}  // namespace holdfast
