#include "spool/batch.h"

#include <algorithm>

#include "spool/check.h"

namespace holdfast {
namespace {

constexpr std::string_view kMagic = "HFB1";
constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kMacAt = kBatchHeaderSize - sizeof(Mac::bytes);

}  // namespace

void write_batch_header(const BatchHeader& header, const Namer& namer, std::span<std::uint8_t> batch) {
  CHECK(batch.size() >= kBatchHeaderSize);
  Bytes bytes;
  bytes.reserve(kBatchHeaderSize);
  ByteWriter out(bytes);
  out.raw(as_bytes(kMagic));
  out.u8(kVersion);
  out.zeros(3);
  out.u64(header.base);
  out.u32(header.number);
  out.u32(header.frames);
  out.u32(header.bytes);
  out.u32(header.puts);
  out.u64(header.puts_before);
  out.zeros(kMacAt - bytes.size());
  out.raw(namer.batch_mac(bytes).bytes);
  std::copy(bytes.begin(), bytes.end(), batch.begin());
}

std::optional<BatchHeader> read_batch_header(ByteView bytes, const Namer& namer) {
  if (bytes.size() < kBatchHeaderSize || as_text(bytes.first(kMagic.size())) != kMagic) return {};
  bytes = bytes.first(kBatchHeaderSize);
  ByteReader in(bytes.subspan(kMagic.size()));
  const bool known = in.u8() == kVersion && in.u8() == 0 && in.u16() == 0;
  BatchHeader header;
  header.base = in.u64();
  header.number = in.u32();
  header.frames = in.u32();
  header.bytes = in.u32();
  header.puts = in.u32();
  header.puts_before = in.u64();
  const ByteView reserved = in.raw(kMacAt - 40);
  Mac mac;
  std::ranges::copy(in.raw(sizeof mac.bytes), mac.bytes.begin());
  const bool zero = std::ranges::all_of(reserved, [](std::uint8_t byte) { return byte == 0; });
  if (!known || !zero || !in.done() || !same_mac(mac, namer.batch_mac(bytes.first(kMacAt)))) return {};
  return header;
}

}  // namespace holdfast
