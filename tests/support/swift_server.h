// A real object store on free ports of the loopback: OpenStack Swift with its S3 interface, as Debian has it. It checks
// signatures, digests, regions and clocks, and says 501 to a conditional put. What it holds outlives stop().
//
// Goes with the test: its servers are killed when the thread that started them ends.
#pragma once

#include <array>
#include <string>

#include "tests/support/program.h"

namespace holdfast {

class SwiftServer {
 public:
  // Where xattrs can be written ($TMPDIR, else /var/tmp). Look at why_no_swift() before.
  SwiftServer();
  ~SwiftServer();
  SwiftServer(const SwiftServer&) = delete;
  SwiftServer& operator=(const SwiftServer&) = delete;

  std::string url() const;
  std::string region() const { return "us-east-1"; }
  std::string access_key() const { return "test:tester"; }
  std::string secret() const { return "testing"; }

  void start();  // until it answers; aborts the test when it does not
  // The way in to it: connecting is refused; or taken (the kernel does), and nothing is answered.
  void stop();
  void freeze();
  void thaw();

 private:
  void configure();
  std::string file(const std::string& name) const { return directory_ + "/" + name; }

  std::string directory_;
  std::array<int, 4> ports_{};  // proxy, account, container, object
  std::array<Program, 4> servers_;
};

// Empty when it can run here; else for GTEST_SKIP.
std::string why_no_swift();

}  // namespace holdfast
