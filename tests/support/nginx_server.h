// A real nginx on a free port of the loopback, in a directory of its own: for what a server of ours does not do, TLS,
// HTTP/2, client certificates. Goes with the test: it is killed when the thread that started it ends.
#pragma once

#include <string>
#include <vector>

#include "tests/support/program.h"
#include "tests/support/temporary_directory.h"

namespace holdfast {

struct NginxOptions {
  std::string certificate = {};  // none: in the clear
  std::string key = {};
  std::string client_ca = {};  // clients must show a certificate that it signed; else 400
  bool http2 = true;           // offered, where there is TLS
  std::string answer = "return 204;";
  bool logs = true;
};

// A request as nginx saw it.
struct NginxRequest {
  std::string protocol;    // "HTTP/2.0"
  std::string connection;  // its number
  std::string key;         // Idempotency-Key
};

class NginxServer {
 public:
  explicit NginxServer(NginxOptions options = {});

  void start();  // aborts the test when it does not answer
  void stop() { program_.kill(); }
  NginxOptions& options() { return options_; }  // for the next start
  std::string url(const std::string& host = "127.0.0.1") const;
  int port() const { return port_; }
  std::vector<NginxRequest> requests() const;

 private:
  void write_configuration() const;
  NginxOptions options_;
  const TemporaryDirectory directory_;
  const int port_;
  Program program_;
};

// Empty when there is one; else for GTEST_SKIP.
std::string why_no_nginx();

}  // namespace holdfast
