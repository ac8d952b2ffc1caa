// What the digests promise beyond their values, which the vectors hold: purposes apart, content bound to its record.
#include "crypto/digest.h"

#include <gtest/gtest.h>

#include <set>

namespace holdfast {
namespace {

const bool kReady = init_crypto();

TEST(RecordId, DependsOnKeyStringAndSpool) {
  ASSERT_TRUE(kReady);
  const SecretKey key = SecretKey::random();
  const Namer namer(key), same(key), other(SecretKey::random());
  EXPECT_EQ(namer.record_id("msg:1"), same.record_id("msg:1"));
  EXPECT_NE(namer.record_id("msg:1"), namer.record_id("msg:2"));
  EXPECT_NE(namer.record_id("msg:1"), other.record_id("msg:1"));
}

TEST(RecordId, ShortHex_IsTheBeginningOfHex) {
  RecordId id;
  id.bytes[0] = 0xab;
  id.bytes[31] = 0x01;
  EXPECT_EQ(id.hex(), "ab" + std::string(60, '0') + "01");
  EXPECT_EQ(id.short_hex(), "ab00000000000000");
}

TEST(ContentDigest, IsBoundToTheRecord) {
  const Namer namer(SecretKey::random());
  const RecordId a = namer.record_id("a"), b = namer.record_id("b");
  const Bytes payload = {1, 2, 3};
  EXPECT_EQ(namer.content_digest(a, "s", payload), namer.content_digest(a, "s", payload));
  EXPECT_FALSE(namer.content_digest(a, "s", payload) == namer.content_digest(b, "s", payload));
}

TEST(ContentDigest, NoByteMovesBetweenSubjectAndPayload) {
  const Namer namer(SecretKey::random());
  const RecordId id;
  std::set<std::string> digests;
  const std::string whole = "abcdef";
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    const ContentDigest digest = namer.content_digest(id, whole.substr(0, cut), as_bytes(whole).subspan(cut));
    digests.insert(to_hex(digest.bytes));
  }
  EXPECT_EQ(digests.size(), whole.size() + 1);
}

TEST(Digests, OfOnePurposeAreOfNoUseForAnother) {
  const Namer namer(SecretKey::random());
  const Bytes bytes(32, 7);
  const std::set<std::string> macs = {to_hex(namer.header_mac(bytes).bytes), to_hex(namer.body_mac(bytes).bytes),
                                      to_hex(namer.batch_mac(bytes).bytes), to_hex(namer.manifest_mac(bytes).bytes)};
  EXPECT_EQ(macs.size(), 4u);
}

TEST(StreamTag, TellsStreamsApart) {
  const Namer namer(SecretKey::random());
  EXPECT_EQ(namer.stream_tag("truck-07:A"), namer.stream_tag("truck-07:A"));
  EXPECT_NE(namer.stream_tag("truck-07:A"), namer.stream_tag("truck-07:B"));
}

TEST(SameMac, LooksAtEveryByte) {
  const Mac mac{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};
  EXPECT_TRUE(same_mac(mac, Mac(mac)));
  for (std::size_t i = 0; i < 16; ++i) {
    Mac other = mac;
    other.bytes[i] ^= 0x80;
    EXPECT_FALSE(same_mac(mac, other)) << i;
  }
}

TEST(Sha256, KnownValues) {  // FIPS 180-4 examples
  EXPECT_EQ(to_hex(sha256(as_bytes("abc"))), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(to_hex(sha256(ByteView{})), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(HmacSha256, KnownValues) {  // RFC 4231, test cases 2 and 6
  EXPECT_EQ(to_hex(hmac_sha256(as_bytes("Jefe"), as_bytes("what do ya want for nothing?"))),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  const Bytes long_key(131, 0xaa);
  EXPECT_EQ(to_hex(hmac_sha256(long_key, as_bytes("Test Using Larger Than Block-Size Key - Hash Key First"))),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

}  // namespace
}  // namespace holdfast
