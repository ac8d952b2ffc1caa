// The batch: what one commit appends to a journal segment (FORMAT.md, "Journal"). A header, the frames, zeros to the
// next block. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "crypto/bytes.h"
#include "crypto/digest.h"

namespace holdfast {

// Every commit begins on such a boundary and a synced block is never written again before the segment is reused: flash
// tears what it is programming, and what it tears must not have been promised to anyone.
inline constexpr std::size_t kBlock = 4096;
inline constexpr std::size_t kBatchHeaderSize = 128;

constexpr std::size_t round_up_to_block(std::size_t size) {
  return (size + kBlock - 1) / kBlock * kBlock;
}

struct BatchHeader {
  std::uint64_t base = 0;    // of the segment when the batch was written; batches of a lower base are stale
  std::uint32_t number = 0;  // in the segment, from 0 (the empty batch that takes it into use)
  std::uint32_t frames = 0;
  std::uint32_t bytes = 0;        // of the frames, without header and padding
  std::uint64_t puts_before = 0;  // running count; its differences say how many records a hole held
  std::uint32_t puts = 0;         // in this batch
  bool operator==(const BatchHeader&) const = default;

  std::size_t extent() const { return round_up_to_block(kBatchHeaderSize + bytes); }
};

// Writes into the first kBatchHeaderSize bytes of `batch`.
void write_batch_header(const BatchHeader& header, const Namer& namer, std::span<std::uint8_t> batch);
// Nothing when the bytes are not a batch header of ours.
std::optional<BatchHeader> read_batch_header(ByteView bytes, const Namer& namer);

}  // namespace holdfast
