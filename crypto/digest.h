// Keyed digests: the names of records, the fingerprints of their contents, the seals on plaintext bytes.
//
// All that a Namer makes is keyed with a key derived from the spool's naming key, one key per purpose, so that who has
// the disk and not the key can neither compute nor confirm a name (FORMAT.md, "Digests"). Names are BLAKE2b (RFC 7693);
// what is made for every record and is no name is cheaper: Poly1305 (RFC 8439) and SipHash-2-4 (Aumasson and Bernstein,
// "SipHash: a fast short-input PRF", 2012).
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "crypto/bytes.h"
#include "crypto/secret.h"

namespace holdfast {

// The keyed BLAKE2b-256 of a canonical key string. Names the record and its file.
struct RecordId {
  std::array<std::uint8_t, 32> bytes{};
  auto operator<=>(const RecordId&) const = default;
  std::string hex() const;        // 64 digits: the file name
  std::string short_hex() const;  // 16 digits: what logs and status show
};

// A keyed fingerprint of subject and payload, bound to the record id: equal for equal content of one identity,
// and of no use for comparing the contents of two identities. Any part of it is as good as random.
struct ContentDigest {
  std::array<std::uint8_t, 16> bytes{};
  bool operator==(const ContentDigest&) const = default;
};

struct Mac {
  std::array<std::uint8_t, 16> bytes{};
};

// Constant-time comparison.
bool same_mac(const Mac& a, const Mac& b);

// All digests of one spool. Threads: const, any.
class Namer {
 public:
  explicit Namer(const SecretKey& naming_key);

  RecordId record_id(std::string_view canonical_key) const;
  ContentDigest content_digest(const RecordId& id, std::string_view subject, ByteView payload) const;
  // A stable 64-bit tag for a stream's name, so that the ledger need not spell it.
  std::uint64_t stream_tag(std::string_view site_and_stream) const;

  Mac header_mac(ByteView header) const;   // over a frame header
  Mac body_mac(ByteView done_body) const;  // over the plaintext body of a `done` frame
  Mac batch_mac(ByteView header) const;    // over a batch header
  Mac manifest_mac(ByteView manifest) const;

 private:
  SecretKey id_key_, content_key_, content_mask_, stream_key_, header_key_, body_key_, batch_key_, manifest_key_;
};

// SHA-256, unkeyed: only for names that outsiders must be able to recompute (wire keys over 200 bytes).
std::array<std::uint8_t, 32> sha256(ByteView bytes);

// HMAC-SHA-256 (RFC 2104), a key of any length: only for what others have laid down (signatures of object stores).
std::array<std::uint8_t, 32> hmac_sha256(ByteView key, ByteView bytes);

// CRC32C (Castagnoli, RFC 3720 appendix B.4). Finds rot; proves nothing.
std::uint32_t crc32c(ByteView bytes);

}  // namespace holdfast
