// A 32-byte secret: in memory of its own, locked where the limit on locked memory allows it and kept out of core dumps,
// wiped when it goes, never copied by accident and impossible to print.
//
// Ownership: move-only. Threads: immutable after construction, so it may be read from any of them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "crypto/bytes.h"

namespace holdfast {

// Must be called once before anything else of this room; false when no secure random source can be had.
bool init_crypto();

class SecretKey {
 public:
  static constexpr std::size_t kSize = 32;

  static SecretKey random();
  // Copies exactly kSize bytes; the caller wipes his own.
  static SecretKey copy_of(std::span<const std::uint8_t, kSize> bytes);
  // A key for one purpose, BLAKE2b keyed with this key over the label. Labels are listed in FORMAT.md.
  SecretKey derive(std::string_view label) const;

  // Names the key without telling it: 16 hex digits, a keyed digest of a fixed label (FORMAT.md, "Keys").
  std::string id() const;
  std::span<const std::uint8_t, kSize> bytes() const;

 private:
  struct Wipe {
    void operator()(std::uint8_t* memory) const;
  };
  explicit SecretKey(std::uint8_t* memory) : memory_(memory) {}
  std::unique_ptr<std::uint8_t, Wipe> memory_;
};

// Overwrites memory in a way that the compiler may not remove.
void wipe(std::span<std::uint8_t> memory);

}  // namespace holdfast
