#include "spool/result.h"

#include <cstdio>
#include <cstdlib>

namespace holdfast {

const char* error_kind_text(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::full:
      return "full";
    case ErrorKind::io:
      return "io";
    case ErrorKind::corrupt:
      return "corrupt";
    case ErrorKind::unavailable:
      return "unavailable";
    case ErrorKind::invalid:
      return "invalid";
    case ErrorKind::not_found:
      return "not_found";
    case ErrorKind::exists:
      return "exists";
  }
  return "unknown";
}

Error within(std::string prefix, Error error) {
  return {error.kind, std::move(prefix) + ": " + error.text};
}

void check_failed(const char* expression, const char* file, int line) noexcept {
  std::fprintf(stderr, "holdfast: %s:%d: this must be true and is not: %s\n", file, line, expression);
  std::abort();
}

}  // namespace holdfast
