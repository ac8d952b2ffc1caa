#include "spool/subject.h"

#include <cstddef>

namespace holdfast {
namespace {

// Walks the tokens between the dots. "" has one empty token, as "a." has two.
class Tokens {
 public:
  explicit Tokens(std::string_view subject) : rest_(subject) {}

  bool next(std::string_view& token) {
    if (at_end_) return false;
    const std::size_t dot = rest_.find('.');
    token = rest_.substr(0, dot);
    at_end_ = dot == std::string_view::npos;
    if (!at_end_) rest_.remove_prefix(dot + 1);
    return true;
  }
  bool at_end() const { return at_end_; }

 private:
  std::string_view rest_;
  bool at_end_ = false;
};

bool is_wildcard(std::string_view token) {
  return token == "*" || token == ">";
}

// Space and all control characters; what is above 0x7F is left to the server, which lets it pass.
bool valid_token(std::string_view token) {
  for (const char c : token) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte == 0x7f) return false;
  }
  return !token.empty();
}

}  // namespace

bool valid_subject(std::string_view subject) {
  Tokens tokens(subject);
  std::string_view token;
  while (tokens.next(token)) {
    if (!valid_token(token) || is_wildcard(token)) return false;
  }
  return true;
}

bool valid_pattern(std::string_view pattern) {
  Tokens tokens(pattern);
  std::string_view token;
  while (tokens.next(token)) {
    if (!valid_token(token)) return false;
    if (token == ">" && !tokens.at_end()) return false;
    // "temp*" is a literal to the server and a prefix to who writes it: nobody means what it does.
    if (!is_wildcard(token) && token.find_first_of("*>") != std::string_view::npos) return false;
  }
  return true;
}

bool subject_matches(std::string_view pattern, std::string_view subject) {
  Tokens wanted(pattern);
  Tokens given(subject);
  std::string_view want;
  std::string_view have;
  while (wanted.next(want)) {
    if (!given.next(have)) return false;
    if (want == ">" && wanted.at_end()) return true;
    if (want != "*" && want != have) return false;
  }
  return given.at_end();
}

bool patterns_overlap(std::string_view a, std::string_view b) {
  Tokens left(a);
  Tokens right(b);
  std::string_view l;
  std::string_view r;
  while (left.next(l)) {
    if (!right.next(r)) return false;
    if ((l == ">" && left.at_end()) || (r == ">" && right.at_end())) return true;
    if (l != "*" && r != "*" && l != r) return false;
  }
  return right.at_end();
}

}  // namespace holdfast
