#include "appliance/config_table.h"

#define TOML_EXCEPTIONS 0
// The parser asserts what a damaged file can make false, and with NDEBUG would take it for true. Neither is an answer
// to an operator: the condition is let pass, and the parser's own error follows.
#undef NDEBUG
#define TOML_ASSERT(expression) static_cast<void>(0)
#include <toml++/toml.h>
#include <set>

#include "appliance/config_ascii.h"
#include "appliance/quantity.h"

namespace holdfast {
namespace {

// Sources, targets, routes, subjects of one: more is a mistake, or needs another design.
constexpr std::size_t kMaxListed = 64;

int line_of(const toml::source_region& region) {
  return static_cast<int>(region.begin.line);
}

const char* type_text(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a floating-point number";
    case toml::node_type::boolean:
      return "a boolean";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::table:
      return "a table";
    default:
      return "a date or time";
  }
}

}  // namespace

struct ConfigTable::Inside {
  const toml::table& table;
  std::string name;
  int line = 1;
  Findings& findings;
  std::set<std::string> known = {};

  std::string path(std::string_view key) const {
    return name.empty() ? std::string(key) : name + '.' + std::string(key);
  }
  int line_of_key(std::string_view key) const {
    const auto found = table.find(key);
    return found == table.end() ? line : line_of(found->first.source());
  }
  void complain(std::string_view key, const std::string& text) { findings.error(line_of_key(key), path(key), text); }

  const toml::node* find(std::string_view key) {
    known.insert(std::string(key));
    return table.get(key);
  }

  template <typename T>
  const toml::node* find_typed(std::string_view key, const char* wanted) {
    const toml::node* node = find(key);
    if (node == nullptr || node->is<T>()) return node;
    complain(key, std::string("is ") + type_text(*node) + "; must be " + wanted);
    return nullptr;
  }

  template <typename Parse>
  auto quantity(std::string_view key, const char* wanted, Parse parse) -> decltype(parse(std::string_view())) {
    const toml::node* node = find_typed<std::string>(key, wanted);
    if (node == nullptr) return std::nullopt;
    const std::string& written = **node->as_string();
    auto value = parse(written);
    if (!value) complain(key, '"' + written + "\" is not " + wanted);
    return value;
  }

  // Reads `table`, which stands under `key`.
  void read(const toml::table& inner, std::string_view key, int inner_line, const Read& read_it) {
    ConfigTable in(std::unique_ptr<Inside>(new Inside{inner, path(key), inner_line, findings}));
    read_it(in);
    in.inside_->finish();
  }

  // Complains about every key that nobody asked for.
  void finish() {
    for (const auto& [key, node] : table) {
      if (known.contains(std::string(key.str()))) continue;
      std::string names;
      for (const std::string& one : known) names += (names.empty() ? "" : ", ") + one;
      complain(key.str(),
               "is not a key of " + (name.empty() ? "this file" : '[' + name + ']') + "; known are " + names);
    }
  }
};

ConfigTable::ConfigTable(std::unique_ptr<Inside> inside) : inside_(std::move(inside)) {}

ConfigTable::~ConfigTable() = default;

std::optional<Finding> ConfigTable::parse(std::string_view text, Findings& findings, const Read& read) {
  if (const auto line = line_beyond_ascii(text))
    return Finding{*line, "", "has a character beyond ASCII outside a string or comment of one line"};
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) return Finding{line_of(parsed.error().source()), "", std::string(parsed.error().description())};
  ConfigTable top(std::unique_ptr<Inside>(new Inside{parsed.table(), "", 1, findings}));
  read(top);
  top.inside_->finish();
  return std::nullopt;
}

int ConfigTable::line() const {
  return inside_->line;
}

bool ConfigTable::has(std::string_view key) {
  return inside_->find(key) != nullptr;
}

void ConfigTable::complain(std::string_view key, const std::string& text) {
  inside_->complain(key, text);
}

void ConfigTable::text(std::string_view key, std::string& into, TextRule rule) {
  const toml::node* node = inside_->find_typed<std::string>(key, "a string");
  if (node == nullptr) return;
  into = **node->as_string();
  if (const char* wanted = rule(into)) complain(key, wanted);
}

void ConfigTable::required_text(std::string_view key, std::string& into, TextRule rule) {
  if (!has(key)) return complain(key, "is missing; it has no default");
  text(key, into, rule);
}

void ConfigTable::texts(std::string_view key, Texts& into, TextRule rule, const char* empty) {
  const toml::node* node = inside_->find_typed<toml::array>(key, "an array of strings");
  if (node == nullptr) return;
  const toml::array& array = *node->as_array();
  if (array.empty()) complain(key, empty);
  if (array.size() > kMaxListed) return complain(key, "names more than 64");
  for (const toml::node& entry : array) {
    if (!entry.is_string()) {
      complain(key, std::string("has ") + type_text(entry) + " in it; must be an array of strings");
      continue;
    }
    into.push_back(**entry.as_string());
    if (const char* wanted = rule(into.back())) complain(key, '"' + into.back() + "\" " + wanted);
  }
}

void ConfigTable::counts(std::string_view key, std::vector<int>& into, int least, int most) {
  const toml::node* node = inside_->find_typed<toml::array>(key, "an array of integers");
  if (node == nullptr) return;
  const toml::array& array = *node->as_array();
  if (array.empty()) return complain(key, "is empty; name at least one, or leave the key out");
  if (array.size() > kMaxListed) return complain(key, "names more than 64");
  into.clear();
  for (const toml::node& entry : array) {
    const auto* number = entry.as_integer();
    if (number == nullptr) {
      complain(key, std::string("has ") + type_text(entry) + " in it; must be an array of integers");
    } else if (**number < least || **number > most) {
      complain(key, "must be integers from " + std::to_string(least) + " to " + std::to_string(most));
    } else {
      into.push_back(static_cast<int>(**number));
    }
  }
}

void ConfigTable::flag(std::string_view key, bool& into) {
  if (const toml::node* node = inside_->find_typed<bool>(key, "true or false")) into = **node->as_boolean();
}

void ConfigTable::duration(std::string_view key, Nanoseconds& into, Nanoseconds least, Nanoseconds most) {
  const auto value = inside_->quantity(key, "a duration like \"500ms\" (ms, s, m, h, d)", parse_duration);
  if (!value) return;
  if (*value < least || *value > most)
    return complain(key, "must be from " + duration_text(least) + " to " + duration_text(most));
  into = *value;
}

void ConfigTable::percent(std::string_view key, double& into) {
  const auto value = inside_->quantity(key, "a share like \"1%\"", parse_percent);
  if (value) into = *value;
}

void ConfigTable::field_path(std::string_view key, FieldPath& into) {
  if (!has(key)) return complain(key, "is missing; must name a field, like \"order.id\"");
  const toml::node* node = inside_->find_typed<std::string>(key, "a string");
  if (node == nullptr) return;
  auto path = parse_field_path(**node->as_string());
  if (!path) return complain(key, path.error().text);
  into = std::move(*path);
}

void ConfigTable::section(std::string_view key, bool required, const Read& read) {
  static const toml::table kEmpty;
  const toml::node* node = inside_->find(key);
  if (node == nullptr && required) return inside_->read(kEmpty, key, 1, read);
  if (node == nullptr) return;
  if (!node->is_table())
    return complain(key, std::string("is ") + type_text(*node) + "; must be a table, [" + std::string(key) + "]");
  inside_->read(*node->as_table(), key, line_of(node->source()), read);
}

void ConfigTable::each(std::string_view key, const Read& read) {
  const toml::node* node = inside_->find(key);
  if (node == nullptr) return;
  const std::string wanted = "must be written as [[" + inside_->path(key) + "]]";
  if (!node->is_array()) return complain(key, std::string("is ") + type_text(*node) + "; " + wanted);
  if (node->as_array()->size() > kMaxListed) return complain(key, "has more than 64 entries");
  for (const toml::node& entry : *node->as_array()) {
    if (!entry.is_table()) return complain(key, std::string("has ") + type_text(entry) + " in it; " + wanted);
    inside_->read(*entry.as_table(), key, line_of(entry.source()), read);
  }
}

bool ConfigTable::inner(std::string_view key, const Read& read) {
  const toml::node* node = inside_->find(key);
  if (node == nullptr || !node->is_table()) return false;
  inside_->read(*node->as_table(), key, inside_->line_of_key(key), read);
  return true;
}

void ConfigTable::pairs(std::string_view key, Pairs& into, TextRule name_rule, TextRule value_rule) {
  const toml::node* node = inside_->find_typed<toml::table>(key, "a table of strings, { name = \"text\" }");
  if (node == nullptr) return;
  const toml::table& table = *node->as_table();
  if (table.size() > kMaxListed) return complain(key, "names more than 64");
  inside_->read(table, key, inside_->line_of_key(key), [&](ConfigTable& in) {
    for (const auto& [name, value] : table) {
      const std::string word(name.str());
      if (const char* wanted = name_rule(word)) in.complain(word, wanted);
      std::string text_of_it;
      in.text(word, text_of_it, value_rule);
      into.emplace_back(word, std::move(text_of_it));
    }
  });
}

std::optional<std::uint64_t> ConfigTable::number(std::string_view key, std::uint64_t least, std::uint64_t most) {
  const toml::node* node = inside_->find_typed<std::int64_t>(key, "an integer");
  if (node == nullptr) return std::nullopt;
  const std::int64_t value = **node->as_integer();
  if (value >= 0 && static_cast<std::uint64_t>(value) >= least && static_cast<std::uint64_t>(value) <= most)
    return static_cast<std::uint64_t>(value);
  complain(key, "must be from " + count_text(least) + " to " + count_text(most));
  return std::nullopt;
}

std::optional<std::uint64_t> ConfigTable::size(std::string_view key, std::uint64_t least, std::uint64_t most) {
  const auto value = inside_->quantity(key, "a size like \"64MiB\" (B, KiB, MiB, GiB, TiB)", parse_bytes);
  if (!value) return std::nullopt;
  if (*value >= least && *value <= most) return value;
  complain(key, "must be from " + bytes_text(least) + " to " + bytes_text(most));
  return std::nullopt;
}

std::optional<std::ptrdiff_t> ConfigTable::one_of(std::string_view key, const std::vector<std::string_view>& words) {
  const toml::node* node = inside_->find_typed<std::string>(key, "a string");
  if (node == nullptr) return std::nullopt;
  const std::string& word = **node->as_string();
  std::string names;
  for (std::size_t place = 0; place < words.size(); ++place) {
    if (words[place] == word) return static_cast<std::ptrdiff_t>(place);
    names += (names.empty() ? "\"" : ", \"") + std::string(words[place]) + '"';
  }
  complain(key, '"' + word + "\" is not known; must be one of " + names);
  return std::nullopt;
}

}  // namespace holdfast
