// Whether this life of the spool goes on, and what it has found that an operator should be told.
//
// The first `io` is the last word: it is what every later call says, nothing is tried again (I4, R8). Threads: any; it
// locks for itself, and nothing is locked while it does.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "spool/result.h"

namespace holdfast {

class Life {
 public:
  // Why this life is over; nothing: it goes on.
  std::optional<Error> over() const;
  // An error that ends this life is remembered; returns what the caller returns.
  Error fail(Error error);
  Result<void> checked(Result<void> result) { return result.ok() ? result : Result<void>(fail(result.error())); }
  void end(Error last_word);

  // The first ones are kept, so many that a status can be read.
  void notice(std::string text);
  std::vector<std::string> notices() const;

 private:
  mutable std::mutex mutex_;
  std::optional<Error> over_;
  std::vector<std::string> notices_;
};

}  // namespace holdfast
