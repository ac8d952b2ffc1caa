// For tests that look at a simulated disk after many different power cuts.
#pragma once

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/support/simulated_file_system.h"

namespace holdfast {

inline constexpr std::uint64_t kPowerCuts = 300;

inline std::unique_ptr<File> opened(SimulatedFileSystem& fs, const std::string& path,
                                    OpenMode mode = OpenMode::create) {
  auto file = fs.open(path, mode);
  EXPECT_TRUE(file.ok()) << file.error().text;
  return *std::move(file);
}

// Durable in every respect.
inline void settle(SimulatedFileSystem& fs, const std::string& path, std::string_view text) {
  EXPECT_TRUE(opened(fs, path)->write_at(0, as_bytes(text)).ok());
  EXPECT_TRUE(fs.sync_all().ok());
}

inline std::string text_of(const SimulatedFileSystem& fs, const std::string& path) {
  return fs.there(path) ? std::string(as_text(fs.bytes(path))) : "<none>";
}

// What the disk may hold after a power cut, over many seeds.
template <typename Look>
auto outcomes(const SimulatedFileSystem& fs, Look look) -> std::set<decltype(look(fs))> {
  std::set<decltype(look(fs))> seen;
  for (std::uint64_t seed = 0; seed < kPowerCuts; ++seed) {
    const auto copy = fs.copy();
    copy->lose_power(seed);
    seen.insert(look(*copy));
  }
  return seen;
}

using Texts = std::set<std::string>;

// What became of a block of the file "a" that was all "o" on the medium and had "n" written to it: "new", "old",
// "garbage", or several of them.
inline std::string fate_of_block(const SimulatedFileSystem& fs, std::size_t block) {
  const Bytes all = fs.bytes("a");
  Texts sectors;
  for (std::size_t at = block * 4096; at < (block + 1) * 4096; at += 512) {
    const ByteView sector = ByteView(all).subspan(at, 512);
    const bool whole = std::equal(sector.begin() + 1, sector.end(), sector.begin());
    sectors.insert(whole && sector[0] == 'n' ? "new" : whole && sector[0] == 'o' ? "old" : "garbage");
  }
  std::string fate;
  for (const std::string& kind : sectors) fate += (fate.empty() ? "" : "+") + kind;
  return fate;
}

inline std::string both_names(const SimulatedFileSystem& fs) {
  return text_of(fs, "a") + " " + text_of(fs, "b");
}

}  // namespace holdfast
