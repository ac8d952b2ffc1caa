#include "crypto/plain_digest.h"

#include <sodium.h>

namespace holdfast {

std::array<std::uint8_t, 32> blake2b_256(std::initializer_list<ByteView> parts) {
  std::array<std::uint8_t, 32> digest{};
  crypto_generichash_state state;
  crypto_generichash_init(&state, nullptr, 0, digest.size());
  for (const ByteView part : parts) crypto_generichash_update(&state, part.data(), part.size());
  crypto_generichash_final(&state, digest.data(), digest.size());
  return digest;
}

}  // namespace holdfast
