#include "forwarder/secret_file.h"

#include <string.h>
#include <algorithm>
#include <fstream>

namespace holdfast {
namespace {

constexpr std::size_t kMost = 16u << 10;  // what servers take for a header, with room to spare

}  // namespace

SecretFile::~SecretFile() {
  forget();
}

void SecretFile::forget() {
  ::explicit_bzero(text_.data(), text_.size());
  text_.clear();
}

Result<std::string_view> SecretFile::read() {
  const FileStamp stamp = file_stamp(path_);
  if (stamp != FileStamp() && stamp == stamp_) return std::string_view(text_);
  forget();
  stamp_ = {};
  text_.resize(kMost + 1);
  std::ifstream file(path_, std::ios::binary);
  file.read(text_.data(), static_cast<std::streamsize>(text_.size()));
  text_.resize(static_cast<std::size_t>(file.gcount()));
  const bool too_long = text_.size() > kMost;
  while (!text_.empty() && (text_.back() == '\n' || text_.back() == '\r')) text_.pop_back();
  const bool printable = std::ranges::all_of(text_, [](char c) { return c >= 0x20 && c < 0x7f; });
  if (text_.empty() || too_long || !printable) {
    forget();
    return Error{ErrorKind::unavailable, "file_unusable: " + path_ + " cannot be read, or holds no line of its kind"};
  }
  stamp_ = stamp;
  return std::string_view(text_);
}

}  // namespace holdfast
