#include "tests/support/certificates.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

#include "spool/check.h"

namespace holdfast {
namespace {

void run(const std::string& command) {
  CHECK(std::system((command + " >/dev/null 2>&1").c_str()) == 0);
}

}  // namespace

CertificateAuthority::CertificateAuthority() : ca_(directory_ / "ca.pem"), key_(directory_ / "ca.key") {
  run(
      fmt::format("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30"
                  " -subj /CN=test-ca -keyout {} -out {}",
                  key_, ca_));
}

CertificateAuthority::Pair CertificateAuthority::issue(const std::string& file_name, const std::string& names,
                                                       int days) {
  const Pair pair{directory_ / (file_name + ".pem"), directory_ / (file_name + ".key")};
  const std::string request = directory_ / (file_name + ".csr");
  const std::string extension = directory_ / (file_name + ".ext");
  std::ofstream(extension) << "subjectAltName=" << names << "\nextendedKeyUsage=serverAuth,clientAuth\n";
  run(fmt::format("openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN={} -keyout {} -out {}",
                  file_name, pair.key, request));
  run(fmt::format("openssl x509 -req -in {} -CA {} -CAkey {} -CAcreateserial -days {} -extfile {} -out {}", request,
                  ca_, key_, days, extension, pair.certificate));
  return pair;
}

}  // namespace holdfast
