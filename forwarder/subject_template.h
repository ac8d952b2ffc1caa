// A subject or key that is made of what a record is: "site.{site}.{subject}". Pure.
//
// Variables: {subject} as it came, {site} of the configuration, {stream} of the source, {key} the wire key, {1} to {99}
// the tokens of the subject. Everything else stands for itself; a brace stands in no text. Values are put in as they
// are: a {subject} of three tokens makes three, and two records may well get one name ("all.{1}" of any two with one
// first token), which is what a template is for.
//
// A template that is parsed is one that can give a name; whether what it gives for a record may be used is for the
// caller to say.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "forwarder/target.h"

namespace holdfast {

class SubjectTemplate {
 public:
  // Nothing: an unknown variable, an open brace, no text at all.
  static std::optional<SubjectTemplate> parse(std::string_view text);

  // What it gives when every variable is one letter: for looking at what stands between them.
  std::string shape() const;

  // Nothing when one of its variables has no value in this record (too few tokens, no stream).
  std::optional<std::string> render(const Delivery& delivery, std::string_view site) const;

 private:
  enum class Variable : std::uint8_t { none, subject, site, stream, key, token };
  struct Part {
    std::string text;  // before the variable
    Variable variable = Variable::none;
    std::size_t token = 0;  // the first is 1
  };
  static std::optional<Part> variable_named(std::string_view name);

  std::vector<Part> parts_;
};

}  // namespace holdfast
