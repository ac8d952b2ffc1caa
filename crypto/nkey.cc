#include "crypto/nkey.h"

#include <sodium.h>

#include <array>

#include "crypto/secret.h"

namespace holdfast {
namespace {

// The five-bit kinds of key, in the place where they make the first letter of the base32 text.
constexpr std::uint8_t kPrefixSeed = 18 << 3;
constexpr std::uint8_t kPrefixUser = 20 << 3;

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
constexpr std::size_t kKeySize = 32;
constexpr std::size_t kSeedBytes = 2 + kKeySize + 2;  // two bytes of prefix, the key, its checksum
constexpr std::size_t kSeedText = 58;                 // 36 bytes in base32, no padding

// CRC-16/XMODEM, which is what nkeys are checked with.
std::uint16_t crc16(ByteView bytes) {
  std::uint16_t crc = 0;
  for (const std::uint8_t byte : bytes) {
    crc = static_cast<std::uint16_t>(crc ^ (byte << 8));
    for (int bit = 0; bit < 8; ++bit) {
      const bool carry = (crc & 0x8000) != 0;
      crc = static_cast<std::uint16_t>(crc << 1);
      if (carry) crc ^= 0x1021;
    }
  }
  return crc;
}

void append_base32(ByteView bytes, Bytes& out) {
  std::uint32_t window = 0;
  unsigned bits = 0;
  const auto letter = [](std::uint32_t five) { return static_cast<std::uint8_t>(kAlphabet[five & 31]); };
  for (const std::uint8_t byte : bytes) {
    window = (window << 8) | byte;
    for (bits += 8; bits >= 5; bits -= 5) out.push_back(letter(window >> (bits - 5)));
  }
  if (bits > 0) out.push_back(letter(window << (5 - bits)));
}

// Fills `out` exactly, from a text of just the right length.
bool read_base32(std::string_view text, std::span<std::uint8_t> out) {
  std::uint32_t window = 0;
  unsigned bits = 0;
  std::size_t filled = 0;
  for (const char c : text) {
    const std::size_t five = kAlphabet.find(c);
    if (five == std::string_view::npos) return false;
    window = (window << 5) | static_cast<std::uint32_t>(five);
    bits += 5;
    if (bits < 8) continue;
    if (filled == out.size()) return false;
    bits -= 8;
    out[filled++] = static_cast<std::uint8_t>(window >> bits);
  }
  return filled == out.size();
}

void append_checksum(Bytes& bytes) {
  const std::uint16_t crc = crc16(bytes);
  bytes.push_back(static_cast<std::uint8_t>(crc & 0xff));
  bytes.push_back(static_cast<std::uint8_t>(crc >> 8));
}

// Checksum, kind and prefix are those of a user's seed.
bool is_user_seed(std::span<const std::uint8_t, kSeedBytes> raw) {
  const std::uint16_t said = static_cast<std::uint16_t>(raw[kSeedBytes - 2] | (raw[kSeedBytes - 1] << 8));
  if (crc16(raw.first(kSeedBytes - 2)) != said) return false;
  const auto kind = static_cast<std::uint8_t>(((raw[0] & 7) << 5) | (raw[1] >> 3));
  return (raw[0] & 0xf8) == kPrefixSeed && kind == kPrefixUser;
}

}  // namespace

std::optional<std::string> nkey_public(std::string_view seed) {
  std::array<std::uint8_t, kSeedBytes> raw{};
  if (seed.size() != kSeedText) return std::nullopt;
  if (!read_base32(seed, raw) || !is_user_seed(raw)) {
    wipe(raw);
    return std::nullopt;
  }
  std::array<std::uint8_t, crypto_sign_PUBLICKEYBYTES> public_key{};
  std::array<std::uint8_t, crypto_sign_SECRETKEYBYTES> private_key{};
  crypto_sign_seed_keypair(public_key.data(), private_key.data(), raw.data() + 2);
  wipe(private_key);
  wipe(raw);

  Bytes named{kPrefixUser};
  named.insert(named.end(), public_key.begin(), public_key.end());
  append_checksum(named);
  Bytes text;
  append_base32(named, text);
  return std::string(as_text(text));
}

std::string_view find_nkey_seed(std::string_view text) {
  for (std::size_t at = text.find("SU"); at != std::string_view::npos; at = text.find("SU", at + 1)) {
    const std::string_view rest = text.substr(at);
    const std::size_t length = std::min(rest.find_first_not_of(kAlphabet), rest.size());
    if (length == kSeedText && (at == 0 || text[at - 1] == '\n')) return rest.substr(0, length);
  }
  return {};
}

void render_nkey_seed(std::span<const std::uint8_t, 32> seed, Bytes& out) {
  Bytes raw;
  raw.reserve(kSeedBytes);
  raw.push_back(static_cast<std::uint8_t>(kPrefixSeed | (kPrefixUser >> 5)));
  raw.push_back(static_cast<std::uint8_t>((kPrefixUser & 31) << 3));
  raw.insert(raw.end(), seed.begin(), seed.end());
  append_checksum(raw);
  out.reserve(out.size() + kSeedText);
  append_base32(raw, out);
  wipe(raw);
}

}  // namespace holdfast
