#include "appliance/json.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cmath>

#include "crypto/text.h"

namespace holdfast {
namespace {

constexpr std::size_t kMaxDepth = 32;

const Json kNull;

std::string as_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      out += "\xef\xbf\xbd";
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(1, length));
  }
  return out;
}

std::string in_quotes(std::string_view text) {
  return boost::json::serialize(boost::json::string(as_utf8(text)));
}

}  // namespace

// The one that sees inside.
struct JsonText {
  const bool pretty;
  std::string out;

  void new_line(std::size_t depth) {
    if (pretty) out += '\n' + std::string(2 * depth, ' ');
  }

  void write(const Json& json, std::size_t depth) {
    std::visit([&](const auto& value) { write_value(value, depth); }, json.value_);
  }
  void write_value(std::monostate, std::size_t) { out += "null"; }
  void write_value(bool value, std::size_t) { out += value ? "true" : "false"; }
  void write_value(std::int64_t value, std::size_t) { out += std::to_string(value); }
  void write_value(std::uint64_t value, std::size_t) { out += std::to_string(value); }
  void write_value(double value, std::size_t) { out += std::isfinite(value) ? fmt::format("{}", value) : "null"; }
  void write_value(const std::string& value, std::size_t) { out += in_quotes(value); }
  void write_value(const Json::List& list, std::size_t depth) {
    out += '[';
    const char* between = "";
    for (const Json& entry : list) {
      out += std::exchange(between, ",");
      new_line(depth + 1);
      write(entry, depth + 1);
    }
    if (!list.empty()) new_line(depth);
    out += ']';
  }
  void write_value(const Json::Fields& fields, std::size_t depth) {
    out += '{';
    const char* between = "";
    for (const auto& [name, value] : fields) {
      out += std::exchange(between, ",");
      new_line(depth + 1);
      out += in_quotes(name) + (pretty ? ": " : ":");
      write(value, depth + 1);
    }
    if (!fields.empty()) new_line(depth);
    out += '}';
  }

  static Json from(const boost::json::value& value) {
    switch (value.kind()) {
      case boost::json::kind::null:
        return {};
      case boost::json::kind::bool_:
        return value.get_bool();
      case boost::json::kind::int64:
        return value.get_int64();
      case boost::json::kind::uint64:
        return value.get_uint64();
      case boost::json::kind::double_:
        return value.get_double();
      case boost::json::kind::string:
        return std::string(value.get_string());
      case boost::json::kind::array: {
        Json::List list;
        for (const auto& entry : value.get_array()) list.push_back(from(entry));
        return list;
      }
      case boost::json::kind::object: {
        Json::Fields fields;
        for (const auto& entry : value.get_object()) fields.emplace_back(std::string(entry.key()), from(entry.value()));
        return fields;
      }
    }
    return {};
  }

  static std::uint64_t count_of(const Json& json) {
    if (const auto* value = std::get_if<std::uint64_t>(&json.value_)) return *value;
    if (const auto* value = std::get_if<std::int64_t>(&json.value_))
      return *value < 0 ? 0 : static_cast<std::uint64_t>(*value);
    return 0;
  }
  static double number_of(const Json& json) {
    if (const auto* value = std::get_if<double>(&json.value_)) return *value;
    if (const auto* value = std::get_if<std::int64_t>(&json.value_)) return static_cast<double>(*value);
    return static_cast<double>(count_of(json));
  }
};

bool Json::flag() const {
  const bool* value = std::get_if<bool>(&value_);
  return value != nullptr && *value;
}

std::uint64_t Json::count() const {
  return JsonText::count_of(*this);
}

double Json::number() const {
  return JsonText::number_of(*this);
}

const std::string& Json::text() const {
  static const std::string kNone;
  const std::string* value = std::get_if<std::string>(&value_);
  return value == nullptr ? kNone : *value;
}

const Json::List& Json::list() const {
  static const List kNone;
  const List* value = std::get_if<List>(&value_);
  return value == nullptr ? kNone : *value;
}

const Json::Fields& Json::fields() const {
  static const Fields kNone;
  const Fields* value = std::get_if<Fields>(&value_);
  return value == nullptr ? kNone : *value;
}

const Json& Json::operator[](std::string_view name) const {
  for (const auto& [field, value] : fields())
    if (field == name) return value;
  return kNull;
}

void Json::set(std::string name, Json value) {
  if (!is_fields()) value_ = Fields();
  for (auto& [field, old] : std::get<Fields>(value_)) {
    if (field != name) continue;
    old = std::move(value);
    return;
  }
  std::get<Fields>(value_).emplace_back(std::move(name), std::move(value));
}

void Json::add(Json value) {
  if (!is_list()) value_ = List();
  std::get<List>(value_).push_back(std::move(value));
}

std::string json_text(const Json& value) {
  JsonText text{false, {}};
  text.write(value, 0);
  return std::move(text.out);
}

std::string pretty_json_text(const Json& value) {
  JsonText text{true, {}};
  text.write(value, 0);
  return std::move(text.out);
}

std::optional<Json> parse_json(std::string_view text) {
  boost::json::parse_options options;
  options.max_depth = kMaxDepth;
  boost::system::error_code failed;
  const boost::json::value value = boost::json::parse({text.data(), text.size()}, failed, {}, options);
  if (failed) return std::nullopt;
  return JsonText::from(value);
}

}  // namespace holdfast
