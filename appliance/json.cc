#include "appliance/json.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cmath>

namespace holdfast {
namespace {

constexpr std::size_t kMaxDepth = 32;

const Json kNull;

// How long the character is that begins here; 0 when it is none (RFC 3629, section 4).
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t at) -> unsigned {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0u;
  };
  const auto follows = [&](std::size_t at, unsigned from, unsigned to) { return byte(at) >= from && byte(at) <= to; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return text.empty() ? 0 : 1;
  if (lead >= 0xc2 && lead <= 0xdf) return follows(1, 0x80, 0xbf) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    const unsigned from = lead == 0xe0 ? 0xa0 : 0x80;
    const unsigned to = lead == 0xed ? 0x9f : 0xbf;
    return follows(1, from, to) && follows(2, 0x80, 0xbf) ? 3 : 0;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    const unsigned from = lead == 0xf0 ? 0x90 : 0x80;
    const unsigned to = lead == 0xf4 ? 0x8f : 0xbf;
    return follows(1, from, to) && follows(2, 0x80, 0xbf) && follows(3, 0x80, 0xbf) ? 4 : 0;
  }
  return 0;
}

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

std::string quoted(std::string_view text) {
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
  void write_value(const std::string& value, std::size_t) { out += quoted(value); }
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
      out += quoted(name) + (pretty ? ": " : ":");
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
  boost::json::error_code failed;
  const boost::json::value value = boost::json::parse({text.data(), text.size()}, failed, {}, options);
  if (failed) return std::nullopt;
  return JsonText::from(value);
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace holdfast
