// Wrapping of keys for recipients, in the manner of age (FORMAT.md, "Key slots").
//
// A slot holds one wrapped key for one recipient. A symmetric recipient can wrap and unwrap; an X25519 recipient is a
// public key: who wraps for it cannot unwrap (crypto_box_seal). Nothing in a slot is secret.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "crypto/bytes.h"
#include "crypto/secret.h"

namespace holdfast {

enum class RecipientKind : std::uint8_t { symmetric = 1, x25519 = 2 };
enum class WrappedKind : std::uint8_t { naming_key = 1, data_key = 2 };

struct KeySlot {
  RecipientKind recipient = RecipientKind::symmetric;
  WrappedKind holds = WrappedKind::data_key;
  std::uint32_t key_id = 0;  // number of the data key; 0 for the naming key
  // Who can open it: SecretKey::id() as bytes, or a digest of the public key.
  std::array<std::uint8_t, 8> recipient_id{};
  Bytes wrapped;  // nonce + ciphertext, or a sealed box
};

// The naming key is wrapped with key_id 0, a data key never is.
KeySlot wrap_for_key(const SecretKey& key, WrappedKind holds, std::uint32_t key_id, const SecretKey& recipient);
// False for the few points (of low order) for which nothing can be wrapped. Ask once, where a public key comes in.
bool is_usable_public_key(std::span<const std::uint8_t, 32> public_key);
// The key must be usable.
KeySlot wrap_for_public_key(const SecretKey& key, WrappedKind holds, std::uint32_t key_id,
                            std::span<const std::uint8_t, 32> public_key);

// Nothing when the slot is for another recipient or was altered.
std::optional<SecretKey> unwrap_with_key(const KeySlot& slot, const SecretKey& recipient);
std::optional<SecretKey> unwrap_with_private_key(const KeySlot& slot, const SecretKey& private_key);

void write_slot(const KeySlot& slot, Bytes& out);
// Nothing when the bytes are not a slot that this version knows.
std::optional<KeySlot> read_slot(ByteReader& in);

// The content of a key file: one line, "holdfast-key-1:" and 64 hex digits. Parsing takes just that, with or without
// the newline.
std::optional<SecretKey> parse_key_file(std::string_view text);
// Appended, newline included, to a buffer that the caller wipes.
void render_key_file(const SecretKey& key, Bytes& out);

}  // namespace holdfast
