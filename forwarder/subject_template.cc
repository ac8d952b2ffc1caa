#include "forwarder/subject_template.h"

#include "crypto/text.h"

namespace holdfast {
namespace {

constexpr std::size_t kMostTokens = 99;

std::string_view token_of(std::string_view subject, std::size_t wanted) {
  for (std::size_t n = 1;; ++n) {
    const std::size_t dot = subject.find('.');
    if (n == wanted) return subject.substr(0, dot);
    if (dot == std::string_view::npos) return {};
    subject.remove_prefix(dot + 1);
  }
}

}  // namespace

std::optional<SubjectTemplate::Part> SubjectTemplate::variable_named(std::string_view name) {
  if (name == "subject") return Part{{}, Variable::subject, 0};
  if (name == "site") return Part{{}, Variable::site, 0};
  if (name == "stream") return Part{{}, Variable::stream, 0};
  if (name == "key") return Part{{}, Variable::key, 0};
  const auto token = parse_decimal<std::size_t>(name);
  if (!token || *token == 0 || *token > kMostTokens || name.front() == '0') return std::nullopt;
  return Part{{}, Variable::token, *token};
}

std::optional<SubjectTemplate> SubjectTemplate::parse(std::string_view text) {
  SubjectTemplate made;
  while (!text.empty()) {
    const std::size_t open = text.find('{');
    const std::string_view before = text.substr(0, open);
    if (before.find('}') != std::string_view::npos) return std::nullopt;
    if (open == std::string_view::npos) {
      made.parts_.push_back({std::string(before), Variable::none, 0});
      break;
    }
    const std::size_t close = text.find('}', open);
    if (close == std::string_view::npos) return std::nullopt;
    auto part = variable_named(text.substr(open + 1, close - open - 1));
    if (!part) return std::nullopt;
    part->text = before;
    made.parts_.push_back(*std::move(part));
    text.remove_prefix(close + 1);
  }
  if (made.parts_.empty()) return std::nullopt;
  return made;
}

std::string SubjectTemplate::shape() const {
  std::string made;
  for (const Part& part : parts_) {
    made.append(part.text);
    if (part.variable != Variable::none) made.push_back('x');
  }
  return made;
}

std::optional<std::string> SubjectTemplate::render(const Delivery& delivery, std::string_view site) const {
  const Envelope& envelope = delivery.record->envelope;
  std::string made;
  for (const Part& part : parts_) {
    made.append(part.text);
    std::string_view value;
    switch (part.variable) {
      case Variable::none:
        continue;
      case Variable::subject:
        value = envelope.subject;
        break;
      case Variable::site:
        value = site;
        break;
      case Variable::stream:
        value = envelope.origin.stream;
        break;
      case Variable::key:
        value = delivery.wire_key;
        break;
      case Variable::token:
        value = token_of(envelope.subject, part.token);
        break;
    }
    if (value.empty()) return std::nullopt;
    made.append(value);
  }
  return made;
}

}  // namespace holdfast
