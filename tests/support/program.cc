#include "tests/support/program.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

#include "spool/check.h"
#include "tests/support/temporary_directory.h"

namespace holdfast {
namespace {

constexpr int kNotStarted = 127;                       // as the shell has it
constexpr auto kPause = std::chrono::milliseconds(2);  // between two looks at a condition

int exit_code(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int open_for_appending(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  CHECK(fd >= 0);
  return fd;
}

}  // namespace

void Program::start(const std::vector<std::string>& argv, const Files& files,
                    const std::vector<std::string>& environment) {
  CHECK(pid_ < 0 && !argv.empty());
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const int out = open_for_appending(files.out);
  const int err = open_for_appending(files.err);
  const pid_t parent = ::getpid();
  code_.reset();
  pid_ = ::fork();
  CHECK(pid_ >= 0);
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(kNotStarted);
    for (const std::string& line : environment) ::putenv(const_cast<char*>(line.c_str()));
    const int in = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    // Sockets of the test's own client library are not closed by exec, and the program would take one to the same
    // server for its own (forwarder/own_socket.h).
    ::close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
    if (in < 0 || ::dup2(in, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(err, 2) < 0) ::_exit(kNotStarted);
    ::execvp(words[0], words.data());
    ::_exit(kNotStarted);
  }
  ::close(out);
  ::close(err);
}

bool Program::running() {
  if (pid_ < 0) return false;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) == 0) return true;
  code_ = exit_code(status);
  pid_ = -1;
  return false;
}

void Program::signal(int number) {
  if (running()) ::kill(pid_, number);
}

std::optional<int> Program::wait(Nanoseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (running()) {
    if (std::chrono::steady_clock::now() > deadline) return std::nullopt;
    std::this_thread::sleep_for(kPause);
  }
  return code_;
}

void Program::kill() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  code_ = exit_code(status);
  pid_ = -1;
}

ProgramAnswer run_program(const std::vector<std::string>& argv, Nanoseconds limit) {
  const TemporaryDirectory directory;
  const Program::Files files{directory / "out", directory / "err"};
  Program program;
  program.start(argv, files);
  const auto code = program.wait(limit);
  if (!code) {
    std::fprintf(stderr, "%s does not end; so far it said: %s\n", argv[0].c_str(), file_text(files.err).c_str());
    std::abort();
  }
  return {*code, file_text(files.out), file_text(files.err)};
}

std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace holdfast
