#include "forwarder/s3_credentials.h"

#include <string.h>

#include <algorithm>
#include <fstream>

namespace holdfast {
namespace {

constexpr std::size_t kMost = 256u << 10;  // of a file: many profiles, and tokens of some KiB

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return trimmed(line);
}

std::string* field_of(S3Credentials& credentials, std::string_view name) {
  if (name == "aws_access_key_id") return &credentials.access_key;
  if (name == "aws_secret_access_key") return &credentials.secret;
  if (name == "aws_session_token") return &credentials.token;
  return nullptr;
}

bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
}

// The key's own separators in the Authorization header.
bool is_access_key(std::string_view text) {
  return !text.empty() && is_printable(text) && text.find_first_of("/,") == std::string_view::npos;
}

void wipe_text(std::string& text) {
  ::explicit_bzero(text.data(), text.size());
  text.clear();
}

}  // namespace

std::optional<S3Credentials> parse_s3_credentials(std::string_view text, std::string_view profile) {
  S3Credentials found;
  bool inside = false;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.front() == '[') {
      inside = line.back() == ']' && trimmed(line.substr(1, line.size() - 2)) == profile;
      continue;
    }
    const std::size_t equals = line.find('=');
    if (!inside || equals == std::string_view::npos) continue;
    std::string* field = field_of(found, trimmed(line.substr(0, equals)));
    if (field != nullptr) *field = trimmed(line.substr(equals + 1));
  }
  const bool usable = is_access_key(found.access_key) && !found.secret.empty() && is_printable(found.secret) &&
                      is_printable(found.token);
  return usable ? std::optional(std::move(found)) : std::nullopt;
}

void S3CredentialsFile::forget() {
  wipe_text(credentials_.access_key);
  wipe_text(credentials_.secret);
  wipe_text(credentials_.token);
  stamp_ = {};
}

Result<void> S3CredentialsFile::refresh() {
  const FileStamp stamp = file_stamp(path_);
  if (stamp != FileStamp() && stamp == stamp_) return {};
  forget();
  std::string text(kMost, '\0');
  std::ifstream file(path_, std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  const auto size = static_cast<std::size_t>(file.gcount());
  auto parsed = parse_s3_credentials(std::string_view(text).substr(0, size), profile_);
  wipe_text(text);
  if (!parsed) {
    return Error{ErrorKind::unavailable,
                 "file_unusable: " + path_ + " cannot be read, or holds no credentials for the profile"};
  }
  credentials_ = *std::move(parsed);
  stamp_ = stamp;
  return {};
}

}  // namespace holdfast
