// Nonces of sealed frames: 24 random bytes each, so that neither sequences nor key numbers that repeat (a spool
// restored from an older copy) can make two frames share one.
#pragma once

#include <array>
#include <cstdint>

namespace holdfast {

using Nonce = std::array<std::uint8_t, 24>;

// Never given before. Drawn 64 at a time from a fresh seed, since asking the kernel for each costs as much as a digest;
// a forked child starts with none of its parent's. Threads: any, each has its own supply.
Nonce fresh_nonce();

}  // namespace holdfast
