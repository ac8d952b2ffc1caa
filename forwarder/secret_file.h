// A secret of one line in a file, read again when the file was renewed: a token, a login.
//
// Threads: one. Errors are `unavailable` and begin with "file_unusable"; they name the file and never what is in it.
#pragma once

#include <string>

#include "forwarder/file_stamp.h"
#include "spool/result.h"

namespace holdfast {

class SecretFile {
 public:
  explicit SecretFile(std::string path) : path_(std::move(path)) {}
  ~SecretFile();
  SecretFile(const SecretFile&) = delete;
  SecretFile& operator=(const SecretFile&) = delete;

  bool is_named() const { return !path_.empty(); }
  // Without the end of its line. Printable ASCII, at least one character; good until the next call.
  Result<std::string_view> read();

 private:
  void forget();
  const std::string path_;
  FileStamp stamp_;
  std::string text_;
};

}  // namespace holdfast
