// A program that a test starts and ends: its two outputs go to files, its exit code is kept, and its environment can be
// added to. Goes with the test: it is killed when its Program goes, or the thread that started it.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "spool/clock.h"

namespace holdfast {

class Program {
 public:
  struct Files {
    std::string out;  // appended to; both may be the same
    std::string err;
  };

  Program() = default;
  ~Program() { kill(); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Aborts the test when nothing can be started. `environment`: "NAME=value" beside what the test has itself.
  void start(const std::vector<std::string>& argv, const Files& files,
             const std::vector<std::string>& environment = {});
  bool running();
  pid_t pid() const { return pid_; }
  void signal(int number);
  // The exit code, 128 + signal when a signal ended it; nothing when it still runs after the limit.
  std::optional<int> wait(Nanoseconds limit);
  void kill();  // SIGKILL, and waits

 private:
  pid_t pid_ = -1;
  std::optional<int> code_;
};

struct ProgramAnswer {
  int code = -1;
  std::string out;
  std::string err;
};

// Runs to the end; aborts the test when there is none within the limit.
ProgramAnswer run_program(const std::vector<std::string>& argv, Nanoseconds limit = std::chrono::seconds(60));

std::string file_text(const std::string& path);  // empty when there is none

}  // namespace holdfast
