// A database page knows its own number and checksum, in the 8 bytes at its end that SQLite leaves alone: rot, and a
// page that was written in another's place, are found when they are read and not believed. SQLite itself would see
// neither.
//
// Last bytes of a page: u32 number (the first is 1), u32 CRC32C of all before it. A page of zeros is not sound. Pure.
#pragma once

#include <cstdint>
#include <span>

#include "crypto/bytes.h"

namespace holdfast {

inline constexpr std::size_t kPageBytes = 4096;
inline constexpr int kPageCheckBytes = 8;

void seal_page(std::uint32_t number, std::span<std::uint8_t, kPageBytes> page);
bool page_is_sound(std::uint32_t number, std::span<const std::uint8_t, kPageBytes> page);

}  // namespace holdfast
