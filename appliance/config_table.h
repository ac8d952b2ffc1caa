// One table of the configuration file, read key by key: what a key must be is said where it is read, and what is wrong
// with it is said at its line. A key that nobody asked for is unknown, and is complained about when the table is done.
//
// A fault never stops the reading: the value keeps its default, and the findings grow. The only door to toml++.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "appliance/config_finding.h"
#include "appliance/config_rules.h"
#include "spool/clock.h"
#include "spool/field_path.h"

namespace holdfast {

class ConfigTable {
 public:
  using Read = std::function<void(ConfigTable&)>;
  using Texts = std::vector<std::string>;
  using Pairs = std::vector<std::pair<std::string, std::string>>;

  // Hands the whole file to `read`; with a fault of syntax that is what is wrong, and nothing is read.
  static std::optional<Finding> parse(std::string_view text, Findings& findings, const Read& read);

  ConfigTable(const ConfigTable&) = delete;
  ConfigTable& operator=(const ConfigTable&) = delete;
  ~ConfigTable();

  int line() const;
  // Also makes the key a known one.
  bool has(std::string_view key);
  // At the key's own line, or at the table's where there is no such key.
  void complain(std::string_view key, const std::string& text);

  void text(std::string_view key, std::string& into, TextRule rule);
  void required_text(std::string_view key, std::string& into, TextRule rule);
  // `empty`: what is said of a list without entries.
  void texts(std::string_view key, Texts& into, TextRule rule, const char* empty);
  void flag(std::string_view key, bool& into);
  void duration(std::string_view key, Nanoseconds& into, Nanoseconds least, Nanoseconds most);
  void percent(std::string_view key, double& into);
  void field_path(std::string_view key, FieldPath& into);

  template <typename Count>
  void count(std::string_view key, Count& into, std::uint64_t least, std::uint64_t most) {
    if (const auto value = number(key, least, most)) into = static_cast<Count>(*value);
  }
  template <typename Size>
  void bytes(std::string_view key, Size& into, std::uint64_t least, std::uint64_t most) {
    if (const auto value = size(key, least, most)) into = static_cast<Size>(*value);
  }
  // An array of them, in place of what was there.
  void counts(std::string_view key, std::vector<int>& into, int least, int most);
  template <typename Choice>
  void choice(std::string_view key, Choice& into, std::initializer_list<std::pair<std::string_view, Choice>> choices) {
    std::vector<std::string_view> words;
    for (const auto& entry : choices) words.push_back(entry.first);
    if (const auto place = one_of(key, words)) into = (choices.begin() + *place)->second;
  }

  // Without one there is a complaint, and `into` is as it was.
  template <typename Choice>
  void required_choice(std::string_view key, Choice& into,
                       std::initializer_list<std::pair<std::string_view, Choice>> choices) {
    std::string words;
    for (const auto& entry : choices) words += (words.empty() ? "\"" : ", \"") + std::string(entry.first) + '"';
    if (!has(key)) return complain(key, "is missing; must be one of " + words);
    choice(key, into, choices);
  }

  // `[key]`. A required one that is missing is read as an empty one, so that each missing key is named.
  void section(std::string_view key, bool required, const Read& read);
  // `[[key]]`, any number of them.
  void each(std::string_view key, const Read& read);
  // `key = { … }`; false where there is none, or something else stands there.
  bool inner(std::string_view key, const Read& read);
  // `key = { name = "text", … }`, in the order of their names; each of them must pass its rule.
  void pairs(std::string_view key, Pairs& into, TextRule name_rule, TextRule value_rule);

 private:
  struct Inside;
  explicit ConfigTable(std::unique_ptr<Inside> inside);
  std::optional<std::uint64_t> number(std::string_view key, std::uint64_t least, std::uint64_t most);
  std::optional<std::uint64_t> size(std::string_view key, std::uint64_t least, std::uint64_t most);
  std::optional<std::ptrdiff_t> one_of(std::string_view key, const std::vector<std::string_view>& words);

  std::unique_ptr<Inside> inside_;
};

}  // namespace holdfast
