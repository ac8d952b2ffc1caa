// The process's log: the one place that speaks while the appliance runs. To standard error, where the service manager
// collects it.
//
// Threads: any. Never fails; a line that cannot be written is gone.
#pragma once

#include <memory>

#include "appliance/log_line.h"

namespace holdfast {

class Log {
 public:
  Log(LogLevel least, LogFormat format);
  ~Log();

  void debug(Fixed text, LogFields fields = {}) { say(LogLevel::debug, text, fields); }
  void info(Fixed text, LogFields fields = {}) { say(LogLevel::info, text, fields); }
  void warning(Fixed text, LogFields fields = {}) { say(LogLevel::warning, text, fields); }
  void error(Fixed text, LogFields fields = {}) { say(LogLevel::error, text, fields); }
  void say(LogLevel level, Fixed text, LogFields fields);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace holdfast
