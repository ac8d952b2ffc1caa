#include "spool/page_check.h"

#include "crypto/digest.h"

namespace holdfast {

namespace {

constexpr std::size_t kNumberAt = kPageBytes - 8;
constexpr std::size_t kSumAt = kPageBytes - 4;

void put_u32(std::uint32_t value, std::span<std::uint8_t> out) {
  for (std::size_t i = 0; i < 4; ++i) out[i] = static_cast<std::uint8_t>(value >> (8 * i));
}

}  // namespace

void seal_page(std::uint32_t number, std::span<std::uint8_t, kPageBytes> page) {
  put_u32(number, page.subspan(kNumberAt, 4));
  put_u32(crc32c(page.first(kSumAt)), page.subspan(kSumAt, 4));
}

bool page_is_sound(std::uint32_t number, std::span<const std::uint8_t, kPageBytes> page) {
  ByteReader end(page.subspan(kNumberAt));
  return end.u32() == number && end.u32() == crc32c(page.first(kSumAt));
}

}  // namespace holdfast
