// What the service manager is told (sd_notify(3)). Does nothing where there is none. Threads: any.
#pragma once

#include <optional>
#include <string>

#include "spool/clock.h"

namespace holdfast {

void notify_ready();
void notify_stopping();
void notify_watchdog();
void notify_status(const std::string& line);
// Start or stop may take this much longer from now.
void notify_extend_timeout(Nanoseconds by);
// How often the manager expects notify_watchdog() at the latest; nothing when it does not.
std::optional<Nanoseconds> watchdog_interval();

}  // namespace holdfast
