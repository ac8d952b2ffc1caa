// The two ways in which crc32c() (digest.h) is computed, apart, so that a test may compare them.
#pragma once

#include <cstdint>

#include "crypto/bytes.h"

namespace holdfast {

// Tables, eight bytes a step. Right on every machine.
std::uint32_t crc32c_by_table(ByteView bytes);

// The processor's own instruction (SSE 4.2, ARMv8 CRC). Only where crc32c_has_instruction().
std::uint32_t crc32c_by_instruction(ByteView bytes);
bool crc32c_has_instruction();

}  // namespace holdfast
