// NATS user nkeys: an Ed25519 seed and its public key as text, base32 with a prefix and a checksum.
//
// A server is told the public key, and the private one only signs: so who has the seed needs its public key too.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "crypto/bytes.h"

namespace holdfast {

// The public key ("U...") of a seed ("SU..."). Nothing: not the seed of a user, or its checksum is wrong.
std::optional<std::string> nkey_public(std::string_view seed);

// The first seed in the text of a seed file, which may have decoration around it. A view into the text; empty: none.
std::string_view find_nkey_seed(std::string_view text);

// Appends the seed of a user made of these 32 bytes ("SU...") to a buffer that the caller wipes.
void render_nkey_seed(std::span<const std::uint8_t, 32> seed, Bytes& out);

}  // namespace holdfast
