// The codec: what was written is read back, and no length that a stranger wrote makes the reader leave its bytes.
#include "crypto/bytes.h"

#include <gtest/gtest.h>

#include <random>

namespace holdfast {
namespace {

TEST(Hex, IsLowerCaseTwoDigitsAByte) {
  EXPECT_EQ(to_hex(ByteView{}), "");
  EXPECT_EQ(to_hex(Bytes{0x00, 0x0f, 0xa0, 0xff}), "000fa0ff");
}

TEST(ByteWriter, WritesLittleEndianFieldsBehindWhatIsThere) {
  Bytes out = {0xee};
  ByteWriter writer(out);
  writer.u8(1);
  writer.u16(0x0203);
  writer.u32(0x04050607);
  writer.u64(0x08090a0b0c0d0e0f);
  writer.raw(Bytes{0xaa});
  writer.zeros(2);
  writer.prefixed(Bytes{0xbb, 0xcc});
  EXPECT_EQ(to_hex(out),
            "ee"
            "01"
            "0302"
            "07060504"
            "0f0e0d0c0b0a0908"
            "aa"
            "0000"
            "02000000bbcc");
}

TEST(ByteReader, ReadsWhatTheWriterWrote) {
  Bytes out;
  ByteWriter writer(out);
  writer.u8(0xfe);
  writer.u16(0xfedc);
  writer.u32(0xfedcba98);
  writer.u64(0xfedcba9876543210);
  writer.prefixed(as_bytes("text"));
  writer.prefixed(ByteView{});
  writer.raw(as_bytes("rest"));
  ByteReader reader(out);
  EXPECT_EQ(reader.u8(), 0xfe);
  EXPECT_EQ(reader.u16(), 0xfedc);
  EXPECT_EQ(reader.u32(), 0xfedcba98);
  EXPECT_EQ(reader.u64(), 0xfedcba9876543210);
  EXPECT_EQ(as_text(reader.prefixed()), "text");
  EXPECT_TRUE(reader.prefixed().empty());
  EXPECT_TRUE(reader.good());
  EXPECT_FALSE(reader.done()) << "bytes are left";
  EXPECT_EQ(reader.remaining(), 4u);
  EXPECT_EQ(as_text(reader.raw(4)), "rest");
  EXPECT_TRUE(reader.done());
}

TEST(ByteReader, FirstShortReadIsBadForGood) {
  const Bytes bytes = {1, 2, 3};
  ByteReader reader(bytes);
  EXPECT_EQ(reader.u32(), 0u);
  EXPECT_FALSE(reader.good());
  EXPECT_EQ(reader.u8(), 0) << "three bytes are there, but not for a reader that went wrong";
  EXPECT_TRUE(reader.raw(1).empty());
  EXPECT_TRUE(reader.prefixed().empty());
  EXPECT_EQ(reader.remaining(), 0u);
  EXPECT_FALSE(reader.good());
  EXPECT_FALSE(reader.done());
}

TEST(ByteReader, EveryFieldOneByteShort_IsBad) {
  const Bytes bytes(7);
  const auto is_bad_at = [&](std::size_t size, auto read) {
    ByteReader reader(ByteView(bytes).first(size));
    read(reader);
    return !reader.good();
  };
  EXPECT_TRUE(is_bad_at(0, [](ByteReader& r) { r.u8(); }));
  EXPECT_TRUE(is_bad_at(1, [](ByteReader& r) { r.u16(); }));
  EXPECT_TRUE(is_bad_at(3, [](ByteReader& r) { r.u32(); }));
  EXPECT_TRUE(is_bad_at(7, [](ByteReader& r) { r.u64(); }));
  EXPECT_TRUE(is_bad_at(3, [](ByteReader& r) { r.prefixed(); }));
  EXPECT_TRUE(is_bad_at(7, [](ByteReader& r) { r.raw(8); }));
}

TEST(ByteReader, HostileLengths_ReadNothing) {
  for (std::uint32_t length : {1u, 4u, 0x7fffffffu, 0x80000000u, 0xfffffffcu, 0xffffffffu}) {
    Bytes bytes;
    ByteWriter writer(bytes);
    writer.u32(length);
    ByteReader reader(bytes);
    EXPECT_TRUE(reader.prefixed().empty()) << length;
    EXPECT_FALSE(reader.good()) << length;
  }
  const Bytes bytes(16);
  ByteReader reader(bytes);
  EXPECT_TRUE(reader.raw(SIZE_MAX).empty());
  EXPECT_FALSE(reader.good());
}

TEST(ByteReader, AnythingInAnyOrder_StaysInsideItsBytes) {
  const std::uint32_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 2000; ++round) {
    Bytes bytes(random() % 64);
    for (std::uint8_t& byte : bytes) byte = random() % 4 == 0 ? static_cast<std::uint8_t>(random()) : 0;
    ByteReader reader(bytes);
    std::size_t taken = 0;
    for (int step = 0; step < 12; ++step) {
      const std::size_t before = reader.remaining();
      const ByteView view = random() % 2 == 0 ? reader.prefixed() : reader.raw(random() % 9);
      if (!view.empty()) {
        EXPECT_GE(view.data(), bytes.data());
        EXPECT_LE(view.data() + view.size(), bytes.data() + bytes.size());
      }
      EXPECT_LE(reader.remaining(), before);
      taken += view.size();
    }
    EXPECT_LE(taken, bytes.size());
  }
}

}  // namespace
}  // namespace holdfast
