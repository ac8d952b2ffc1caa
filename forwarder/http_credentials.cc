#include "forwarder/http_credentials.h"

#include "crypto/text.h"

namespace holdfast {

HttpCredentials::HttpCredentials(std::string bearer_file, std::string basic_file, std::string proxy_login_file)
    : bearer_(std::move(bearer_file)), basic_(std::move(basic_file)), proxy_login_(std::move(proxy_login_file)) {}

Result<HttpSecrets> HttpCredentials::read() {
  HttpSecrets secrets;
  if (bearer_.is_named()) {
    const auto token = bearer_.read();
    if (!token.ok()) return token.error();
    secrets.headers.push_back({"Authorization", "Bearer " + std::string(*token)});
  }
  if (basic_.is_named()) {
    const auto login = basic_.read();
    if (!login.ok()) return login.error();
    secrets.headers.push_back({"Authorization", "Basic " + to_base64(as_bytes(*login))});
  }
  if (proxy_login_.is_named()) {
    const auto login = proxy_login_.read();
    if (!login.ok()) return login.error();
    secrets.proxy_login = std::string(*login);
  }
  return secrets;
}

}  // namespace holdfast
