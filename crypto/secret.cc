#include "crypto/secret.h"

#include <sodium.h>

#include <array>

#include "crypto/require.h"

namespace holdfast {
namespace {

constexpr std::string_view kIdLabel = "holdfast/1 key id";
constexpr std::size_t kIdSize = 8;

static_assert(SecretKey::kSize == crypto_generichash_KEYBYTES);
static_assert(SecretKey::kSize == crypto_aead_xchacha20poly1305_ietf_KEYBYTES);
static_assert(SecretKey::kSize == crypto_box_SECRETKEYBYTES);

// Between guard pages, out of core dumps, and locked where the limit on locked memory allows it.
std::uint8_t* guarded_memory() {
  void* memory = sodium_malloc(SecretKey::kSize);
  require(memory != nullptr, "no memory for a key");
  return static_cast<std::uint8_t*>(memory);
}

// A refusal is let pass: the key is as good as before, only a stray write would not be caught.
void make_readonly(std::uint8_t* memory) {
  (void)sodium_mprotect_readonly(memory);
}

}  // namespace

bool init_crypto() {
  return sodium_init() >= 0;
}

void SecretKey::Wipe::operator()(std::uint8_t* memory) const {
  sodium_free(memory);
}

SecretKey SecretKey::random() {
  std::uint8_t* memory = guarded_memory();
  randombytes_buf(memory, kSize);
  make_readonly(memory);
  return SecretKey(memory);
}

SecretKey SecretKey::copy_of(std::span<const std::uint8_t, kSize> bytes) {
  std::uint8_t* memory = guarded_memory();
  std::memcpy(memory, bytes.data(), kSize);
  make_readonly(memory);
  return SecretKey(memory);
}

SecretKey SecretKey::derive(std::string_view label) const {
  std::uint8_t* memory = guarded_memory();
  crypto_generichash(memory, kSize, as_bytes(label).data(), label.size(), bytes().data(), kSize);
  make_readonly(memory);
  return SecretKey(memory);
}

std::string SecretKey::id() const {
  std::array<std::uint8_t, 32> digest;
  crypto_generichash(digest.data(), digest.size(), as_bytes(kIdLabel).data(), kIdLabel.size(), bytes().data(), kSize);
  return to_hex(ByteView(digest).first(kIdSize));
}

std::span<const std::uint8_t, SecretKey::kSize> SecretKey::bytes() const {
  require(memory_ != nullptr, "use of a key that was moved away");
  return std::span<const std::uint8_t, kSize>(memory_.get(), kSize);
}

void wipe(std::span<std::uint8_t> memory) {
  sodium_memzero(memory.data(), memory.size());
}

}  // namespace holdfast
