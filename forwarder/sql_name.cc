#include "forwarder/sql_name.h"

#include <algorithm>

namespace holdfast {
namespace {

constexpr std::size_t kMaxName = 63;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_name_character(char c) {
  return is_letter(c) || (c >= '0' && c <= '9');
}

}  // namespace

bool valid_sql_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxName && is_letter(name.front()) &&
         std::all_of(name.begin(), name.end(), is_name_character);
}

bool valid_sql_table(std::string_view name) {
  const SqlTableName parts = split_table(name);
  const bool dotted = name.find('.') != std::string_view::npos;
  return valid_sql_name(parts.table) && (dotted ? valid_sql_name(parts.schema) : parts.schema.empty());
}

std::string quoted(SqlDialect dialect, std::string_view name) {
  const char quote = dialect == SqlDialect::postgres ? '"' : '`';
  const SqlTableName parts = split_table(name);
  std::string out;
  if (!parts.schema.empty()) out.append(1, quote).append(parts.schema).append(1, quote).append(".");
  return out.append(1, quote).append(parts.table).append(1, quote);
}

SqlTableName split_table(std::string_view name) {
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos) return {"", std::string(name)};
  return {std::string(name.substr(0, dot)), std::string(name.substr(dot + 1))};
}

}  // namespace holdfast
