// A program started by us, and ended by us: never outlives its ChildProcess. Output goes to a file.
// Threads: one. It dies with the thread that started it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "spool/result.h"

namespace holdfast {

class ChildProcess {
 public:
  ChildProcess() = default;
  ~ChildProcess() { kill(); }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // `argv[0]` is looked for in PATH when it has no slash.
  Result<void> start(const std::vector<std::string>& argv, const std::string& output_file);
  bool running();
  // SIGTERM; waits for the end. The exit code, 128 + signal when a signal ended it.
  int stop();
  void kill();  // SIGKILL, and waits

 private:
  int end(int signal);
  pid_t pid_ = -1;
};

// A TCP port of 127.0.0.1 that nobody listened on a moment ago; 0 when there is none.
int free_loopback_port();

}  // namespace holdfast
