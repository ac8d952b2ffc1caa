// Runs a fuzz case over its corpus without a fuzzer: each file as it is, cut short at every length, with every bit
// flipped, and with every byte made 0 and 255. So that a parser that was broken shows in every build.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "crypto/bytes.h"
#include "tests/fuzz/fuzz_case.h"

namespace {

using holdfast::Bytes;

constexpr std::size_t kDamagedBytes = 4096;  // of a file: what lies behind is tried as it is

void try_bytes(const Bytes& bytes) {
  // An exact allocation of its own, so that a read past the end is seen.
  const Bytes exact(bytes.begin(), bytes.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

void try_damaged(const Bytes& whole) {
  const std::size_t reach = std::min(whole.size(), kDamagedBytes);
  for (std::size_t size = 0; size < reach; ++size)
    try_bytes(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
  Bytes bytes = whole;
  for (std::size_t at = 0; at < reach; ++at) {
    const std::uint8_t good = bytes[at];
    for (unsigned bit = 0; bit < 8; ++bit) {
      bytes[at] = static_cast<std::uint8_t>(good ^ (1u << bit));
      try_bytes(bytes);
    }
    for (const std::uint8_t extreme : {std::uint8_t{0}, std::uint8_t{255}}) {
      bytes[at] = extreme;
      try_bytes(bytes);
    }
    bytes[at] = good;
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t files = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream in(entry.path(), std::ios::binary);
      const Bytes bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
      std::printf("%s: %zu bytes\n", entry.path().filename().c_str(), bytes.size());
      std::fflush(stdout);
      try_bytes(bytes);
      try_damaged(bytes);
      ++files;
    }
  }
  std::printf("%zu files\n", files);
  return files == 0 ? 1 : 0;  // a corpus that is gone tests nothing
}
