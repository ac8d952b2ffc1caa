// What the service manager is told (sd_notify(3)), and its journal. Does nothing where there is none. Threads: any.
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
// A line of a command's own in the system's journal (sd_journal_print(3)); false where there is none.
bool tell_journal(const std::string& line);

}  // namespace holdfast
