// What must be true. Stays on in every build; a false one is a bug, and stops the process where it is: restart and
// recovery is the best-tested path we have.
#pragma once

namespace holdfast {

[[noreturn]] void check_failed(const char* expression, const char* file, int line) noexcept;

}  // namespace holdfast

#define CHECK(expression)                                        \
  do {                                                           \
    if (!(expression)) [[unlikely]]                              \
      ::holdfast::check_failed(#expression, __FILE__, __LINE__); \
  } while (false)
