// The name in the file system under which the control socket is found.
#pragma once

#include <string>

#include "spool/result.h"

namespace holdfast {

// A listening Unix socket at `path`, mode 0660; its directory is made, 0750, when only that is missing. What an earlier
// life left behind is replaced; `exists` when somebody listens there, or the name is no socket. Call it while the
// process has one thread: the file mode mask is changed for a moment.
Result<int> listen_at(const std::string& path);

// Connected, or `not_found`: nobody listens there; `invalid`: it may not be reached.
Result<int> connect_to(const std::string& path);

// Who is at the other end (SO_PEERCRED).
struct Peer {
  unsigned uid = 0;
  int pid = 0;
};
Result<Peer> peer_of(int socket);

}  // namespace holdfast
