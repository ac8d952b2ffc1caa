#include "spool/id_filter.h"

#include <cstring>

namespace holdfast {

namespace {

constexpr std::size_t kBlockBits = 512;
constexpr int kProbes = 7;  // of 9 bits each, out of the first 64 bits of the id
constexpr int kProbeBits = 9;

std::uint64_t little_endian(const std::uint8_t* bytes, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i) value |= std::uint64_t{bytes[i]} << (8 * i);
  return value;
}

}  // namespace

IdFilter::IdFilter(std::size_t keys) : blocks_(1 + keys * kFilterBits / kBlockBits) {}

std::optional<IdFilter> IdFilter::from_bytes(ByteView bytes) {
  if (bytes.empty() || bytes.size() % sizeof(Block) != 0) return std::nullopt;
  IdFilter filter;
  filter.blocks_.resize(bytes.size() / sizeof(Block));
  std::memcpy(filter.blocks_.data(), bytes.data(), bytes.size());
  return filter;
}

// The last 32 bits choose the block, the first 64 the bits in it.
std::size_t IdFilter::block_of(const IdPrefix& id) const {
  return static_cast<std::size_t>((little_endian(id.data() + 8, 4) * blocks_.size()) >> 32);
}

void IdFilter::add(const IdPrefix& id) {
  Block& block = blocks_[block_of(id)];
  std::uint64_t probes = little_endian(id.data(), 8);
  for (int i = 0; i < kProbes; ++i, probes >>= kProbeBits) {
    block.bits[(probes >> 3) & 63] |= static_cast<std::uint8_t>(1U << (probes & 7));
  }
}

bool IdFilter::maybe(const IdPrefix& id) const {
  if (blocks_.empty()) return false;
  const Block& block = blocks_[block_of(id)];
  std::uint64_t probes = little_endian(id.data(), 8);
  unsigned all = 1;  // no early end: that branch would be a toss-up
  for (int i = 0; i < kProbes; ++i, probes >>= kProbeBits)
    all &= unsigned{block.bits[(probes >> 3) & 63]} >> (probes & 7);
  return all != 0;
}

ByteView IdFilter::bytes() const {
  return {reinterpret_cast<const std::uint8_t*>(blocks_.data()), blocks_.size() * sizeof(Block)};
}

}  // namespace holdfast
