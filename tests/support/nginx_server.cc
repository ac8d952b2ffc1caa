#include "tests/support/nginx_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "spool/check.h"
#include "tests/support/nats_server.h"
#include "tests/support/patience.h"

namespace holdfast {
namespace {

std::string binary() {
  for (const char* path : {"/usr/sbin/nginx", "/usr/bin/nginx", "/usr/local/sbin/nginx"}) {
    if (::access(path, X_OK) == 0) return path;
  }
  return "";
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

std::string why_no_nginx() {
  return binary().empty() ? "there is no nginx here (packaging/packages.sh, test)" : "";
}

NginxServer::NginxServer(NginxOptions options) : options_(std::move(options)), port_(free_port()) {
  start();
}

std::string NginxServer::url(const std::string& host) const {
  return fmt::format("{}://{}:{}/in", options_.certificate.empty() ? "http" : "https", host, port_);
}

void NginxServer::write_configuration() const {
  const bool tls = !options_.certificate.empty();
  std::ofstream file(directory_ / "nginx.conf");
  const std::string at = directory_.path();
  file << "daemon off; master_process off; worker_rlimit_nofile 4096;\n"
       << fmt::format("pid {0}/pid; error_log {0}/errors;\nevents {{ worker_connections 1024; }}\nhttp {{\n", at)
       << "  log_format ours '$server_protocol $connection $http_idempotency_key';\n"
       << (options_.logs ? fmt::format("  access_log {}/requests ours;\n", at) : "  access_log off;\n")
       << fmt::format("  client_body_temp_path {0}/body; proxy_temp_path {0}/proxy; fastcgi_temp_path {0}/fastcgi;\n",
                      at)
       << fmt::format("  uwsgi_temp_path {0}/uwsgi; scgi_temp_path {0}/scgi;\n", at)
       << "  keepalive_requests 1000000; client_max_body_size 64m; http2_max_concurrent_streams 128;\n  server {\n"
       << fmt::format("    listen 127.0.0.1:{}{}{};\n", port_, tls ? " ssl" : "",
                      tls && options_.http2 ? " http2" : "");
  if (tls) file << fmt::format("    ssl_certificate {}; ssl_certificate_key {};\n", options_.certificate, options_.key);
  if (!options_.client_ca.empty()) {
    file << fmt::format("    ssl_client_certificate {}; ssl_verify_client on;\n", options_.client_ca);
  }
  file << fmt::format("    location / {{ {} }}\n  }}\n}}\n", options_.answer);
}

void NginxServer::start() {
  write_configuration();
  program_.start({binary(), "-p", directory_.path(), "-e", directory_ / "errors", "-c", directory_ / "nginx.conf"},
                 {directory_ / "out", directory_ / "out"});
  const bool up = eventually([&] { return accepts(port_) || !program_.running(); }) && program_.running();
  if (!up) std::fprintf(stderr, "nginx does not start: %s\n", file_text(directory_ / "errors").c_str());
  CHECK(up);
}

std::vector<NginxRequest> NginxServer::requests() const {
  std::vector<NginxRequest> found;
  std::istringstream lines(file_text(directory_ / "requests"));
  for (NginxRequest one; lines >> one.protocol >> one.connection >> one.key;) found.push_back(one);
  return found;
}

}  // namespace holdfast
