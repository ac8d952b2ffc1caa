#include "tests/support/database_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <linux/close_range.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "spool/check.h"
#include "tests/support/nats_server.h"
#include "tests/support/patience.h"
#include "tests/support/program.h"

namespace holdfast {
namespace {

namespace fs = std::filesystem;

constexpr auto kStartLimit = std::chrono::seconds(60);

std::string find_program(const std::string& name) {
  std::vector<std::string> places{"/usr/sbin/" + name, "/usr/bin/" + name, "/usr/local/bin/" + name};
  std::error_code none;
  for (const auto& version : fs::directory_iterator("/usr/lib/postgresql", none))
    places.push_back(version.path().string() + "/bin/" + name);
  for (const std::string& place : places) {
    if (::access(place.c_str(), X_OK) == 0) return place;
  }
  return "";
}

bool is_postgres(const DatabaseServerOptions& options) {
  return options.dialect == SqlDialect::postgres;
}

// Whom it runs as.
const passwd* owner() {
  return ::geteuid() == 0 ? ::getpwnam("nobody") : ::getpwuid(::geteuid());
}

void become_owner() {
  const passwd* who = owner();
  if (::geteuid() != 0) return;
  if (::setgroups(0, nullptr) != 0 || ::setgid(who->pw_gid) != 0 || ::setuid(who->pw_uid) != 0) ::_exit(126);
}

void give_away(const std::string& path) {
  CHECK(::chown(path.c_str(), owner()->pw_uid, owner()->pw_gid) == 0);
}

// In a process group of its own: a database is several processes.
pid_t launch(const std::vector<std::string>& argv, const std::string& log) {
  std::vector<std::string> copy = argv;
  std::vector<char*> words;
  for (std::string& word : copy) words.push_back(word.data());
  words.push_back(nullptr);
  const pid_t pid = ::fork();
  CHECK(pid >= 0);
  if (pid > 0) return pid;
  const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  ::dup2(out, 1);
  ::dup2(out, 2);
  ::close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
  ::setpgid(0, 0);
  become_owner();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // after the change of user, which clears it
  ::setenv("LC_ALL", "C", 1);
  if (::chdir("/") != 0) ::_exit(126);
  ::execv(words[0], words.data());
  ::_exit(127);
}

void run_to_the_end(const std::vector<std::string>& argv, const std::string& log) {
  int status = 0;
  const pid_t pid = launch(argv, log);
  ::waitpid(pid, &status, 0);
  if (status == 0) return;
  std::fprintf(stderr, "%s fails:\n%s\n", argv[0].c_str(), file_text(log).c_str());
  std::abort();
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

}  // namespace

std::string DatabaseServer::why_none(SqlDialect dialect) {
  const bool postgres = dialect == SqlDialect::postgres;
  using Names = std::vector<std::string>;
  for (const std::string& name :
       postgres ? Names{"postgres", "initdb", "psql"} : Names{"mariadbd", "mariadb-install-db", "mariadb"}) {
    if (find_program(name).empty()) return name + " is not on this machine";
  }
  return "";
}

DatabaseServer::DatabaseServer(DatabaseServerOptions options) : options_(std::move(options)), port_(free_port()) {
  give_away(directory_.path());
  write_file(password_file(), std::string(kPassword) + "\n");
  if (!options_.tls_key.empty()) {
    for (const auto& [from, name] : {std::pair(options_.tls_cert, "server.pem"), {options_.tls_key, "server.key"}}) {
      fs::copy_file(from, directory_ / name);
      give_away(directory_ / name);
      ::chmod((directory_ / name).c_str(), 0600);
    }
  }
  make_data();
  start();
  if (is_postgres(options_)) {
    query(
        fmt::format("CREATE ROLE {0} LOGIN PASSWORD '{1}'; GRANT CREATE, USAGE ON SCHEMA public TO {0};"
                    "ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO {0}",
                    kUser, kPassword));
  } else {
    query(fmt::format("CREATE USER '{0}'@'%' IDENTIFIED BY '{1}'; GRANT ALL ON `{2}`.* TO '{0}'@'%'", kUser, kPassword,
                      kDatabase));
  }
}

DatabaseServer::~DatabaseServer() {
  kill();
}

void DatabaseServer::make_data() const {
  const std::string log = directory_ / "setup.log";
  const std::string data = directory_ / "data";
  if (is_postgres(options_)) {
    run_to_the_end({find_program("initdb"), "-D", data, "-U", "postgres", "--auth-local=trust",
                    "--auth-host=scram-sha-256", "--no-sync", "-E", "UTF8", "--locale=C"},
                   log);
    return;
  }
  run_to_the_end({find_program("mariadb-install-db"), "--no-defaults", "--datadir=" + data,
                  "--auth-root-authentication-method=normal", "--skip-test-db", "--skip-log-bin",
                  "--innodb-flush-log-at-trx-commit=0"},
                 log);
}

std::string DatabaseServer::socket() const {
  return is_postgres(options_) ? directory_.path() : directory_ / "mysqld.sock";
}

SqlServer DatabaseServer::address() const {
  SqlServer server;
  server.host = "127.0.0.1";
  server.port = static_cast<std::uint16_t>(port_);
  server.database = kDatabase;
  server.user = kUser;
  server.password_file = password_file();
  server.tls = SqlTls::off;
  return server;
}

std::vector<std::string> DatabaseServer::command() const {
  const std::string data = directory_ / "data";
  const bool tls = !options_.tls_cert.empty();
  std::vector<std::string> words;
  if (is_postgres(options_)) {
    words = {find_program("postgres"),
             "-D",
             data,
             "-k",
             directory_.path(),
             "-p",
             std::to_string(port_),
             "-c",
             "listen_addresses=127.0.0.1",
             "-c",
             "max_connections=50",
             "-c",
             "shared_buffers=32MB"};
    const auto set = [&](const std::string& what) { words.insert(words.end(), {"-c", what}); };
    if (!options_.syncs) set("fsync=off");
    if (tls) set("ssl=on");
    if (tls) set("ssl_cert_file=" + (directory_ / "server.pem"));
    if (tls) set("ssl_key_file=" + (directory_ / "server.key"));
  } else {
    words = {find_program("mariadbd"),
             "--no-defaults",
             "--datadir=" + data,
             "--socket=" + socket(),
             "--port=" + std::to_string(port_),
             "--bind-address=127.0.0.1",
             "--skip-log-bin",
             "--skip-name-resolve",
             "--innodb-buffer-pool-size=64M",
             "--character-set-server=utf8mb4",
             "--pid-file=" + (directory_ / "mysqld.pid"),
             "--tmpdir=" + directory_.path()};
    if (!options_.syncs) words.emplace_back("--innodb-flush-method=nosync");
    if (tls) words.push_back("--ssl-cert=" + (directory_ / "server.pem"));
    if (tls) words.push_back("--ssl-key=" + (directory_ / "server.key"));
  }
  words.insert(words.end(), options_.extra.begin(), options_.extra.end());
  return words;
}

void DatabaseServer::start() {
  CHECK(pid_ < 0);
  const std::string log = directory_ / "server.log";
  pid_ = launch(command(), log);
  const bool postgres = is_postgres(options_);
  const std::string make = postgres ? fmt::format("CREATE DATABASE {}", kDatabase)
                                    : fmt::format("CREATE DATABASE IF NOT EXISTS {}", kDatabase);
  const bool answers = eventually(
      [&] {
        int code = -1;
        std::vector<std::string> ask;
        if (postgres) {
          ask = {find_program("psql"), "-h", socket(), "-p", std::to_string(port_), "-U", "postgres", "-Atqc", make};
        } else {
          ask = {find_program("mariadb"), "--no-defaults", "-S", socket(), "-u", "root", "-e", make};
        }
        const ProgramAnswer answer = run_program(ask);
        code = answer.err.find("already exists") != std::string::npos ? 0 : answer.code;
        return code == 0;
      },
      kStartLimit, std::chrono::milliseconds(50));
  if (answers) return;
  std::fprintf(stderr, "the database does not start:\n%s\n", file_text(log).c_str());
  std::abort();
}

std::string DatabaseServer::client_output(const std::string& statements, int& code) const {
  std::vector<std::string> ask;
  if (is_postgres(options_)) {
    ask = {find_program("psql"), "-h",    socket(),  "-p", std::to_string(port_), "-U",
           "postgres",           "-d",    kDatabase, "-v", "ON_ERROR_STOP=1",     "-P",
           "null=NULL",          "-Atqc", statements};
  } else {
    ask = {
        find_program("mariadb"),           "--no-defaults",  "-S", socket(),  "-u", "root", "-N", "-B", "-D", kDatabase,
        "--default-character-set=utf8mb4", "--delimiter=//", "-e", statements};
  }
  ProgramAnswer answer = run_program(ask);
  code = answer.code;
  if (code != 0) return answer.err;
  if (!is_postgres(options_)) std::replace(answer.out.begin(), answer.out.end(), '\t', '|');
  return answer.out;
}

std::string DatabaseServer::query(const std::string& statements) const {
  int code = -1;
  std::string out = client_output(statements, code);
  if (code == 0) return out;
  std::fprintf(stderr, "refused: %s\n%s\n", statements.c_str(), out.c_str());
  std::abort();
}

void DatabaseServer::signal_all(int number) const {
  if (pid_ > 0) ::kill(-pid_, number);
}

void DatabaseServer::end(int number) {
  if (pid_ <= 0) return;
  // PostgreSQL leaves at once, without waiting for sessions, on SIGINT.
  if (number == SIGKILL) {
    signal_all(SIGKILL);
  } else {
    ::kill(pid_, is_postgres(options_) ? SIGINT : SIGTERM);
  }
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
}

void DatabaseServer::stop() {
  end(SIGTERM);
}

// PostgreSQL gives each of its children a group of its own: they leave when they see that their parent is gone.
void DatabaseServer::kill() {
  if (pid_ <= 0) return;
  std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", pid_));
  std::vector<pid_t> found;
  for (pid_t child = 0; children >> child;) found.push_back(child);
  const pid_t was = pid_;
  ::kill(was, SIGSTOP);
  for (const pid_t child : found) ::kill(child, SIGKILL);
  end(SIGKILL);
  // The lock of a data directory is in its pid file; nobody of the old life may still be there.
  CHECK(eventually([&] {
    for (const pid_t child : found) {
      if (::kill(child, 0) == 0) return false;
    }
    return true;
  }));
}

void DatabaseServer::freeze() {
  std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", pid_));
  ::kill(pid_, SIGSTOP);
  for (pid_t child = 0; children >> child;) ::kill(child, SIGSTOP);
}

void DatabaseServer::thaw() {
  std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", pid_));
  for (pid_t child = 0; children >> child;) ::kill(child, SIGCONT);
  ::kill(pid_, SIGCONT);
}

DatabaseServer& shared_server(SqlDialect dialect) {
  static std::unique_ptr<DatabaseServer> servers[2];
  auto& server = servers[dialect == SqlDialect::postgres ? 0 : 1];
  if (!server) server = std::make_unique<DatabaseServer>(DatabaseServerOptions{dialect});
  return *server;
}

}  // namespace holdfast
