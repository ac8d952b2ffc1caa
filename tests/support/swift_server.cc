#include "tests/support/swift_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "spool/check.h"
#include "tests/support/nats_server.h"
#include "tests/support/patience.h"
#include "tests/support/remove_tree.h"

namespace holdfast {
namespace {

constexpr std::array<const char*, 4> kNames = {"proxy", "account", "container", "object"};
constexpr Nanoseconds kStartLimit = std::chrono::minutes(5);  // four programs that read half of Python each

std::string new_directory() {
  const char* chosen = std::getenv("TMPDIR");
  std::string path = fmt::format("{}/holdfast-swift-XXXXXX", chosen != nullptr ? chosen : "/var/tmp");
  CHECK(::mkdtemp(path.data()) != nullptr);
  return path;
}

std::string user_name() {
  const passwd* entry = ::getpwuid(::geteuid());
  return entry == nullptr ? "root" : entry->pw_name;
}

bool accepts(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  const bool connected = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return connected;
}

}  // namespace

SwiftServer::SwiftServer() : directory_(new_directory()) {
  configure();
  start();
}

SwiftServer::~SwiftServer() {
  for (Program& server : servers_) server.kill();
  remove_tree(directory_);
}

std::string SwiftServer::url() const {
  return fmt::format("http://127.0.0.1:{}", ports_[0]);
}

void SwiftServer::configure() {
  CHECK(::mkdir(file("devices").c_str(), 0700) == 0 && ::mkdir(file("devices/d1").c_str(), 0700) == 0);
  for (std::size_t n = 0; n < kNames.size(); ++n) {
    ports_[n] = free_port();
    const std::string name = kNames[n];
    std::ofstream conf(file(name + ".conf"));
    conf << fmt::format(
        "[DEFAULT]\nbind_ip = 127.0.0.1\nbind_port = {}\nworkers = 0\nuser = {}\nswift_dir = {}\ndevices = {}\n"
        "mount_check = false\nfallocate_reserve = 0\nlog_address = /dev/null\n",
        ports_[n], user_name(), directory_, file("devices"));
    if (n == 0) {
      conf << "[pipeline:main]\npipeline = catch_errors cache s3api tempauth proxy-server\n"
              "[filter:catch_errors]\nuse = egg:swift#catch_errors\n"
              // It asks for one, and does without when nobody is there.
              "[filter:cache]\nuse = egg:swift#memcache\nmemcache_servers = 127.0.0.1:1\n"
              "[filter:s3api]\nuse = egg:swift#s3api\n"
              "[filter:tempauth]\nuse = egg:swift#tempauth\nuser_test_tester = testing .admin\n"
              "[app:proxy-server]\nuse = egg:swift#proxy\naccount_autocreate = true\n";
      continue;
    }
    conf << fmt::format(
        "[pipeline:main]\npipeline = {0}-server\n[app:{0}-server]\nuse = egg:swift#{0}\nrecon_cache_path = {1}\n", name,
        directory_);
    const std::string builder = file(name + ".builder");
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"create", "1", "1", "0"},
          std::vector<std::string>{"add", fmt::format("r1z1-127.0.0.1:{}/d1", ports_[n]), "1"},
          std::vector<std::string>{"rebalance"}}) {
      std::vector<std::string> argv{"swift-ring-builder", builder};
      argv.insert(argv.end(), words.begin(), words.end());
      CHECK(run_program(argv).code == 0);
    }
  }
}

void SwiftServer::start() {
  for (std::size_t n = 0; n < kNames.size(); ++n) {
    if (servers_[n].running()) continue;
    const std::string name = kNames[n], log = file(name + ".log");
    servers_[n].start({fmt::format("swift-{}-server", name), file(name + ".conf")}, {log, log});
  }
  const bool up = eventually(
      [&] { return std::all_of(ports_.begin(), ports_.end(), [](int port) { return accepts(port); }); }, kStartLimit);
  if (!up) std::fprintf(stderr, "swift does not start; %s/*.log\n", directory_.c_str());
  CHECK(up);
}

void SwiftServer::stop() {
  servers_[0].kill();
}

void SwiftServer::freeze() {
  servers_[0].signal(SIGSTOP);
}

void SwiftServer::thaw() {
  servers_[0].signal(SIGCONT);
}

std::string why_no_swift() {
  for (const char* name : kNames) {
    const std::string path = fmt::format("/usr/bin/swift-{}-server", name);
    if (::access(path.c_str(), X_OK) != 0) return path + " is not installed";
  }
  if (::access("/etc/swift/swift.conf", R_OK) != 0) return "/etc/swift/swift.conf may not be read by this user";
  const std::string directory = new_directory();
  const bool has = ::setxattr(directory.c_str(), "user.holdfast", "1", 1, 0) == 0;
  ::rmdir(directory.c_str());
  return has ? "" : "no xattrs can be written where tests have their files";
}

}  // namespace holdfast
