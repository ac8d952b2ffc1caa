// A blocked Bloom filter over record ids: one cache line a question. About 0.3% of strangers pass at kFilterBits a key.
// Ids are keyed digests: their bytes are as good as any hash. Value; no thread rule.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "crypto/bytes.h"

namespace holdfast {

// What is kept of a record id. Two ids that share it are taken for one: about 2^-50 for any two of ten million, and
// then the contents differ, so that the newcomer is a conflict and kept.
using IdPrefix = std::array<std::uint8_t, 12>;

class IdFilter {
 public:
  IdFilter() = default;
  explicit IdFilter(std::size_t keys);
  static std::optional<IdFilter> from_bytes(ByteView bytes);

  void add(const IdPrefix& id);
  bool maybe(const IdPrefix& id) const;
  ByteView bytes() const;

 private:
  struct alignas(64) Block {
    std::array<std::uint8_t, 64> bits{};
  };
  std::size_t block_of(const IdPrefix& id) const;
  std::vector<Block> blocks_;
};

inline constexpr std::size_t kFilterBits = 14;  // a key: ten million cost 16.7 MiB

}  // namespace holdfast
