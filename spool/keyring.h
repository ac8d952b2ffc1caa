// The keys of one spool, as this life holds them: the naming key and the data keys of the manifest's slots.
// Threads: any may look up; add_data_key and use_current, with current(): one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "crypto/digest.h"
#include "crypto/secret.h"
#include "spool/manifest.h"

namespace holdfast {

class Keyring {
 public:
  // Keys for a new spool: a naming key and the first data key, wrapped into the manifest's slots. The caller saves the
  // manifest before the first ciphertext.
  static Keyring make(Manifest& manifest, const SecretKey& recipient);
  // Unwraps every slot. `invalid`: this key opens none of them; the text names the key ids that would.
  static Result<Keyring> open(const Manifest& manifest, const SecretKey& recipient);

  // A new data key becomes the current one in the manifest, which must be durable before use_current() is called.
  void add_data_key(Manifest& manifest, const SecretKey& recipient);
  void use_current(const Manifest& manifest) { current_ = manifest.current_data_key; }

  const Namer& namer() const { return *namer_; }
  std::uint32_t current_number() const { return current_; }
  const SecretKey& current() const { return *data_key(current_); }
  // Null when the key is not there.
  const SecretKey* data_key(std::uint32_t number) const;

 private:
  std::unique_ptr<SecretKey> naming_;
  std::unique_ptr<Namer> namer_;
  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();
  std::map<std::uint32_t, SecretKey> data_keys_;
  std::uint32_t current_ = 0;
};

}  // namespace holdfast
