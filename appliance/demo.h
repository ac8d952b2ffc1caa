// `holdfast demo`: the main job in one minute, on loopback, with real parts: an edge and a hub nats-server, this very
// program between them, a cut uplink, two kills, and a proof.
#pragma once

#include <cstdint>

namespace holdfast {

struct DemoOptions {
  std::uint64_t messages = 20'000;
  bool json = false;  // the final figures as JSON on stdout; the talk stays on stderr
  bool keep = false;  // leave the directory behind
};

// 0 only when every claim held. Everything it starts has ended when it returns, and lies in a directory of its own.
int run_demo(const DemoOptions& options);

}  // namespace holdfast
