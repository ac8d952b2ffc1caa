// Any bytes as a configuration file, as a key file, and as the words of which one is made.
#include "appliance/config_file.h"
#include "appliance/quantity.h"
#include "crypto/key_slot.h"
#include "crypto/secret.h"
#include "spool/check.h"
#include "spool/subject.h"
#include "tests/fuzz/fuzz_case.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace holdfast;
  static const bool crypto_ready = init_crypto();
  CHECK(crypto_ready);
  const std::string_view text = as_text(ByteView(data, size));
  const LoadedConfig loaded = parse_config(text);
  if (loaded.ok()) {
    CHECK(!loaded.config.appliance.site.empty());
    CHECK(loaded.config.key.file.empty() != loaded.config.key.credential.empty());
    CHECK(!loaded.config.targets.empty());
  }
  if (size > 256) return 0;
  (void)parse_key_file(text);
  (void)parse_bytes(text);
  if (const auto duration = parse_duration(text)) CHECK(duration->count() >= 0);
  if (const auto percent = parse_percent(text)) CHECK(*percent >= 0 && *percent <= 100);
  // A subject may hold what is half a wildcard, a pattern may not.
  if (valid_subject(text) && valid_pattern(text)) CHECK(subject_matches(text, text));
  if (valid_pattern(text)) CHECK(patterns_overlap(text, text) && patterns_overlap(text, ">"));
  return 0;
}
