#include "appliance/key_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "crypto/key_slot.h"
#include "spool/path.h"

namespace holdfast {
namespace {

constexpr std::size_t kMaxKeyFile = 256;  // a key file has 80 bytes

// Closed when it goes.
class OpenFile {
 public:
  OpenFile(const char* path, int flags, mode_t mode = 0) : fd_(::open(path, flags | O_CLOEXEC, mode)) {}
  ~OpenFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

Error refuse(const std::string& path, const std::string& why) {
  return {ErrorKind::invalid, "key file " + path + ' ' + why};
}

Error system_error(const char* tried, const std::string& path) {
  const ErrorKind kind = errno == ENOENT   ? ErrorKind::not_found
                         : errno == EEXIST ? ErrorKind::exists
                                           : ErrorKind::invalid;
  return {kind, std::string("cannot ") + tried + " key file " + path + ": " + std::strerror(errno)};
}

enum class Kept { as_file, as_credential };

// Why the file is not kept as a key must be; nothing when it is.
std::optional<std::string> objection(const struct stat& facts, Kept kept, uid_t also_owner) {
  if (!S_ISREG(facts.st_mode)) return "is not a regular file";
  // The service manager lets the service in with an access list, which shows as a group permission.
  if (kept == Kept::as_credential) return std::nullopt;
  if ((facts.st_mode & 077) != 0)
    return "can be read or written by others; chmod 0600 it, and think about who may have copied it";
  if (facts.st_uid != 0 && facts.st_uid != ::geteuid() && facts.st_uid != also_owner)
    return "belongs to user id " + std::to_string(facts.st_uid) + "; it must belong to root or to the service's user";
  return std::nullopt;
}

Result<SecretKey> read_key_at(const std::string& path, Kept kept, uid_t also_owner) {
  const OpenFile file(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (file.fd() < 0 && errno == ELOOP) return refuse(path, "is a symbolic link; name the file itself");
  if (file.fd() < 0) return system_error("open", path);
  struct stat facts {};
  if (::fstat(file.fd(), &facts) != 0) return system_error("look at", path);
  if (const auto why = objection(facts, kept, also_owner)) return refuse(path, *why);

  std::array<std::uint8_t, kMaxKeyFile> text{};
  const ssize_t got = ::read(file.fd(), text.data(), text.size());
  std::optional<SecretKey> key;
  if (got > 0) key = parse_key_file(as_text(ByteView(text).first(static_cast<std::size_t>(got))));
  wipe(text);
  if (got < 0) return system_error("read", path);
  if (!key) return refuse(path, "does not hold a key; `holdfast keygen` makes one");
  return std::move(*key);
}

Result<void> write_whole(const OpenFile& file, ByteView bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(file.fd(), bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return system_error("write", path);
    bytes = bytes.subspan(static_cast<std::size_t>(wrote));
  }
  // A power cut after this must not leave a spool that was begun and no key for it.
  if (::fsync(file.fd()) != 0) return system_error("sync", path);
  const std::string parent = path.find('/') == std::string::npos ? "."
                             : parent_path(path).empty()         ? "/"
                                                                 : parent_path(path);
  const OpenFile directory(parent.c_str(), O_RDONLY | O_DIRECTORY);
  if (directory.fd() < 0 || ::fsync(directory.fd()) != 0) return system_error("sync the directory of", path);
  return {};
}

}  // namespace

Result<SecretKey> read_key(const KeyPlace& place, uid_t also_owner) {
  if (place.credential.empty()) return read_key_at(place.file, Kept::as_file, also_owner);
  const char* directory = std::getenv("CREDENTIALS_DIRECTORY");
  if (directory == nullptr || *directory != '/')
    return Error{ErrorKind::not_found, "the key is the systemd credential " + place.credential +
                                           ", which only the service is given; use --key-file to name a copy of it"};
  return read_key_at(std::string(directory) + '/' + place.credential, Kept::as_credential, also_owner);
}

Result<std::string> make_key_file(const std::string& path) {
  const OpenFile file(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (file.fd() < 0 && errno == EEXIST)
    return Error{ErrorKind::exists, path + " is there already and will not be overwritten: a spool may need it"};
  if (file.fd() < 0) return system_error("make", path);
  const SecretKey key = SecretKey::random();
  Bytes text;
  render_key_file(key, text);
  const Result<void> written = write_whole(file, text, path);
  wipe(text);
  if (written.ok()) return key.id();
  ::unlink(path.c_str());
  return written.error();
}

}  // namespace holdfast
