// Key slots: what was wrapped comes back to its recipient, and to nobody else; nothing in a slot can be altered.
#include "crypto/key_slot.h"

#include <gtest/gtest.h>
#include <sodium.h>

namespace holdfast {
namespace {

const bool kReady = init_crypto();

struct KeyPair {
  SecretKey private_key = SecretKey::random();
  std::array<std::uint8_t, 32> public_key{};
  KeyPair() { crypto_scalarmult_base(public_key.data(), private_key.bytes().data()); }
};

std::string hex_of(const std::optional<SecretKey>& key) {
  return key ? to_hex(key->bytes()) : "nothing";
}

Bytes encoded(const KeySlot& slot) {
  Bytes out;
  write_slot(slot, out);
  return out;
}

std::optional<KeySlot> decoded(ByteView bytes) {
  ByteReader reader(bytes);
  return read_slot(reader);
}

TEST(KeySlot, Symmetric_ComesBackToItsRecipient) {
  ASSERT_TRUE(kReady);
  const SecretKey recipient = SecretKey::random(), key = SecretKey::random();
  for (const auto& [holds, number] : {std::pair{WrappedKind::naming_key, 0u}, {WrappedKind::data_key, 0xffffffffu}}) {
    const KeySlot slot = wrap_for_key(key, holds, number, recipient);
    EXPECT_EQ(to_hex(slot.recipient_id), recipient.id());
    const std::optional<KeySlot> again = decoded(encoded(slot));
    ASSERT_TRUE(again);
    EXPECT_EQ(again->holds, holds);
    EXPECT_EQ(again->key_id, number);
    EXPECT_EQ(hex_of(unwrap_with_key(*again, recipient)), to_hex(key.bytes()));
  }
}

TEST(KeySlot, X25519_ComesBackToItsRecipient_AndNotToTheWriter) {
  const KeyPair pair, other;
  const SecretKey key = SecretKey::random();
  const std::optional<KeySlot> slot =
      decoded(encoded(wrap_for_public_key(key, WrappedKind::data_key, 9, pair.public_key)));
  ASSERT_TRUE(slot);
  EXPECT_EQ(slot->recipient, RecipientKind::x25519);
  EXPECT_EQ(hex_of(unwrap_with_private_key(*slot, pair.private_key)), to_hex(key.bytes()));
  EXPECT_EQ(hex_of(unwrap_with_private_key(*slot, other.private_key)), "nothing");
  EXPECT_EQ(hex_of(unwrap_with_key(*slot, pair.private_key)), "nothing");
}

TEST(KeySlot, AnotherRecipient_GetsNothing_EvenUnderTheSameId) {
  const SecretKey recipient = SecretKey::random(), other = SecretKey::random();
  KeySlot slot = wrap_for_key(SecretKey::random(), WrappedKind::data_key, 1, recipient);
  EXPECT_EQ(hex_of(unwrap_with_key(slot, other)), "nothing");
  EXPECT_EQ(hex_of(unwrap_with_private_key(slot, recipient)), "nothing");
  slot.recipient_id = wrap_for_key(recipient, WrappedKind::data_key, 1, other).recipient_id;
  EXPECT_EQ(hex_of(unwrap_with_key(slot, other)), "nothing");
}

TEST(KeySlot, WrappedTwice_LooksDifferent) {
  const SecretKey recipient = SecretKey::random(), key = SecretKey::random();
  EXPECT_NE(wrap_for_key(key, WrappedKind::data_key, 1, recipient).wrapped,
            wrap_for_key(key, WrappedKind::data_key, 1, recipient).wrapped);
}

TEST(KeySlot, FlipOfAnyBit_UnwrapsNothing) {
  const SecretKey recipient = SecretKey::random(), key = SecretKey::random();
  const KeyPair pair;
  const Bytes symmetric = encoded(wrap_for_key(key, WrappedKind::data_key, 3, recipient));
  const Bytes boxed = encoded(wrap_for_public_key(key, WrappedKind::data_key, 3, pair.public_key));
  EXPECT_EQ(symmetric.size(), 88u);
  EXPECT_EQ(boxed.size(), 110u);
  for (const Bytes& good : {symmetric, boxed}) {
    for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
      Bytes bad = good;
      bad[bit / 8] ^= static_cast<std::uint8_t>(1 << (bit % 8));
      const std::optional<KeySlot> slot = decoded(bad);
      if (!slot) continue;
      EXPECT_FALSE(unwrap_with_key(*slot, recipient)) << bit;
      EXPECT_FALSE(unwrap_with_private_key(*slot, pair.private_key)) << bit;
    }
  }
}

TEST(KeySlot, FactsInsideTheBox_MustBeThoseOutside) {
  const KeyPair pair;
  for (int fact = 0; fact < 2; ++fact) {
    KeySlot slot = wrap_for_public_key(SecretKey::random(), WrappedKind::data_key, 3, pair.public_key);
    ASSERT_TRUE(unwrap_with_private_key(slot, pair.private_key));
    if (fact == 0) slot.key_id = 4;
    if (fact == 1) slot.holds = WrappedKind::naming_key;
    EXPECT_FALSE(unwrap_with_private_key(slot, pair.private_key)) << fact;
  }
}

TEST(KeySlot, TruncatedAnywhere_IsRefused) {
  const KeyPair pair;
  const Bytes symmetric = encoded(wrap_for_key(SecretKey::random(), WrappedKind::naming_key, 0, SecretKey::random()));
  const Bytes boxed = encoded(wrap_for_public_key(SecretKey::random(), WrappedKind::data_key, 1, pair.public_key));
  for (const Bytes& good : {symmetric, boxed})
    for (std::size_t size = 0; size < good.size(); ++size) EXPECT_FALSE(decoded(ByteView(good).first(size))) << size;
}

TEST(KeySlot, StandsInAListOfSlots) {
  const KeyPair pair;
  const SecretKey recipient = SecretKey::random(), key = SecretKey::random();
  Bytes list;
  write_slot(wrap_for_key(key, WrappedKind::naming_key, 0, recipient), list);
  write_slot(wrap_for_public_key(key, WrappedKind::data_key, 1, pair.public_key), list);
  ByteReader reader(list);
  const std::optional<KeySlot> first = read_slot(reader), second = read_slot(reader);
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(reader.done());
  EXPECT_TRUE(unwrap_with_key(*first, recipient));
  EXPECT_TRUE(unwrap_with_private_key(*second, pair.private_key));
}

TEST(KeySlot, WrappedBytesOfAnotherLength_UnwrapNothing) {
  const KeyPair pair;
  const SecretKey recipient = SecretKey::random();
  KeySlot symmetric = wrap_for_key(SecretKey::random(), WrappedKind::data_key, 1, recipient);
  KeySlot boxed = wrap_for_public_key(SecretKey::random(), WrappedKind::data_key, 1, pair.public_key);
  for (std::size_t size : {0u, 1u, 16u, 24u, 40u, 71u, 73u, 93u, 95u}) {
    symmetric.wrapped.resize(size);
    boxed.wrapped.resize(size);
    EXPECT_FALSE(unwrap_with_key(symmetric, recipient)) << size;
    EXPECT_FALSE(unwrap_with_private_key(boxed, pair.private_key)) << size;
  }
}

TEST(PublicKey, OfLowOrder_IsNotUsable) {
  std::array<std::uint8_t, 32> point{};
  EXPECT_FALSE(is_usable_public_key(point));
  point[0] = 1;
  EXPECT_FALSE(is_usable_public_key(point));
  EXPECT_TRUE(is_usable_public_key(KeyPair().public_key));
}

TEST(KeyFile, RenderedAndParsed_IsTheSameKey) {
  const SecretKey key = SecretKey::random();
  Bytes text = {'#'};
  render_key_file(key, text);
  ASSERT_EQ(text.size(), 1u + 15 + 64 + 1);
  const std::optional<SecretKey> again = parse_key_file(as_text(ByteView(text).subspan(1)));
  EXPECT_EQ(hex_of(again), to_hex(key.bytes()));
}

TEST(KeyFile, AnyOtherByteAnywhere_IsRefusedOrAnotherKey) {
  const SecretKey key = SecretKey::random();
  Bytes text;
  render_key_file(key, text);
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      Bytes other = text;
      if (other[at] == value) continue;
      other[at] = static_cast<std::uint8_t>(value);
      const bool is_digit = (value >= '0' && value <= '9') || (value >= 'a' && value <= 'f');
      const bool is_taken = parse_key_file(as_text(other)).has_value();
      ASSERT_EQ(is_taken, is_digit && at >= 15 && at < 79) << at << " " << value;
    }
  }
}

TEST(KeySlotDeathTest, NumbersThatDoNotFitTheKind_AreBugs) {
  const SecretKey key = SecretKey::random();
  EXPECT_DEATH((void)wrap_for_key(key, WrappedKind::data_key, 0, key), "data key has a number");
  EXPECT_DEATH((void)wrap_for_key(key, WrappedKind::naming_key, 1, key), "data key has a number");
  EXPECT_DEATH((void)wrap_for_public_key(key, WrappedKind::data_key, 1, std::array<std::uint8_t, 32>{}), "not usable");
  Bytes out;
  EXPECT_DEATH(write_slot(KeySlot{}, out), "wrong length");
}

}  // namespace
}  // namespace holdfast
