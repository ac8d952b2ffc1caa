// Nonces of sealed frames: 24 random bytes each, so that neither sequences nor key numbers that repeat (a spool
// restored from an older copy) can make two frames share one.
#pragma once

#include <array>
#include <cstdint>

namespace holdfast {

using Nonce = std::array<std::uint8_t, 24>;

// Never given before. Drawn from the kernel 32 at a time, since asking for each costs more than sealing a small record;
// a forked child starts with none of its parent's. Threads: any, each has its own supply.
Nonce fresh_nonce();

}  // namespace holdfast
