#include "crypto/nonce.h"

#include <pthread.h>
#include <sodium.h>

#include <cstring>

#include "crypto/require.h"

namespace holdfast {
namespace {

// The kernel is asked for a seed, and ChaCha20 makes this many of it: asking for each would cost as much as a digest.
constexpr std::size_t kDrawnAtOnce = 64;

struct Supply {
  std::array<Nonce, kDrawnAtOnce> nonces;
  std::size_t left = 0;
};
thread_local Supply supply;

// In a child of fork(): parent and child must not use the same supply.
void forget_supply() {
  supply.left = 0;
}

}  // namespace

Nonce fresh_nonce() {
  static const int refused = pthread_atfork(nullptr, nullptr, forget_supply);
  require(refused == 0, "no memory for a fork handler");
  if (supply.left == 0) {
    std::array<std::uint8_t, randombytes_SEEDBYTES> seed;
    randombytes_buf(seed.data(), seed.size());
    randombytes_buf_deterministic(supply.nonces.data(), sizeof supply.nonces, seed.data());
    supply.left = kDrawnAtOnce;
  }
  return supply.nonces[--supply.left];
}

}  // namespace holdfast
