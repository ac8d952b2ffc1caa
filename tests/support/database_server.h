// A real PostgreSQL or MariaDB on a free port of the loopback and a socket of its own, with a data directory of its
// own, that can be stopped, killed, frozen and started again. Both refuse to run as root: as root they run as "nobody".
//
// Making one takes a second or two, so a program of tests makes one of a kind (shared_server) and each test its own
// tables or database. Goes with the test: it is killed when the thread that started it ends.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "forwarder/sql_options.h"
#include "tests/support/temporary_directory.h"

namespace holdfast {

struct DatabaseServerOptions {
  SqlDialect dialect = SqlDialect::postgres;
  std::string tls_cert = {};
  std::string tls_key = {};
  bool syncs = false;                   // its disk; a test that kills it needs no more than the page cache
  std::vector<std::string> extra = {};  // further options of its command line
};

class DatabaseServer {
 public:
  static constexpr const char* kUser = "box";
  static constexpr const char* kPassword = "stay afloat";
  static constexpr const char* kDatabase = "upstream";

  explicit DatabaseServer(DatabaseServerOptions options);
  ~DatabaseServer();
  DatabaseServer(const DatabaseServer&) = delete;
  DatabaseServer& operator=(const DatabaseServer&) = delete;

  // Empty when there is such a server on this machine; else for GTEST_SKIP.
  static std::string why_none(SqlDialect dialect);

  SqlDialect dialect() const { return options_.dialect; }
  int port() const { return port_; }
  std::string socket() const;  // as SqlServer::host wants it
  std::string password_file() const { return directory_ / "password"; }
  // To its database, by the user above, over TCP without TLS.
  SqlServer address() const;

  void start();
  void stop();    // orderly, and waits
  void kill();    // SIGKILL to all of it, and waits
  void freeze();  // SIGSTOP to all of it
  void thaw();

  // By its own client and its superuser, in the database above: rows as lines, cells with "|" between them, NULL as
  // "NULL". Aborts the test when it is refused.
  std::string query(const std::string& statements) const;

 private:
  void make_data() const;
  std::vector<std::string> command() const;
  std::string client_output(const std::string& statements, int& code) const;
  void signal_all(int number) const;
  void end(int number);

  const DatabaseServerOptions options_;
  TemporaryDirectory directory_;
  int port_ = 0;
  pid_t pid_ = -1;
};

// The program's one of this kind; made when it is first asked for, and running.
DatabaseServer& shared_server(SqlDialect dialect);

}  // namespace holdfast
