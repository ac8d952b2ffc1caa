// The one door to libzstd.
#include <zstd.h>

#include <memory>

#include "forwarder/compression.h"
#include "spool/check.h"

namespace holdfast {
namespace {

constexpr int kLevel = 3;

}  // namespace

Bytes zstd_compress(ByteView bytes) {
  Bytes out(ZSTD_compressBound(bytes.size()));
  const std::size_t size = ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), kLevel);
  CHECK(ZSTD_isError(size) == 0);
  out.resize(size);
  return out;
}

std::optional<Bytes> zstd_decompress(ByteView bytes, std::size_t limit) {
  const std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream(ZSTD_createDStream(), &ZSTD_freeDStream);
  CHECK(stream != nullptr);
  const std::size_t piece = ZSTD_DStreamOutSize();
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  Bytes out;
  std::size_t wanted = 1;  // bytes that it waits for; 0: the frame is over
  while (wanted != 0) {
    const std::size_t had = out.size(), taken = in.pos;
    out.resize(had + std::min(piece, limit - had + 1));  // one more than it may be shows that it is more
    ZSTD_outBuffer to{out.data() + had, out.size() - had, 0};
    wanted = ZSTD_decompressStream(stream.get(), &to, &in);
    out.resize(had + to.pos);
    if (ZSTD_isError(wanted) != 0 || out.size() > limit) return std::nullopt;
    if (wanted != 0 && to.pos == 0 && in.pos == taken) return std::nullopt;  // cut short
  }
  if (in.pos != in.size) return std::nullopt;
  return out;
}

}  // namespace holdfast
