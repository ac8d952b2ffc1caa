#include "crypto/crc32c.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "crypto/digest.h"
#include "tests/crypto/primitives.h"

namespace holdfast {
namespace {

// RFC 3720, appendix B.4.
void expect_rfc3720(std::uint32_t (*crc)(ByteView)) {
  Bytes rising(32), falling(32);
  std::iota(rising.begin(), rising.end(), std::uint8_t{0});
  std::iota(falling.rbegin(), falling.rend(), std::uint8_t{0});
  EXPECT_EQ(crc(Bytes(32, 0x00)), 0x8a9136aau);
  EXPECT_EQ(crc(Bytes(32, 0xff)), 0x62a8ab43u);
  EXPECT_EQ(crc(rising), 0x46dd794eu);
  EXPECT_EQ(crc(falling), 0x113fdb5cu);
  Bytes read_pdu(48);  // an iSCSI Read (10) command
  read_pdu[0] = 0x01, read_pdu[1] = 0xc0, read_pdu[16] = 0x14, read_pdu[22] = 0x04, read_pdu[27] = 0x14;
  read_pdu[31] = 0x18, read_pdu[32] = 0x28, read_pdu[40] = 0x02;
  EXPECT_EQ(crc(read_pdu), 0xd9963a56u);
  EXPECT_EQ(crc(ByteView{}), 0u);
}

TEST(Crc32c, KnownValues) {
  expect_rfc3720(crc32c);
}
TEST(Crc32c, KnownValues_ByTable) {
  expect_rfc3720(crc32c_by_table);
}
TEST(Crc32c, KnownValues_ByInstruction) {
  if (!crc32c_has_instruction()) GTEST_SKIP() << "this processor has no CRC32C instruction";
  expect_rfc3720(crc32c_by_instruction);
}

TEST(Crc32c, TableInstructionAndDefinition_Agree_AtEveryLengthAndAlignment) {
  const std::uint32_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  Bytes bytes(400);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  for (std::size_t from = 0; from < 9; ++from) {
    for (std::size_t size = 0; size < 300; ++size) {
      const ByteView view = ByteView(bytes).subspan(from, size);
      const std::uint32_t expected = primitives::crc(Bytes(view.begin(), view.end()));
      ASSERT_EQ(crc32c_by_table(view), expected) << from << " " << size;
      ASSERT_EQ(crc32c(view), expected) << from << " " << size;
      if (!crc32c_has_instruction()) continue;
      ASSERT_EQ(crc32c_by_instruction(view), expected) << from << " " << size;
    }
  }
}

}  // namespace
}  // namespace holdfast
