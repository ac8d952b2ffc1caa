// How the whole appliance stands, as one value: the spool, the sources, the targets, and what is measured between two
// looks.
#pragma once

#include <string>
#include <vector>

#include "appliance/intake.h"
#include "appliance/source.h"
#include "forwarder/forwarder_status.h"
#include "spool/clock.h"
#include "spool/spool_status.h"

namespace holdfast {

struct SourceView {
  SourceStatus status;
  std::size_t in_hand = 0;  // pulled, not taken by the spool yet
  double per_second = 0;    // committed, lately
  bool hung = false;        // its loop is overdue
  VerdictTallies verdicts;
  std::uint64_t dead_letters = 0;  // published, and not in the spool
};

struct TargetView {
  ForwarderStatus status;
  double per_second = 0;  // delivered, lately
  bool hung = false;
};

struct ApplianceStatus {
  bool running = false;  // false: the spool was opened by a command because nobody has it
  std::string version;
  std::string site;             // the one in keys
  std::string configured_site;  // another when the configuration was changed
  WallTime wall;
  Nanoseconds monotonic{0};
  Nanoseconds uptime{0};
  SpoolStatus spool;
  std::uint64_t max_bytes = 0;  // the limits of the configuration
  std::uint64_t max_records = 0;
  std::vector<SourceView> sources;
  std::vector<TargetView> targets;
};

// What somebody should look at.
struct Attention {
  const char* code = "";  // for a machine: "target_on_hold"
  std::string about;      // which source or target; empty: the appliance
  std::string text;       // for a human, one sentence
  bool on_hold = false;   // something waits until somebody, or a server, does something; or was lost
};

// The worst first. Pure.
std::vector<Attention> attentions(const ApplianceStatus& status);

const char* source_state_text(SourceState state);

}  // namespace holdfast
