// One line of the log, as a value: a fixed text of ours, and fields whose types leave no room for what must never be
// logged (I7). Pure.
//
// There is no way to put a plain string into a field. A subject, a key, a payload, a peer's words have nowhere to go; a
// name from the configuration and a text of ours have types of their own, so that a reviewer sees the choice.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <variant>

#include "appliance/config.h"
#include "crypto/digest.h"
#include "spool/clock.h"
#include "spool/result.h"

namespace holdfast {

// A text that is written in the source code.
struct Fixed {
  consteval Fixed(const char* written) : text(written) {}
  const char* text;
};

// The name of a source, a target, a file, as the configuration or the operator gave it.
struct ConfigName {
  std::string_view value;
};

// A text that was put together by us from fixed words, numbers, files and configuration (spool/result.h has the rule).
struct OwnWords {
  std::string_view value;
};

class LogField {
 public:
  template <std::unsigned_integral Number>
  requires(!std::same_as<Number, bool>) LogField(Fixed name, Number value)
      : name_(name.text), value_(std::uint64_t{value}) {}
  LogField(Fixed name, std::signed_integral auto value) : name_(name.text), value_(std::int64_t{value}) {}
  LogField(Fixed name, std::same_as<bool> auto value) : name_(name.text), value_(std::string(value ? "yes" : "no")) {}
  LogField(Fixed name, Fixed value) : name_(name.text), value_(std::string(value.text)) {}
  LogField(Fixed name, ConfigName value) : name_(name.text), value_(std::string(value.value)) {}
  LogField(Fixed name, OwnWords value) : name_(name.text), value_(std::string(value.value)) {}
  LogField(Fixed name, const RecordId& value) : name_(name.text), value_(value.short_hex()) {}
  LogField(Fixed name, const Error& value) : name_(name.text), value_(value.text) {}
  LogField(Fixed name, Nanoseconds value);

  const char* name() const { return name_; }
  const std::variant<std::uint64_t, std::int64_t, std::string>& value() const { return value_; }

 private:
  const char* name_;
  std::variant<std::uint64_t, std::int64_t, std::string> value_;
};
using LogFields = std::initializer_list<LogField>;

enum class LineForm : std::uint8_t { journal, text, json };  // journal: "<6>" in front, no time of its own

// Without a newline, whatever is in it; bounded.
std::string render_line(LineForm form, LogLevel level, std::int64_t wall_ns, Fixed text, LogFields fields);

// Lets the first lines of a kind through, holds back the rest of that minute, and says with the next how many those
// were. A kind is the text and the fields that are words: the same complaint about another target is another kind.
class RepeatLimit {
 public:
  static constexpr std::uint32_t kBurst = 5;
  static constexpr Nanoseconds kWindow = std::chrono::minutes(1);
  static constexpr std::size_t kKinds = 256;

  struct Admission {
    bool admitted = true;
    std::uint64_t held_back = 0;  // lines of this kind since the last that was let through
  };
  Admission admit(Nanoseconds now, Fixed text, LogFields fields);

 private:
  struct Kind {
    Nanoseconds window_began{0};
    std::uint32_t said = 0;
    std::uint64_t held_back = 0;
  };
  std::map<std::string, Kind> kinds_;
};

}  // namespace holdfast
