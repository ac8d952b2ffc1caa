#include "appliance/systemd.h"

#include <syslog.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

namespace holdfast {

void notify_ready() {
  ::sd_notify(0, "READY=1");
}

void notify_stopping() {
  ::sd_notify(0, "STOPPING=1");
}

void notify_watchdog() {
  ::sd_notify(0, "WATCHDOG=1");
}

void notify_status(const std::string& line) {
  ::sd_notify(0, ("STATUS=" + line).c_str());
}

void notify_extend_timeout(Nanoseconds by) {
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(by).count();
  ::sd_notify(0, ("EXTEND_TIMEOUT_USEC=" + std::to_string(micros)).c_str());
}

bool tell_journal(const std::string& line) {
  return ::access("/run/systemd/journal/socket", W_OK) == 0 && ::sd_journal_print(LOG_NOTICE, "%s", line.c_str()) == 0;
}

}  // namespace holdfast
