#include "forwarder/nkey_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "crypto/nkey.h"
#include "crypto/secret.h"

namespace holdfast {

namespace {

// What `look` makes of the file's text, which is wiped then.
template <typename Look>
auto with_secret_text(const std::string& path, const Look& look) {
  constexpr std::size_t kMostBytes = 64u << 10;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return look(std::string_view());  // a pipe may never answer
  std::ifstream file;
  file.rdbuf()->pubsetbuf(nullptr, 0);  // no copy of a secret that we cannot wipe
  file.open(path, std::ios::binary);
  std::string text(kMostBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  const auto size = static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount()));
  auto seen = look(std::string_view(text).substr(0, size));
  wipe({reinterpret_cast<std::uint8_t*>(text.data()), text.size()});
  return seen;
}

}  // namespace

std::optional<std::string> public_key_of_seed_file(const std::string& path) {
  return with_secret_text(path, [](std::string_view text) { return nkey_public(find_nkey_seed(text)); });
}

bool holds_credentials(const std::string& path) {
  return with_secret_text(path, [](std::string_view text) {
    const std::size_t jwt = text.find("BEGIN NATS USER JWT");
    return jwt != text.npos && nkey_public(find_nkey_seed(text.substr(jwt))).has_value();
  });
}

}  // namespace holdfast
