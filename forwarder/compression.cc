#include "forwarder/compression.h"

namespace holdfast {

const char* compression_suffix(Compression compression) {
  switch (compression) {
    case Compression::gzip:
      return ".gz";
    case Compression::zstd:
      return ".zst";
    case Compression::none:
      break;
  }
  return "";
}

Bytes compress(ByteView bytes, Compression compression) {
  switch (compression) {
    case Compression::gzip:
      return gzip(bytes);
    case Compression::zstd:
      return zstd_compress(bytes);
    case Compression::none:
      break;
  }
  return Bytes(bytes.begin(), bytes.end());
}

std::optional<Bytes> decompress(ByteView bytes, Compression compression, std::size_t limit) {
  switch (compression) {
    case Compression::gzip:
      return gunzip(bytes, limit);
    case Compression::zstd:
      return zstd_decompress(bytes, limit);
    case Compression::none:
      break;
  }
  if (bytes.size() > limit) return std::nullopt;
  return Bytes(bytes.begin(), bytes.end());
}

}  // namespace holdfast
