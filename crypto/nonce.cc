#include "crypto/nonce.h"

#include <pthread.h>
#include <sodium.h>

#include <cstring>

#include "crypto/require.h"

namespace holdfast {
namespace {

constexpr std::size_t kDrawnAtOnce = 32;

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
    randombytes_buf(supply.nonces.data(), sizeof supply.nonces);
    supply.left = kDrawnAtOnce;
  }
  return supply.nonces[--supply.left];
}

}  // namespace holdfast
