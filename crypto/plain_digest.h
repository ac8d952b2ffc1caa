// An unkeyed digest of several parts, for what others keep and must be able to recompute and compare: BLAKE2b with 32
// bytes of output (RFC 7693; `b2sum -l 256`), half the price of SHA-256 where the processor has no instructions for
// that. The parts are taken one after the other: who needs them told apart puts their lengths between them.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>

#include "crypto/bytes.h"

namespace holdfast {

std::array<std::uint8_t, 32> blake2b_256(std::initializer_list<ByteView> parts);

}  // namespace holdfast
