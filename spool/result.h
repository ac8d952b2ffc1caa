// Failures as values. A Result that is not looked at does not compile.
//
// The kind of an Error says what the caller does about it, the text what was tried, on what, and why not. Texts name
// files and configuration, never a subject, key, payload or a peer's words (I7).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "spool/check.h"

namespace holdfast {

enum class ErrorKind : std::uint8_t {
  full,         // no room now: pause the intake, go on settling
  io,           // the disk can no longer be believed: leave, restart, recover (exit 75)
  corrupt,      // the bytes are not what we wrote: set them aside
  unavailable,  // not now: back off and try again
  invalid,      // never: refuse
  not_found,    // is not there: decide
  exists,       // is there already: decide
};
const char* error_kind_text(ErrorKind kind);

struct [[nodiscard]] Error {
  ErrorKind kind;
  std::string text;
};

// "prefix: text", same kind: for saying what it was part of.
Error within(std::string prefix, Error error);

template <typename T = void>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Error error) : state_(std::move(error)) {}

  bool ok() const { return std::holds_alternative<T>(state_); }
  explicit operator bool() const { return ok(); }
  T& operator*() & {
    CHECK(ok());
    return std::get<T>(state_);
  }
  const T& operator*() const& {
    CHECK(ok());
    return std::get<T>(state_);
  }
  // By value: `for (x : *f())` must not walk what is already gone.
  T operator*() && {
    CHECK(ok());
    return std::get<T>(std::move(state_));
  }
  T* operator->() { return &**this; }
  const T* operator->() const { return &**this; }
  const Error& error() const {
    CHECK(!ok());
    return std::get<Error>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    CHECK(!ok());
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

// What was begun and could not be finished was taken back; if not even that can be done this life is over, and the next
// looks at what is there.
template <typename T>
Result<void> undone(const Result<T>& taken_back) {
  if (taken_back.ok()) return {};
  return Error{ErrorKind::io, "what was begun cannot be taken back: " + taken_back.error().text};
}

// A step for which there is no room is left out where a full disk is a state, not a failure (R29).
template <typename T>
Result<void> unless_full(const Result<T>& result) {
  if (result.ok() || result.error().kind == ErrorKind::full) return {};
  return result.error();
}

// Leave early with the error of an expression that yields a Result<void>.
#define HOLDFAST_TRY(expression)                                                        \
  do {                                                                                  \
    if (auto try_result_ = (expression); !try_result_.ok()) return try_result_.error(); \
  } while (false)

}  // namespace holdfast
