#include "forwarder/nkey_file.h"

#include <algorithm>
#include <fstream>

#include "crypto/nkey.h"
#include "crypto/secret.h"

namespace holdfast {

std::optional<std::string> public_key_of_seed_file(const std::string& path) {
  constexpr std::size_t kMostBytes = 4096;
  std::ifstream file;
  file.rdbuf()->pubsetbuf(nullptr, 0);  // no copy of a secret that we cannot wipe
  file.open(path, std::ios::binary);
  std::string text(kMostBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  const auto size = static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount()));
  auto key = nkey_public(find_nkey_seed(std::string_view(text).substr(0, size)));
  wipe({reinterpret_cast<std::uint8_t*>(text.data()), text.size()});
  return key;
}

}  // namespace holdfast
