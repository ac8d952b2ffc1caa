// The primitives that crypto/FORMAT.md is written with, straight from libsodium, and the CRC bit by bit. For tests that
// must not share a mistake with crypto/: includes none of it.
#pragma once

#include <sodium.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace primitives {

using Blob = std::vector<std::uint8_t>;

inline Blob join(std::initializer_list<Blob> parts) {
  Blob whole;
  for (const Blob& part : parts) whole.insert(whole.end(), part.begin(), part.end());
  return whole;
}

inline Blob part(const Blob& whole, std::size_t from, std::size_t size) {
  return Blob(whole.begin() + static_cast<std::ptrdiff_t>(from),
              whole.begin() + static_cast<std::ptrdiff_t>(from + size));
}

inline Blob little_endian(std::uint64_t value, std::size_t size) {
  Blob field(size);
  for (std::size_t i = 0; i < size; ++i) field[i] = static_cast<std::uint8_t>(value >> (8 * i));
  return field;
}

inline std::uint64_t number_at(const Blob& bytes, std::size_t from, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) value |= std::uint64_t{bytes.at(from + i)} << (8 * i);
  return value;
}

// H(key, size, text); an empty key is no key.
inline Blob hash(const Blob& key, std::size_t size, const Blob& text) {
  Blob digest(size);
  crypto_generichash(digest.data(), size, text.data(), text.size(), key.empty() ? nullptr : key.data(), key.size());
  return digest;
}

inline Blob derive(const Blob& key, std::string_view label) {
  return hash(key, 32, Blob(label.begin(), label.end()));
}

// S(key, text)
inline Blob siphash(const Blob& key, const Blob& text) {
  Blob mac(16);
  crypto_shorthash_siphashx24(mac.data(), text.data(), text.size(), key.data());
  return mac;
}

// P(HC(key, in), text)
inline Blob poly1305_of_hchacha(const Blob& key, const Blob& in, const Blob& text) {
  Blob once(32), digest(16);
  crypto_core_hchacha20(once.data(), in.data(), key.data(), nullptr);
  crypto_onetimeauth(digest.data(), text.data(), text.size(), once.data());
  return digest;
}

inline Blob aead_seal(const Blob& key, const Blob& nonce, const Blob& associated, const Blob& plain) {
  Blob sealed(plain.size() + 16);
  crypto_aead_xchacha20poly1305_ietf_encrypt(sealed.data(), nullptr, plain.data(), plain.size(), associated.data(),
                                             associated.size(), nullptr, nonce.data(), key.data());
  return sealed;
}

// False when it does not open.
inline bool aead_open(const Blob& key, const Blob& nonce, const Blob& associated, const Blob& sealed, Blob& plain) {
  if (sealed.size() < 16) return false;
  plain.resize(sealed.size() - 16);
  return crypto_aead_xchacha20poly1305_ietf_decrypt(plain.data(), nullptr, nullptr, sealed.data(), sealed.size(),
                                                    associated.data(), associated.size(), nonce.data(),
                                                    key.data()) == 0;
}

inline std::uint32_t crc(const Blob& bytes) {
  std::uint32_t value = 0xffffffff;
  for (std::uint8_t byte : bytes) {
    value ^= byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82f63b78u : 0u);
  }
  return ~value;
}

}  // namespace primitives
