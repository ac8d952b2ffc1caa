// The key without which the spool cannot be read: where it is kept on this box.
//
// A key file must be a regular file, no symlink, unreadable for group and others, and belong to root or to who runs the
// spool. A systemd credential is guarded by its directory, which only the service can enter.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "appliance/config.h"
#include "crypto/secret.h"
#include "spool/result.h"

namespace holdfast {

// `not_found`: there is none at this place. `invalid`: it is no key, or not kept as a key must be. `also_owner` may own
// the file beside root and the caller.
Result<SecretKey> read_key(const KeyPlace& place, uid_t also_owner);

// Makes a key and writes it to a new file, 0600, synced with its directory; returns the key's id. `exists` when the
// name is taken: nothing is ever overwritten.
Result<std::string> make_key_file(const std::string& path);

}  // namespace holdfast
