// A real nats-server on a free port of the loopback, with a store of its own, that can be stopped, killed, frozen and
// started again on the same port and store. The binary: $HOLDFAST_NATS_SERVER, else nats-server from PATH.
//
// Goes with the test: it is killed when the thread that started it ends.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "tests/support/temporary_directory.h"

namespace holdfast {

// A port of 127.0.0.1 that nobody listened on a moment ago.
int free_port();

struct NatsServerOptions {
  bool jetstream = true;
  std::string domain = {};  // of JetStream
  std::size_t max_payload = 1u << 20;
  std::string tls_cert = {};
  std::string tls_key = {};
  std::string tls_ca = {};              // clients must show a certificate that it signed
  std::vector<std::string> nkeys = {};  // public keys of the only users
  std::string extra = {};               // further lines of its configuration
  std::chrono::seconds clock_shift{0};  // its wall clock, from the machine's; look at why_no_clock_shift() before
};

class NatsServer {
 public:
  explicit NatsServer(NatsServerOptions options = {});
  ~NatsServer();
  NatsServer(const NatsServer&) = delete;
  NatsServer& operator=(const NatsServer&) = delete;

  int port() const { return port_; }
  std::string url() const;  // nats://127.0.0.1:<port>, or tls://localhost:<port>
  std::string store() const { return directory_ / "store"; }
  bool running() const { return pid_ > 0; }

  // Until it accepts connections; aborts the test when it does not.
  void start();
  void stop();    // SIGTERM, and waits
  void kill();    // SIGKILL, and waits
  void freeze();  // SIGSTOP: accepts connections (the kernel does), answers nothing
  void thaw();
  // For the next start.
  NatsServerOptions& options() { return options_; }

 private:
  void write_configuration() const;
  void wait_until_it_answers() const;
  void end(int signal);

  NatsServerOptions options_;
  TemporaryDirectory directory_;
  int port_ = 0;
  pid_t pid_ = -1;
};

// Empty when a server can be given a clock of its own on this machine; else for GTEST_SKIP.
std::string why_no_clock_shift();

// Every server version has its habits: 2.9 or 2.10 and later.
bool server_is_at_least(int major, int minor);

}  // namespace holdfast
