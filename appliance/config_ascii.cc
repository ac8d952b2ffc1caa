#include "appliance/config_ascii.h"

#include <algorithm>
#include <string>

namespace holdfast {
namespace {

constexpr std::string_view kBare = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

class AsciiRule {
 public:
  explicit AsciiRule(std::string_view text) : text_(text) {}

  // The line of the first character that breaks it.
  std::optional<int> broken_at() const {
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    std::size_t at = text_.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
    while (at < text_.size()) {
      const bool string = begins_string(at);
      const bool of_several_lines = string && text_.substr(at).starts_with(std::string(3, text_[at]));
      const std::size_t next = of_several_lines   ? end_of_lines(at)
                               : string           ? end_of_string(at)
                               : text_[at] == '#' ? std::min(text_.find('\n', at), text_.size())
                                                  : at + 1;
      const bool must_be_ascii = of_several_lines || next == at + 1;
      for (; at < next; ++at) {
        if (must_be_ascii && static_cast<unsigned char>(text_[at]) >= 0x80)
          return 1 + static_cast<int>(std::ranges::count(text_.substr(0, at), '\n'));
      }
    }
    return std::nullopt;
  }

 private:
  // A quote elsewhere is part of what stands before it, a mistake that the parser names: it reads a number, say, to the
  // next space, whatever is in it. What may stand directly before a string: `[`, `{`, `=`, `key=`, `{key=`.
  bool begins_string(std::size_t at) const {
    constexpr std::string_view kEnds = " \t\r\n,]}#", kOpens = "[{";
    constexpr std::size_t kLongest = 256;
    if (text_[at] != '"' && text_[at] != '\'') return false;
    std::size_t begin = at;
    while (begin > 0 && at - begin < kLongest && kEnds.find(text_[begin - 1]) == std::string_view::npos) --begin;
    if (at - begin == kLongest) return false;
    std::string_view before = text_.substr(begin, at - begin);
    const auto only_opens = [&] { return before.find_first_not_of(kOpens) == std::string_view::npos; };
    const bool after_key = before.starts_with('=');
    if (after_key) before.remove_prefix(1);
    if (only_opens()) return true;
    const bool in_braces = before.starts_with('{');
    if (in_braces) before.remove_prefix(1);
    const std::size_t key = before.find_first_not_of(kBare);
    if (key == 0 || key == std::string_view::npos || before[key] != '=') return false;
    before.remove_prefix(key + 1);
    return only_opens() && (in_braces || (!after_key && begins_line(begin)));
  }

  // Or an entry of a table in braces.
  bool begins_line(std::size_t at) const {
    while (at > 0 && (text_[at - 1] == ' ' || text_[at - 1] == '\t')) --at;
    return at == 0 || text_[at - 1] == '\n' || text_[at - 1] == ',' || text_[at - 1] == '{';
  }

  // Its line does where it has no end (TOML 1.0.0, "String").
  std::size_t end_of_string(std::size_t at) const {
    const char quote = text_[at];
    for (++at; at < text_.size() && text_[at] != quote && text_[at] != '\n'; ++at) {
      if (quote == '"' && text_[at] == '\\' && !text_.substr(at + 1).starts_with('\n')) ++at;
    }
    return std::min(at + 1, text_.size());
  }

  std::size_t end_of_lines(std::size_t at) const {
    const std::string quotes(3, text_[at]);
    for (at += 3; at < text_.size() && !text_.substr(at).starts_with(quotes); ++at) {
      if (quotes[0] == '"' && text_[at] == '\\') ++at;
    }
    return std::min(at + 3, text_.size());
  }

  const std::string_view text_;
};

}  // namespace

std::optional<int> line_beyond_ascii(std::string_view text) {
  return AsciiRule(text).broken_at();
}

}  // namespace holdfast
