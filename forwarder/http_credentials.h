// What an HTTP request is let in by: a token or a login of the server's, a login of the proxy's, each in a file of its
// own and read again when it was renewed.
//
// Threads: one.
#pragma once

#include <string>
#include <vector>

#include "forwarder/secret_file.h"
#include "spool/envelope.h"

namespace holdfast {

struct HttpSecrets {
  std::vector<Header> headers;
  std::string proxy_login;
};

class HttpCredentials {
 public:
  // Paths; empty: none.
  HttpCredentials(std::string bearer_file, std::string basic_file, std::string proxy_login_file);

  // As the files have them now; `unavailable` ("file_unusable") when one that is named cannot be used.
  Result<HttpSecrets> read();

 private:
  SecretFile bearer_;
  SecretFile basic_;
  SecretFile proxy_login_;
};

}  // namespace holdfast
