#include "spool/life.h"

#include <utility>

namespace holdfast {
namespace {

constexpr std::size_t kMaxNotices = 32;

}  // namespace

std::optional<Error> Life::over() const {
  const std::lock_guard lock(mutex_);
  return over_;
}

// The first `io` is the last of this life: nothing is tried again (R8).
Error Life::fail(Error error) {
  // A corrupt index is set aside by the next life, which builds another.
  if (error.kind == ErrorKind::corrupt || error.kind == ErrorKind::invalid) error.kind = ErrorKind::io;
  if (error.kind == ErrorKind::not_found || error.kind == ErrorKind::exists) error.kind = ErrorKind::io;
  if (error.kind != ErrorKind::io) return error;
  const std::lock_guard lock(mutex_);
  if (!over_) over_ = std::move(error);
  return *over_;
}

void Life::end(Error last_word) {
  const std::lock_guard lock(mutex_);
  over_ = std::move(last_word);
}

void Life::notice(std::string text) {
  const std::lock_guard lock(mutex_);
  if (notices_.size() < kMaxNotices) notices_.push_back(std::move(text));
}

std::vector<std::string> Life::notices() const {
  const std::lock_guard lock(mutex_);
  return notices_;
}

}  // namespace holdfast
