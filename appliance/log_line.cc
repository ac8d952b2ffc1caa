#include "appliance/log_line.h"

#include <fmt/format.h>

#include "appliance/quantity.h"

namespace holdfast {
namespace {

constexpr std::size_t kMaxWords = 512;  // of one field

const char* level_text(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return "debug";
    case LogLevel::info:
      return "info";
    case LogLevel::warning:
      return "warning";
    case LogLevel::error:
      return "error";
  }
  return "error";
}

// As in syslog(3).
int journal_priority(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return 7;
    case LogLevel::info:
      return 6;
    case LogLevel::warning:
      return 4;
    case LogLevel::error:
      return 3;
  }
  return 3;
}

// Printable ASCII as it is, the rest as a question mark: a file's name may hold anything.
std::string tame(std::string_view words) {
  std::string tamed(words.substr(0, kMaxWords));
  for (char& c : tamed)
    if (c < ' ' || c > '~') c = '?';
  return tamed;
}

std::string in_quotes(std::string_view words) {
  std::string out = "\"";
  for (const char c : tame(words)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string value_text(const LogField& field, bool json) {
  if (const auto* number = std::get_if<std::uint64_t>(&field.value())) return std::to_string(*number);
  if (const auto* number = std::get_if<std::int64_t>(&field.value())) return std::to_string(*number);
  const std::string& words = std::get<std::string>(field.value());
  const bool plain = !json && !words.empty() && words.find_first_of(" \"=\\") == std::string::npos;
  return plain ? tame(words) : in_quotes(words);
}

std::string json_line(LogLevel level, std::int64_t wall_ns, Fixed text, LogFields fields) {
  std::string line = fmt::format(R"({{"time":"{}","level":"{}","text":{})", wall_text(wall_ns), level_text(level),
                                 in_quotes(text.text));
  for (const LogField& field : fields) line += fmt::format(",\"{}\":{}", field.name(), value_text(field, true));
  return line + '}';
}

}  // namespace

LogField::LogField(Fixed name, Nanoseconds value)
    : name_(name.text), value_(fmt::format("{:.3f}s", std::chrono::duration<double>(value).count())) {}

std::string render_line(LineForm form, LogLevel level, std::int64_t wall_ns, Fixed text, LogFields fields) {
  if (form == LineForm::json) return json_line(level, wall_ns, text, fields);
  std::string line = form == LineForm::journal
                         ? fmt::format("<{}>{}", journal_priority(level), text.text)
                         : fmt::format("{} {:7} {}", wall_text(wall_ns), level_text(level), text.text);
  for (const LogField& field : fields) line += fmt::format(" {}={}", field.name(), value_text(field, false));
  return line;
}

RepeatLimit::Admission RepeatLimit::admit(Nanoseconds now, Fixed text, LogFields fields) {
  std::string name = text.text;
  for (const LogField& field : fields)
    if (const auto* words = std::get_if<std::string>(&field.value())) name += '\n' + *words;
  if (kinds_.size() >= kKinds && !kinds_.contains(name)) kinds_.clear();
  Kind& kind = kinds_[name];
  if (kind.said == 0 || now - kind.window_began >= kWindow) {
    kind.window_began = now;
    kind.said = 0;
  }
  if (kind.said >= kBurst) {
    ++kind.held_back;
    return {false, 0};
  }
  ++kind.said;
  return {true, std::exchange(kind.held_back, 0)};
}

}  // namespace holdfast
