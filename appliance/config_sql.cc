#include "appliance/config_sql.h"

#include <algorithm>
#include <array>
#include <utility>

#include "appliance/consumer_fit.h"
#include "crypto/text.h"
#include "forwarder/sql_name.h"
#include "forwarder/sql_row.h"
#include "forwarder/sql_schema.h"
#include "forwarder/sql_statement.h"

namespace holdfast {
namespace {

constexpr std::uint64_t kKiB = 1ull << 10;
constexpr std::uint64_t kMiB = 1ull << 20;
constexpr std::size_t kMaxWord = 255;  // of what a server is told at a connect
constexpr std::size_t kMaxType = 200;

constexpr std::array<std::pair<std::string_view, ColumnSource>, 14> kSources{{
    {"payload", ColumnSource::payload},
    {"payload:text", ColumnSource::payload_text},
    {"key", ColumnSource::key},
    {"subject", ColumnSource::subject},
    {"site", ColumnSource::site},
    {"source", ColumnSource::source},
    {"stream", ColumnSource::stream},
    {"stream_sequence", ColumnSource::stream_sequence},
    {"timestamp", ColumnSource::timestamp},
    {"timestamp_ns", ColumnSource::timestamp_ns},
    {"spool_sequence", ColumnSource::spool_sequence},
    {"accepted_at", ColumnSource::accepted_at},
    {"clock", ColumnSource::clock},
    {"priority", ColumnSource::priority},
}};
constexpr std::string_view kField = "field:", kHeader = "header:";

bool is_printable(std::string_view text) {
  return is_utf8(text) && std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20; });
}

const char* host_rule(std::string_view value) {
  const bool right =
      !value.empty() && value.size() <= kMaxWord && value.find_first_of(" ,=@\t") == value.npos && is_printable(value);
  return right ? nullptr : "must be one host's name or address, or the absolute path of a socket";
}

const char* word_rule(std::string_view value) {
  const bool right = !value.empty() && value.size() <= kMaxWord && is_printable(value);
  return right ? nullptr : "must be 1 to 255 printable bytes";
}

const char* place_rule(std::string_view value) {
  const std::size_t colon = value.rfind(':');
  const bool right = colon != value.npos && host_rule(value.substr(0, colon)) == nullptr &&
                     parse_decimal<std::uint16_t>(value.substr(colon + 1)).value_or(0) != 0;
  return right ? nullptr : "must be like \"127.0.0.1:5432\"";
}

const char* table_rule(std::string_view value) {
  return valid_sql_table(value)
             ? nullptr
             : "must be a name of letters, digits and '_', at most 63, like \"refunds\" or \"ledger.refunds\"";
}

const char* column_rule(std::string_view value) {
  return valid_sql_name(value) ? nullptr : "must be a name of letters, digits and '_', at most 63";
}

const char* type_rule(std::string_view value) {
  const bool right =
      !value.empty() && value.size() <= kMaxType && is_printable(value) && value.find_first_of(";\"`\\-") == value.npos;
  return right ? nullptr : "must be a type as the database has it, like \"numeric(12,2)\"";
}

const char* source_rule(std::string_view value) {
  const bool named = std::ranges::any_of(kSources, [&](const auto& source) { return source.first == value; });
  const bool header = value.starts_with(kHeader) && value.size() > kHeader.size() && is_printable(value);
  const bool field = value.starts_with(kField) && parse_field_path(value.substr(kField.size())).ok();
  return named || header || field
             ? nullptr
             : "must be \"payload\", \"payload:text\", \"field:PATH\", \"header:NAME\", \"key\", \"subject\", "
               "\"site\", \"source\", \"stream\", \"stream_sequence\", \"timestamp\", \"timestamp_ns\", "
               "\"spool_sequence\", \"accepted_at\", \"clock\" or \"priority\"";
}

// Of a text that has passed its rule; of another, anything.
SqlColumn column_from(const std::string& name, std::string_view text) {
  SqlColumn column;
  column.name = name;
  if (text.starts_with(kHeader)) {
    column.source = ColumnSource::header;
    column.header = text.substr(kHeader.size());
  } else if (text.starts_with(kField)) {
    column.source = ColumnSource::field;
    if (auto path = parse_field_path(text.substr(kField.size())); path.ok()) column.field = *std::move(path);
  } else {
    for (const auto& [word, source] : kSources) {
      if (word == text) column.source = source;
    }
  }
  return column;
}

SqlColumn* find_column(SqlTable& table, std::string_view name) {
  const auto found = std::ranges::find_if(table.columns, [&](const SqlColumn& column) { return column.name == name; });
  return found == table.columns.end() ? nullptr : &*found;
}

void read_columns(ConfigTable& in, SqlTable& table) {
  ConfigTable::Pairs columns, types;
  ConfigTable::Texts required;
  in.pairs("columns", columns, column_rule, source_rule);
  in.pairs("types", types, column_rule, type_rule);
  in.texts("required", required, column_rule, "names no column; leave it out");
  for (const auto& [name, text] : columns) table.columns.push_back(column_from(name, text));
  for (const auto& [name, type] : types) {
    if (SqlColumn* column = find_column(table, name)) {
      column->type = type;
    } else {
      in.complain("types", '"' + name + "\" is none of the columns");
    }
  }
  for (const std::string& name : required) {
    if (SqlColumn* column = find_column(table, name)) {
      column->required = true;
    } else {
      in.complain("required", '"' + name + "\" is none of the columns");
    }
  }
}

std::optional<EffectKey> read_effect_key(ConfigTable& in) {
  IdentityRule rule;
  if (in.inner("effect_key", [&](ConfigTable& inside) { inside.field_path("payload_field", rule.field); })) {
    rule.strategy = Strategy::payload_field;
    if (rule.field.keys.empty())
      in.complain("effect_key", "names no field; must be like { payload_field = \"refund.id\" }");
    return EffectKey(rule);
  }
  if (!in.has("effect_key")) return std::nullopt;
  bool of_message = false;
  in.choice<bool>("effect_key", of_message, {{"key", false}, {"message_id", true}});
  rule.strategy = Strategy::message_id;
  return of_message ? EffectKey(rule) : EffectKey();
}

bool is_keyed(SqlMode mode) {
  return mode == SqlMode::upsert || mode == SqlMode::insert_ignore || mode == SqlMode::insert;
}

// Rules between a table's values.
void check_table(ConfigTable& in, SqlTable& table, bool allow_duplicates) {
  const bool append = table.mode == SqlMode::append;
  if (append && !allow_duplicates)
    in.complain("mode", "\"append\" makes a second row of whatever is sent twice; allow_duplicates = true says so");
  if (append && table.effect_key) in.complain("effect_key", "is of no use with mode \"append\"");
  if (!append && allow_duplicates) in.complain("allow_duplicates", "is for mode \"append\" alone");
  if (table.mode != SqlMode::inbox && in.has("inbox")) in.complain("inbox", "is for mode \"inbox\" alone");
  if (table.mode == SqlMode::inbox && table.inbox == table.name)
    in.complain("inbox", "is the table itself; the claims need one of their own");
  if (!table.effect_key && in.has("effect_column")) in.complain("effect_column", "is of no use without effect_key");
  const bool writes = !table.columns.empty() || (table.effect_key && table.mode != SqlMode::upsert);
  if (!writes) in.complain("columns", "is missing; name what the table is given, like { amount = \"field:amount\" }");
  if (table.effect_key && find_column(table, table.effect_column) != nullptr)
    in.complain("columns", '"' + table.effect_column + "\" is given the effect's key; name another effect_column");
  if (table.mode == SqlMode::insert && find_column(table, kDigestColumn) != nullptr)
    in.complain("columns", std::string("\"") + kDigestColumn + "\" is given the content's digest");
  if (table.version_column.empty()) return;
  if (table.mode != SqlMode::upsert) in.complain("version_column", "is for mode \"upsert\" alone");
  if (find_column(table, table.version_column) == nullptr) in.complain("version_column", "is none of the columns");
}

SqlTable read_table(ConfigTable& in) {
  SqlTable table;
  bool allow_duplicates = false;
  table.line = in.line();
  in.texts("subjects", table.subjects, pattern_rule, "is empty; leave it out for all subjects");
  if (table.subjects.empty()) table.subjects = {">"};
  in.required_text("table", table.name, table_rule);
  in.choice<SqlMode>("mode", table.mode,
                     {{"inbox", SqlMode::inbox},
                      {"upsert", SqlMode::upsert},
                      {"insert_ignore", SqlMode::insert_ignore},
                      {"insert", SqlMode::insert},
                      {"append", SqlMode::append}});
  in.text("inbox", table.inbox, table_rule);
  table.effect_key = read_effect_key(in);
  if (!table.effect_key && is_keyed(table.mode)) table.effect_key = EffectKey();
  in.text("effect_column", table.effect_column, column_rule);
  in.text("version_column", table.version_column, column_rule);
  in.flag("allow_duplicates", allow_duplicates);
  read_columns(in, table);
  check_table(in, table, allow_duplicates);
  return table;
}

bool is_of_this_machine(const std::string& host) {
  return host.starts_with('/') || host == "localhost" || host == "::1" || host.starts_with("127.");
}

}  // namespace

SqlTargetConfig read_sql(ConfigTable& in, SqlDialect dialect) {
  SqlTargetConfig sql;
  sql.dialect = dialect;
  SqlServer& server = sql.server;
  server.port = dialect == SqlDialect::postgres ? 5432 : 3306;
  in.required_text("host", server.host, host_rule);
  in.count("port", server.port, 1, 65535);
  in.required_text("database", server.database, word_rule);
  in.required_text("user", server.user, word_rule);
  in.text("password_file", server.password_file, path_rule);
  server.tls = is_of_this_machine(server.host) ? SqlTls::off : SqlTls::verify_full;
  in.choice<SqlTls>("tls", server.tls, {{"verify-full", SqlTls::verify_full}, {"off", SqlTls::off}});
  in.text("tls_ca", server.tls_ca, path_rule);
  in.text("tls_cert", server.tls_cert, path_rule);
  in.text("tls_key", server.tls_key, path_rule);
  in.text("connect_to", server.connect_to, place_rule);
  if (server.tls_cert.empty() != server.tls_key.empty())
    in.complain(server.tls_key.empty() ? "tls_key" : "tls_cert", "is missing; tls_cert and tls_key go together");
  in.count("batch", sql.batch, 1, 4096);
  in.bytes("batch_bytes", sql.batch_bytes, 64 * kKiB, 64 * kMiB);
  in.each("table", [&](ConfigTable& table) { sql.tables.push_back(read_table(table)); });
  if (sql.tables.empty()) in.complain("table", "there is none; add a [[target.table]]");
  return sql;
}

void check_sql(const SqlTargetConfig& sql, int line, Findings& findings) {
  if (sql.server.tls == SqlTls::off && !is_of_this_machine(sql.server.host))
    findings.warning(line, "target.tls", "is off: who is on the way reads the records, and may be the server");
  std::vector<std::string> taken;
  for (const SqlTable& table : sql.tables) {
    const bool idle = std::ranges::all_of(table.subjects, [&](const std::string& subject) {
      return std::ranges::any_of(taken, [&](const std::string& wide) { return pattern_covers(wide, subject); });
    });
    if (idle) findings.warning(table.line, "target.table.subjects", "are all taken by tables before it");
    taken.insert(taken.end(), table.subjects.begin(), table.subjects.end());
  }
}

}  // namespace holdfast
