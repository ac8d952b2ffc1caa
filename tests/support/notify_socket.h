// What a service manager listens on: the datagrams of sd_notify(3).
#pragma once

#include <string>

#include "spool/clock.h"
#include "tests/support/temporary_directory.h"

namespace holdfast {

class NotifySocket {
 public:
  NotifySocket();
  ~NotifySocket();
  NotifySocket(const NotifySocket&) = delete;
  NotifySocket& operator=(const NotifySocket&) = delete;

  std::string environment() const { return "NOTIFY_SOCKET=" + path(); }
  // Waits for a datagram that has this line ("READY=1"); false when none came within the limit.
  bool hears(const std::string& line, Nanoseconds limit);

 private:
  std::string path() const { return directory_ / "notify"; }

  TemporaryDirectory directory_;
  int socket_ = -1;
};

}  // namespace holdfast
