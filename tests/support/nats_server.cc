#include "tests/support/nats_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "spool/check.h"
#include "tests/support/program.h"

namespace holdfast {
namespace {

constexpr auto kStartLimit = std::chrono::seconds(20);
constexpr auto kPause = std::chrono::milliseconds(10);  // between two looks at a condition

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

std::string binary() {
  const char* named = std::getenv("HOLDFAST_NATS_SERVER");
  if (named != nullptr && *named != '\0') return named;
  for (const char* path : {"/usr/bin/nats-server", "/usr/sbin/nats-server", "/usr/local/bin/nats-server"}) {
    if (::access(path, X_OK) == 0) return path;
  }
  return "nats-server";
}

// The greeting: a server that says INFO is up.
bool says_info(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval limit{1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  const sockaddr_in address = loopback(port);
  char first[4] = {};
  const bool said = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                    ::recv(fd, first, sizeof first, MSG_WAITALL) == 4 && std::string_view(first, 4) == "INFO";
  ::close(fd);
  return said;
}

}  // namespace

int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  CHECK(::bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0);
  CHECK(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  ::close(fd);
  return ntohs(address.sin_port);
}

NatsServer::NatsServer(NatsServerOptions options) : options_(std::move(options)), port_(free_port()) {
  start();
}

NatsServer::~NatsServer() {
  kill();
}

std::string NatsServer::url() const {
  return options_.tls_cert.empty() ? fmt::format("nats://127.0.0.1:{}", port_)
                                   : fmt::format("tls://localhost:{}", port_);
}

void NatsServer::write_configuration() const {
  std::ofstream file(directory_ / "server.conf");
  file << fmt::format("listen: \"127.0.0.1:{}\"\nmax_payload: {}\n", port_, options_.max_payload);
  const std::string domain = options_.domain.empty() ? "" : ", domain: " + options_.domain;
  if (options_.jetstream) file << fmt::format("jetstream {{ store_dir: \"{}\"{} }}\n", store(), domain);
  if (!options_.tls_cert.empty()) {
    file << fmt::format("tls {{ cert_file: \"{}\", key_file: \"{}\"", options_.tls_cert, options_.tls_key);
    if (!options_.tls_ca.empty()) file << fmt::format(", ca_file: \"{}\", verify: true", options_.tls_ca);
    file << " }\n";
  }
  if (!options_.nkeys.empty()) {
    file << "authorization { users = [";
    for (const std::string& key : options_.nkeys) file << fmt::format(" {{ nkey: {} }}", key);
    file << " ] }\n";
  }
  file << options_.extra << "\n";
}

void NatsServer::start() {
  CHECK(pid_ < 0);
  write_configuration();
  std::vector<std::string> argv{binary(), "-c", directory_ / "server.conf"};
  if (options_.clock_shift.count() != 0) {
    argv.insert(argv.begin(), {HOLDFAST_WITH_CLOCK, std::to_string(options_.clock_shift.count())});
  }
  std::vector<char*> words;
  for (std::string& word : argv) words.push_back(word.data());
  words.push_back(nullptr);
  const std::string log = directory_ / "server.log";
  pid_ = ::fork();
  CHECK(pid_ >= 0);
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);  // or it keeps connections of the test's own open
    const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ::dup2(out, 1);
    ::dup2(out, 2);
    ::execvp(words[0], words.data());
    ::_exit(127);
  }
  wait_until_it_answers();
}

void NatsServer::wait_until_it_answers() const {
  const auto deadline = std::chrono::steady_clock::now() + kStartLimit;
  while (!says_info(port_)) {
    if (std::chrono::steady_clock::now() > deadline) {
      std::fprintf(stderr, "nats-server does not start; %s/server.log\n", directory_.path().c_str());
      std::abort();
    }
    std::this_thread::sleep_for(kPause);
  }
}

void NatsServer::end(int signal) {
  if (pid_ <= 0) return;
  ::kill(pid_, signal);
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
}

void NatsServer::stop() {
  end(SIGTERM);
}

void NatsServer::kill() {
  end(SIGKILL);
}

void NatsServer::freeze() {
  ::kill(pid_, SIGSTOP);
  int status = 0;
  ::waitpid(pid_, &status, WUNTRACED);  // until every thread of it has stopped
}

void NatsServer::thaw() {
  ::kill(pid_, SIGCONT);
}

std::string why_no_clock_shift() {
  static const std::string why = [] {
    const ProgramAnswer answer = run_program({HOLDFAST_WITH_CLOCK, "1", "true"});
    return answer.code == 0 ? "" : answer.err;
  }();
  return why;
}

bool server_is_at_least(int major, int minor) {
  static const auto version = [] {
    std::pair<int, int> found{0, 0};
    std::FILE* out = ::popen((binary() + " --version").c_str(), "r");
    if (out == nullptr) return found;
    (void)!std::fscanf(out, "nats-server: v%d.%d", &found.first, &found.second);
    ::pclose(out);
    return found;
  }();
  return version >= std::pair(major, minor);
}

}  // namespace holdfast
