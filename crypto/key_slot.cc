#include "crypto/key_slot.h"

#include <sodium.h>

#include <algorithm>
#include <cstring>

#include "crypto/require.h"

namespace holdfast {
namespace {

constexpr std::string_view kWrapLabel = "holdfast/1 wrap";
constexpr std::string_view kRecipientLabel = "holdfast/1 recipient";
constexpr std::string_view kKeyFilePrefix = "holdfast-key-1:";
constexpr std::size_t kKeyFileDigits = 2 * SecretKey::kSize;

constexpr std::size_t kNonceSize = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES;
constexpr std::size_t kFactsSize = 1 + 1 + 4 + 8;
constexpr std::size_t kSymmetricSize = kNonceSize + SecretKey::kSize + crypto_aead_xchacha20poly1305_ietf_ABYTES;
constexpr std::size_t kBoxedSize = kFactsSize + SecretKey::kSize;
constexpr std::size_t kX25519Size = crypto_box_SEALBYTES + kBoxedSize;

using Facts = std::array<std::uint8_t, kFactsSize>;
using RecipientId = std::array<std::uint8_t, 8>;

// A secret on the stack that does not outlive its block.
template <std::size_t kSize>
struct Scratch {
  std::array<std::uint8_t, kSize> bytes;
  ~Scratch() { sodium_memzero(bytes.data(), kSize); }
};

// What is bound to the wrapped key: the slot's first fields as they are stored.
Facts facts_of(const KeySlot& slot) {
  Facts facts;
  facts[0] = static_cast<std::uint8_t>(slot.recipient);
  facts[1] = static_cast<std::uint8_t>(slot.holds);
  store_le(facts.data() + 2, slot.key_id);
  std::copy(slot.recipient_id.begin(), slot.recipient_id.end(), facts.begin() + 6);
  return facts;
}

RecipientId id_of(const SecretKey& recipient) {
  const std::string hex = recipient.id();
  RecipientId id;
  const int refused = sodium_hex2bin(id.data(), id.size(), hex.data(), hex.size(), nullptr, nullptr, nullptr);
  require(refused == 0, "a key id that is not 16 hex digits");
  return id;
}

RecipientId id_of(std::span<const std::uint8_t, crypto_box_PUBLICKEYBYTES> public_key) {
  std::array<std::uint8_t, 32> digest;
  crypto_generichash_state state;
  crypto_generichash_init(&state, nullptr, 0, digest.size());
  crypto_generichash_update(&state, as_bytes(kRecipientLabel).data(), kRecipientLabel.size());
  crypto_generichash_update(&state, public_key.data(), public_key.size());
  crypto_generichash_final(&state, digest.data(), digest.size());
  RecipientId id;
  std::copy_n(digest.begin(), id.size(), id.begin());
  return id;
}

// The naming key has no number, a data key always has one.
bool is_numbered_rightly(WrappedKind holds, std::uint32_t key_id) {
  return (holds == WrappedKind::naming_key) == (key_id == 0);
}

std::size_t wrapped_size(RecipientKind recipient) {
  return recipient == RecipientKind::symmetric ? kSymmetricSize : kX25519Size;
}

}  // namespace

KeySlot wrap_for_key(const SecretKey& key, WrappedKind holds, std::uint32_t key_id, const SecretKey& recipient) {
  require(is_numbered_rightly(holds, key_id), "a data key has a number, the naming key has none");
  KeySlot slot{RecipientKind::symmetric, holds, key_id, id_of(recipient), Bytes(kSymmetricSize)};
  const Facts facts = facts_of(slot);
  const SecretKey wrapping_key = recipient.derive(kWrapLabel);
  std::uint8_t* nonce = slot.wrapped.data();
  randombytes_buf(nonce, kNonceSize);
  crypto_aead_xchacha20poly1305_ietf_encrypt(nonce + kNonceSize, nullptr, key.bytes().data(), SecretKey::kSize,
                                             facts.data(), facts.size(), nullptr, nonce, wrapping_key.bytes().data());
  return slot;
}

bool is_usable_public_key(std::span<const std::uint8_t, 32> public_key) {
  // Any private key will do: with a point of low order the shared secret is zero for all of them.
  const std::array<std::uint8_t, crypto_scalarmult_SCALARBYTES> anyone = {1};
  std::array<std::uint8_t, crypto_scalarmult_BYTES> shared;
  return crypto_scalarmult(shared.data(), anyone.data(), public_key.data()) == 0;
}

KeySlot wrap_for_public_key(const SecretKey& key, WrappedKind holds, std::uint32_t key_id,
                            std::span<const std::uint8_t, 32> public_key) {
  require(is_numbered_rightly(holds, key_id), "a data key has a number, the naming key has none");
  KeySlot slot{RecipientKind::x25519, holds, key_id, id_of(public_key), Bytes(kX25519Size)};
  Scratch<kBoxedSize> boxed;
  const Facts facts = facts_of(slot);
  std::memcpy(boxed.bytes.data(), facts.data(), kFactsSize);
  std::memcpy(boxed.bytes.data() + kFactsSize, key.bytes().data(), SecretKey::kSize);
  const int refused = crypto_box_seal(slot.wrapped.data(), boxed.bytes.data(), kBoxedSize, public_key.data());
  require(refused == 0, "a public key that is not usable");
  return slot;
}

std::optional<SecretKey> unwrap_with_key(const KeySlot& slot, const SecretKey& recipient) {
  if (slot.recipient != RecipientKind::symmetric || slot.wrapped.size() != kSymmetricSize) return std::nullopt;
  if (slot.recipient_id != id_of(recipient)) return std::nullopt;
  const Facts facts = facts_of(slot);
  const SecretKey wrapping_key = recipient.derive(kWrapLabel);
  const std::uint8_t* nonce = slot.wrapped.data();
  Scratch<SecretKey::kSize> key;
  if (crypto_aead_xchacha20poly1305_ietf_decrypt(key.bytes.data(), nullptr, nullptr, nonce + kNonceSize,
                                                 kSymmetricSize - kNonceSize, facts.data(), facts.size(), nonce,
                                                 wrapping_key.bytes().data()) != 0)
    return std::nullopt;
  return SecretKey::copy_of(key.bytes);
}

std::optional<SecretKey> unwrap_with_private_key(const KeySlot& slot, const SecretKey& private_key) {
  if (slot.recipient != RecipientKind::x25519 || slot.wrapped.size() != kX25519Size) return std::nullopt;
  std::array<std::uint8_t, crypto_box_PUBLICKEYBYTES> public_key;
  crypto_scalarmult_base(public_key.data(), private_key.bytes().data());
  if (slot.recipient_id != id_of(public_key)) return std::nullopt;

  Scratch<kBoxedSize> boxed;
  if (crypto_box_seal_open(boxed.bytes.data(), slot.wrapped.data(), kX25519Size, public_key.data(),
                           private_key.bytes().data()) != 0)
    return std::nullopt;
  const Facts facts = facts_of(slot);
  if (std::memcmp(boxed.bytes.data(), facts.data(), kFactsSize) != 0) return std::nullopt;
  return SecretKey::copy_of(std::span(boxed.bytes).subspan<kFactsSize, SecretKey::kSize>());
}

void write_slot(const KeySlot& slot, Bytes& out) {
  require(slot.wrapped.size() == wrapped_size(slot.recipient), "a key slot of the wrong length");
  ByteWriter writer(out);
  writer.raw(facts_of(slot));
  writer.u16(static_cast<std::uint16_t>(slot.wrapped.size()));
  writer.raw(slot.wrapped);
}

std::optional<KeySlot> read_slot(ByteReader& in) {
  const std::uint8_t recipient = in.u8();
  const std::uint8_t holds = in.u8();
  KeySlot slot;
  slot.key_id = in.u32();
  const ByteView recipient_id = in.raw(slot.recipient_id.size());
  const std::size_t length = in.u16();  // zero, and so wrong, when the bytes ended before it
  if (recipient != 1 && recipient != 2) return std::nullopt;
  if (holds != 1 && holds != 2) return std::nullopt;
  slot.recipient = static_cast<RecipientKind>(recipient);
  slot.holds = static_cast<WrappedKind>(holds);
  if (!is_numbered_rightly(slot.holds, slot.key_id)) return std::nullopt;
  if (length != wrapped_size(slot.recipient)) return std::nullopt;
  const ByteView wrapped = in.raw(length);
  if (!in.good()) return std::nullopt;
  std::copy(recipient_id.begin(), recipient_id.end(), slot.recipient_id.begin());
  slot.wrapped.assign(wrapped.begin(), wrapped.end());
  return slot;
}

std::optional<SecretKey> parse_key_file(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (!text.starts_with(kKeyFilePrefix)) return std::nullopt;
  text.remove_prefix(kKeyFilePrefix.size());
  // One spelling only; sodium_hex2bin() would take capitals too.
  if (std::any_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'F'; })) return std::nullopt;

  Scratch<SecretKey::kSize> key;
  std::size_t size = 0;
  const int refused =
      sodium_hex2bin(key.bytes.data(), key.bytes.size(), text.data(), text.size(), nullptr, &size, nullptr);
  if (refused != 0 || size != SecretKey::kSize) return std::nullopt;
  return SecretKey::copy_of(key.bytes);
}

void render_key_file(const SecretKey& key, Bytes& out) {
  const std::size_t before = out.size();
  // Room for all of it at once, so that no half-written copy of the secret is left behind by a growing buffer.
  out.resize(before + kKeyFilePrefix.size() + kKeyFileDigits + 1);
  char* text = reinterpret_cast<char*>(out.data() + before);
  std::memcpy(text, kKeyFilePrefix.data(), kKeyFilePrefix.size());
  sodium_bin2hex(text + kKeyFilePrefix.size(), kKeyFileDigits + 1, key.bytes().data(), SecretKey::kSize);
  out.back() = '\n';  // where sodium_bin2hex() put its NUL
}

}  // namespace holdfast
