#include "crypto/nkey.h"

#include <gtest/gtest.h>

#include <array>

#include "crypto/secret.h"

namespace holdfast {
namespace {

// The pair that the documentation of NATS shows.
constexpr std::string_view kSeed = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
constexpr std::string_view kPublic = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";

TEST(Nkey, KnownSeed_GivesItsPublicKey) {
  ASSERT_TRUE(init_crypto());
  EXPECT_EQ(nkey_public(kSeed), kPublic);
}

TEST(Nkey, EveryChangedLetter_IsRefused) {
  for (std::size_t i = 0; i < kSeed.size(); ++i) {
    std::string seed(kSeed);
    seed[i] = seed[i] == 'A' ? 'B' : 'A';
    EXPECT_FALSE(nkey_public(seed)) << i;
  }
  EXPECT_FALSE(nkey_public(""));
  EXPECT_FALSE(nkey_public(kSeed.substr(1)));
  EXPECT_FALSE(nkey_public(std::string(kSeed) + "A"));
  EXPECT_FALSE(nkey_public(std::string(58, '1')));
  EXPECT_FALSE(nkey_public(kPublic));
}

TEST(Nkey, RenderedSeed_IsReadAgain) {
  for (int fill = 0; fill < 256; ++fill) {
    std::array<std::uint8_t, 32> bytes{};
    bytes.fill(static_cast<std::uint8_t>(fill));
    Bytes text;
    render_nkey_seed(bytes, text);
    EXPECT_EQ(as_text(text).substr(0, 2), "SU");
    const auto key = nkey_public(as_text(text));
    ASSERT_TRUE(key) << fill;
    EXPECT_EQ(key->size(), 56u);
    EXPECT_EQ(key->front(), 'U');
  }
}

TEST(Nkey, SeedIsFoundInAFileWithDecoration) {
  const std::string seed(kSeed);
  EXPECT_EQ(find_nkey_seed(seed), kSeed);
  EXPECT_EQ(find_nkey_seed(seed + "\n"), kSeed);
  EXPECT_EQ(find_nkey_seed("-----BEGIN USER NKEY SEED-----\n" + seed + "\n------END USER NKEY SEED------\n"), kSeed);
  EXPECT_EQ(find_nkey_seed("# SUCH A FILE\r\n" + seed + "\r\n"), kSeed);
  EXPECT_EQ(find_nkey_seed("x" + seed), "");
  EXPECT_EQ(find_nkey_seed(seed + "A"), "");
  EXPECT_EQ(find_nkey_seed(""), "");
}

}  // namespace
}  // namespace holdfast
