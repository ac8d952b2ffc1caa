// Any bytes as a manifest, with its checksum made right. A manifest has one form: what can be read is written back as
// the same bytes.
#include <algorithm>

#include "crypto/digest.h"
#include "spool/check.h"
#include "spool/manifest.h"
#include "tests/fuzz/fuzz_case.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace holdfast;
  (void)decode_manifest(ByteView(data, size));
  Bytes bytes(data, data + size);
  const auto sum = sha256(bytes);
  bytes.insert(bytes.end(), sum.begin(), sum.end());
  const auto loaded = decode_manifest(bytes);
  if (!loaded.ok()) return 0;
  CHECK(encode_manifest(loaded->manifest, loaded->generation) == bytes);
  for (const auto& route : loaded->manifest.routes)
    for (const auto& entry : route) {
      const auto number = static_cast<std::uint32_t>(entry.target);
      CHECK(number >= 1 && number <= loaded->manifest.targets.size());
    }
  return 0;
}
