// Secrets cannot be copied or printed, lie in guarded memory, and work where memory may not be locked.
#include "crypto/secret.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>
#include <iostream>
#include <sstream>
#include <type_traits>

namespace holdfast {
namespace {

const bool kReady = init_crypto();

template <typename T>
concept Printable = requires(std::ostream& out, const T& value) {
  out << value;
};

static_assert(!std::is_copy_constructible_v<SecretKey> && !std::is_copy_assignable_v<SecretKey>);
static_assert(std::is_nothrow_move_constructible_v<SecretKey> && std::is_nothrow_move_assignable_v<SecretKey>);
static_assert(!Printable<SecretKey> && Printable<std::string>);
static_assert(!std::is_convertible_v<SecretKey, std::string> && !std::is_convertible_v<SecretKey, std::string_view> &&
              !std::is_convertible_v<SecretKey, ByteView>);
static_assert(!std::is_default_constructible_v<SecretKey>);

Bytes bytes_of(const SecretKey& key) {
  return Bytes(key.bytes().begin(), key.bytes().end());
}

SecretKey counting_key() {
  std::array<std::uint8_t, 32> bytes;
  for (std::size_t i = 0; i < 32; ++i) bytes[i] = static_cast<std::uint8_t>(i);
  return SecretKey::copy_of(bytes);
}

TEST(SecretKey, CopyOf_HoldsTheBytes) {
  ASSERT_TRUE(kReady);
  EXPECT_EQ(to_hex(counting_key().bytes()), "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
}

TEST(SecretKey, Random_NeverTwice) {
  EXPECT_NE(bytes_of(SecretKey::random()), bytes_of(SecretKey::random()));
}

TEST(SecretKey, Init_MayBeAskedAgain) {
  EXPECT_TRUE(init_crypto());
}

TEST(SecretKey, Derive_DependsOnKeyAndLabel_AndOnNothingElse) {
  const SecretKey key = counting_key();
  EXPECT_EQ(bytes_of(key.derive("a")), bytes_of(counting_key().derive("a")));
  EXPECT_NE(bytes_of(key.derive("a")), bytes_of(key.derive("b")));
  EXPECT_NE(bytes_of(key.derive("a")), bytes_of(SecretKey::random().derive("a")));
  EXPECT_NE(bytes_of(key.derive("")), bytes_of(key));
}

TEST(SecretKey, Id_NamesTheKeyAndShowsNoneOfIt) {
  const SecretKey key = counting_key();
  EXPECT_EQ(key.id(), counting_key().id());
  EXPECT_NE(key.id(), SecretKey::random().id());
  EXPECT_EQ(key.id().size(), 16u);
  EXPECT_EQ(key.id().find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(to_hex(key.bytes()).find(key.id().substr(0, 8)), std::string::npos);
}

TEST(SecretKey, Moved_BelongsToTheNewOwner) {
  SecretKey key = counting_key();
  SecretKey owner = std::move(key);
  EXPECT_EQ(owner.id(), counting_key().id());
  owner = SecretKey::random();
  EXPECT_NE(owner.id(), counting_key().id());
}

TEST(SecretKey, Wipe_LeavesZeros) {
  Bytes bytes(40, 0xaa);
  wipe(std::span(bytes).first(33));
  Bytes expected(40);
  std::fill(expected.begin() + 33, expected.end(), std::uint8_t{0xaa});
  EXPECT_EQ(bytes, expected);
}

// The flags that the kernel shows for the mapping that holds `address`; empty when it does not say.
std::string mapping_flags(const void* address) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long long from = 0, to = 0;
    char dash = 0;
    std::istringstream head(line);
    if (head >> std::hex >> from >> dash >> to && dash == '-') inside = wanted >= from && wanted < to;
    if (inside && line.starts_with("VmFlags:")) return line + " ";
  }
  return "";
}

TEST(SecretKey, Memory_IsKeptOutOfCoreDumps) {
  const SecretKey key = SecretKey::random();
  const std::string flags = mapping_flags(key.bytes().data());
  if (flags.empty()) GTEST_SKIP() << "this kernel does not show the flags of mappings";
  EXPECT_NE(flags.find(" dd "), std::string::npos) << flags;
}

TEST(SecretKey, MlockRefused_KeysWorkAllTheSame) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_MEMLOCK, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &none), 0);
  const SecretKey key = SecretKey::random();
  EXPECT_EQ(key.derive("a").id(), key.derive("a").id());
  EXPECT_NE(key.id(), SecretKey::random().id());
  ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &before), 0);
}

TEST(SecretKeyDeathTest, StrayWrite_IsCaught) {
  const SecretKey key = SecretKey::random();
  EXPECT_DEATH(*const_cast<std::uint8_t*>(key.bytes().data()) = 1, "");
}

TEST(SecretKeyDeathTest, ReadBehindTheEnd_IsCaught) {
  const SecretKey key = SecretKey::random();
  EXPECT_DEATH(std::cerr << *(static_cast<const volatile std::uint8_t*>(key.bytes().data()) + SecretKey::kSize), "");
}

TEST(SecretKeyDeathTest, UseAfterMove_IsABug) {
  SecretKey key = SecretKey::random();
  const SecretKey owner = std::move(key);
  EXPECT_DEATH((void)key.bytes(), "moved away");  // NOLINT(bugprone-use-after-move): the point
}

}  // namespace
}  // namespace holdfast
