// What the service manager is told (sd_notify(3)). Does nothing where there is none. Threads: any.
#pragma once

#include <string>

#include "spool/clock.h"

namespace holdfast {

void notify_ready();
void notify_stopping();
void notify_watchdog();
void notify_status(const std::string& line);
// Start or stop may take this much longer from now.
void notify_extend_timeout(Nanoseconds by);

}  // namespace holdfast
