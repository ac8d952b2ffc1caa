// The appliance at work: one thread per source and per target, one for the spool's upkeep, one that watches; signals,
// the control socket and the watchdog in the calling thread.
//
// Returns when it was told to stop (0), in at most 20 seconds; leaves the process, without return, when the spool's
// life is over or a loop hangs (75): restart and recovery is the best-tested path.
#pragma once

#include "appliance/config.h"
#include "appliance/custody.h"
#include "appliance/log.h"

namespace holdfast {

int run_service(const Config& config, Custody custody, Log& log);

}  // namespace holdfast
