// Who an S3 target is: a profile of a credentials file as AWS's own tools write it.
//
//     [default]
//     aws_access_key_id = AKIAIOSFODNN7EXAMPLE
//     aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY
//     aws_session_token = ...            # where they are temporary
//
// Read again when the file was renewed: whoever renews a token replaces the file, and nothing is restarted.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "forwarder/file_stamp.h"
#include "spool/result.h"

namespace holdfast {

struct S3Credentials {
  std::string access_key;
  std::string secret;
  std::string token;  // none: they are not temporary
};

// Nothing: there is no such profile, it lacks a key or its secret, or one of them holds what no header can carry. Lines
// that begin with '#' or ';' are remarks; names that are not known are passed over. Pure.
std::optional<S3Credentials> parse_s3_credentials(std::string_view text, std::string_view profile);

// Threads: one. Errors are `unavailable` and begin with "file_unusable"; they name the file and never what is in it.
class S3CredentialsFile {
 public:
  S3CredentialsFile(std::string path, std::string profile) : path_(std::move(path)), profile_(std::move(profile)) {}
  ~S3CredentialsFile() { forget(); }
  S3CredentialsFile(const S3CredentialsFile&) = delete;
  S3CredentialsFile& operator=(const S3CredentialsFile&) = delete;

  // After an ok, credentials() are those of the file.
  Result<void> refresh();
  const S3Credentials& credentials() const { return credentials_; }

 private:
  void forget();
  const std::string path_;
  const std::string profile_;
  FileStamp stamp_;
  S3Credentials credentials_;
};

}  // namespace holdfast
