// Certificates for tests of TLS, made with the openssl command.
#pragma once

#include <string>

#include "tests/support/temporary_directory.h"

namespace holdfast {

// A CA, and what it has signed.
class CertificateAuthority {
 public:
  CertificateAuthority();
  const std::string& ca() const { return ca_; }

  struct Pair {
    std::string certificate;
    std::string key;
  };
  // `names`: as openssl has them, "DNS:localhost,IP:127.0.0.1".
  // `days` from now; a negative number of them has expired.
  Pair issue(const std::string& file_name, const std::string& names, int days = 30);

 private:
  TemporaryDirectory directory_;
  std::string ca_;
  std::string key_;
};

}  // namespace holdfast
