#include "crypto/digest.h"

#include <sodium.h>

#include <initializer_list>

namespace holdfast {
namespace {

// Keyed BLAKE2b with an output of `kSize` bytes over the parts as one string.
template <std::size_t kSize>
std::array<std::uint8_t, kSize> keyed(const SecretKey& key, std::initializer_list<ByteView> parts) {
  static_assert(kSize >= crypto_generichash_BYTES_MIN && kSize <= crypto_generichash_BYTES_MAX);
  std::array<std::uint8_t, kSize> digest;
  crypto_generichash_state state;
  crypto_generichash_init(&state, key.bytes().data(), SecretKey::kSize, kSize);
  for (ByteView part : parts) crypto_generichash_update(&state, part.data(), part.size());
  crypto_generichash_final(&state, digest.data(), kSize);
  return digest;
}

// SipHash-2-4 with an output of 128 bits, keyed with the first 16 bytes of a derived key: for what is short and made
// for every record.
Mac siphash(const SecretKey& key, ByteView bytes) {
  static_assert(sizeof(Mac::bytes) == crypto_shorthash_siphashx24_BYTES);
  static_assert(SecretKey::kSize >= crypto_shorthash_siphashx24_KEYBYTES);
  Mac mac;
  crypto_shorthash_siphashx24(mac.bytes.data(), bytes.data(), bytes.size(), key.bytes().data());
  return mac;
}

}  // namespace

std::string RecordId::hex() const {
  return to_hex(bytes);
}
std::string RecordId::short_hex() const {
  return to_hex(ByteView(bytes).first(8));
}

bool same_mac(const Mac& a, const Mac& b) {
  return sodium_memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) == 0;
}

Namer::Namer(const SecretKey& naming_key)
    : id_key_(naming_key.derive("holdfast/1 record id")),
      content_key_(naming_key.derive("holdfast/1 content")),
      content_mask_(naming_key.derive("holdfast/1 content mask")),
      stream_key_(naming_key.derive("holdfast/1 stream tag")),
      header_key_(naming_key.derive("holdfast/1 frame header")),
      body_key_(naming_key.derive("holdfast/1 done body")),
      batch_key_(naming_key.derive("holdfast/1 batch header")),
      manifest_key_(naming_key.derive("holdfast/1 manifest")) {}

RecordId Namer::record_id(std::string_view canonical_key) const {
  return {keyed<32>(id_key_, {as_bytes(canonical_key)})};
}

// Poly1305 is fast wherever XChaCha20-Poly1305 is; its key is made for this id. Its tag alone would not do: those of
// contents that are nearly alike agree in some bytes far too often (the ledger keeps four), and two under one key say
// something about the key. What SipHash makes of it is as good as random.
ContentDigest Namer::content_digest(const RecordId& id, std::string_view subject, ByteView payload) const {
  static_assert(sizeof(RecordId::bytes) >= crypto_core_hchacha20_INPUTBYTES);
  static_assert(crypto_core_hchacha20_OUTPUTBYTES == crypto_onetimeauth_poly1305_KEYBYTES);
  std::array<std::uint8_t, crypto_onetimeauth_poly1305_KEYBYTES> key;
  crypto_core_hchacha20(key.data(), id.bytes.data(), content_key_.bytes().data(), nullptr);

  // With the subject's length in front, no byte can move between subject and payload unseen.
  std::array<std::uint8_t, 4> subject_size;
  store_le(subject_size.data(), static_cast<std::uint32_t>(subject.size()));
  const ByteView subject_bytes = as_bytes(subject);
  crypto_onetimeauth_poly1305_state state;
  crypto_onetimeauth_poly1305_init(&state, key.data());
  crypto_onetimeauth_poly1305_update(&state, subject_size.data(), subject_size.size());
  crypto_onetimeauth_poly1305_update(&state, subject_bytes.data(), subject_bytes.size());
  crypto_onetimeauth_poly1305_update(&state, payload.data(), payload.size());
  std::array<std::uint8_t, crypto_onetimeauth_poly1305_BYTES> tag;
  crypto_onetimeauth_poly1305_final(&state, tag.data());
  wipe(key);
  return {siphash(content_mask_, tag).bytes};
}

std::uint64_t Namer::stream_tag(std::string_view site_and_stream) const {
  std::array<std::uint8_t, 32> digest = keyed<32>(stream_key_, {as_bytes(site_and_stream)});
  return ByteReader(digest).u64();
}

Mac Namer::header_mac(ByteView header) const {
  return siphash(header_key_, header);
}
Mac Namer::body_mac(ByteView done_body) const {
  return {keyed<16>(body_key_, {done_body})};
}
Mac Namer::batch_mac(ByteView header) const {
  return siphash(batch_key_, header);
}
Mac Namer::manifest_mac(ByteView manifest) const {
  return {keyed<16>(manifest_key_, {manifest})};
}

std::array<std::uint8_t, 32> sha256(ByteView bytes) {
  std::array<std::uint8_t, 32> digest;
  crypto_hash_sha256(digest.data(), bytes.data(), bytes.size());
  return digest;
}

std::array<std::uint8_t, 32> hmac_sha256(ByteView key, ByteView bytes) {
  std::array<std::uint8_t, 32> mac;
  static_assert(sizeof mac == crypto_auth_hmacsha256_BYTES);
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, key.data(), key.size());
  crypto_auth_hmacsha256_update(&state, bytes.data(), bytes.size());
  crypto_auth_hmacsha256_final(&state, mac.data());
  wipe({reinterpret_cast<std::uint8_t*>(&state), sizeof state});
  return mac;
}

}  // namespace holdfast
