#include "crypto/crc32c.h"

#include <array>

#include "crypto/digest.h"
#include "crypto/require.h"

#if defined(__x86_64__)
#include <nmmintrin.h>
#define HOLDFAST_CRC_TARGET __attribute__((target("sse4.2")))
#elif defined(__aarch64__) && defined(__linux__)
#if defined(__clang__)
#define HOLDFAST_CRC_TARGET __attribute__((target("crc")))
#else
#define HOLDFAST_CRC_TARGET __attribute__((target("+crc")))
#endif
#include <sys/auxv.h>
#endif

namespace holdfast {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // 0x1edc6f41, bits reversed

// tables[k][b]: what the byte b becomes when k more zero bytes follow it.
constexpr std::array<std::array<std::uint32_t, 256>, 8> make_tables() {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      std::uint32_t crc = tables[k - 1][byte];
      tables[k][byte] = (crc >> 8) ^ tables[0][crc & 0xff];
    }
  }
  return tables;
}
constexpr auto kTables = make_tables();

}  // namespace

std::uint32_t crc32c_by_table(ByteView bytes) {
  std::uint32_t crc = 0xffffffff;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    std::uint64_t word = load_le<std::uint64_t>(bytes.data()) ^ crc;
    crc = 0;
    for (std::size_t i = 0; i < 8; ++i) crc ^= kTables[7 - i][(word >> (8 * i)) & 0xff];
  }
  for (std::uint8_t byte : bytes) crc = (crc >> 8) ^ kTables[0][(crc ^ byte) & 0xff];
  return ~crc;
}

#if defined(__x86_64__)

HOLDFAST_CRC_TARGET std::uint32_t crc32c_by_instruction(ByteView bytes) {
  std::uint64_t crc = 0xffffffff;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) crc = _mm_crc32_u64(crc, load_le<std::uint64_t>(bytes.data()));
  std::uint32_t last = static_cast<std::uint32_t>(crc);
  for (std::uint8_t byte : bytes) last = _mm_crc32_u8(last, byte);
  return ~last;
}
bool crc32c_has_instruction() {
  return __builtin_cpu_supports("sse4.2") != 0;
}

#elif defined(HOLDFAST_CRC_TARGET)

HOLDFAST_CRC_TARGET std::uint32_t crc32c_by_instruction(ByteView bytes) {
  std::uint32_t crc = 0xffffffff;
#if defined(__clang__)
  for (; bytes.size() >= 8; bytes = bytes.subspan(8))
    crc = __builtin_arm_crc32cd(crc, load_le<std::uint64_t>(bytes.data()));
  for (std::uint8_t byte : bytes) crc = __builtin_arm_crc32cb(crc, byte);
#else
  for (; bytes.size() >= 8; bytes = bytes.subspan(8))
    crc = __builtin_aarch64_crc32cx(crc, load_le<std::uint64_t>(bytes.data()));
  for (std::uint8_t byte : bytes) crc = __builtin_aarch64_crc32cb(crc, byte);
#endif
  return ~crc;
}
bool crc32c_has_instruction() {
  return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
}

#else

std::uint32_t crc32c_by_instruction(ByteView) {
  require(false, "crc32c_by_instruction on a machine that has none");
  return 0;
}
bool crc32c_has_instruction() {
  return false;
}

#endif

std::uint32_t crc32c(ByteView bytes) {
  static const bool has_instruction = crc32c_has_instruction();
  return has_instruction ? crc32c_by_instruction(bytes) : crc32c_by_table(bytes);
}

}  // namespace holdfast
