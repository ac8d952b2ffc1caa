// A JSON value: what a command answers with, and what travels over the control socket. The library that reads and
// writes the text stays in json.cc.
//
// Looking for what is not there, or is of another kind, yields nothing special: null, 0, "", an empty list. So a reader
// is a straight list of fields, as with ByteReader.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace holdfast {

class Json {
 public:
  using List = std::vector<Json>;
  using Fields = std::vector<std::pair<std::string, Json>>;  // in the order they were set

  Json() = default;
  Json(bool value) : value_(value) {}
  Json(int value) : value_(std::int64_t{value}) {}
  Json(std::int64_t value) : value_(value) {}
  Json(std::uint64_t value) : value_(value) {}
  Json(double value) : value_(value) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(List value) : value_(std::move(value)) {}
  Json(Fields value) : value_(std::move(value)) {}

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_fields() const { return std::holds_alternative<Fields>(value_); }
  bool is_list() const { return std::holds_alternative<List>(value_); }
  bool is_flag() const { return std::holds_alternative<bool>(value_); }
  bool is_text() const { return std::holds_alternative<std::string>(value_); }

  bool flag() const;
  std::uint64_t count() const;  // of a whole number that is not negative
  double number() const;
  const std::string& text() const;
  const List& list() const;
  const Fields& fields() const;
  const Json& operator[](std::string_view name) const;

  void set(std::string name, Json value);  // makes it fields; a name set twice keeps its place
  void add(Json value);                    // makes it a list

 private:
  friend struct JsonText;
  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, List, Fields> value_;
};

// On one line. Bytes that are not UTF-8 become U+FFFD.
std::string json_text(const Json& value);
// Indented, for a human.
std::string pretty_json_text(const Json& value);
// Nothing when it is not JSON, or nested deeper than 32.
std::optional<Json> parse_json(std::string_view text);

}  // namespace holdfast
