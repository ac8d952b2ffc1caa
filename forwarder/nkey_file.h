// The file of an nkey seed.
#pragma once

#include <optional>
#include <string>

namespace holdfast {

// The public key that belongs to the seed in the file. Nothing: it cannot be read, or holds no seed of a user.
std::optional<std::string> public_key_of_seed_file(const std::string& path);

}  // namespace holdfast
