// Files that a client shows who it is with: an nkey seed, or credentials (a JWT and a seed).
#pragma once

#include <optional>
#include <string>

namespace holdfast {

// The public key that belongs to the seed in the file. Nothing: it cannot be read, or holds no seed of a user.
std::optional<std::string> public_key_of_seed_file(const std::string& path);
// Whether the file can be read and looks like a user's credentials: a JWT, and a seed behind it.
bool holds_credentials(const std::string& path);

}  // namespace holdfast
