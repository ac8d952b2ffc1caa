#include "forwarder/sql_readback.h"

#include <algorithm>

#include "forwarder/sql_name.h"
#include "forwarder/sql_refusal.h"
#include "forwarder/sql_row.h"
#include "forwarder/sql_schema.h"
#include "forwarder/sql_target.h"

namespace holdfast {
namespace {

// Where a record's rows are, and by what.
struct Place {
  std::string table;
  std::string column;
  std::string key;
  std::string content;  // what tells their content, as an expression in hexadecimal; empty: nothing does
  std::string expected;
};

class SqlReadback : public Readback {
 public:
  SqlReadback(SqlDialect dialect, SqlTargetOptions options)
      : dialect_(dialect), options_(std::move(options)), open_(open_database(dialect, options_.server)) {}

  Result<std::vector<Held>> look(std::span<const Delivery> records) override {
    HOLDFAST_TRY(connect());
    std::vector<Held> held;
    for (const Delivery& record : records) {
      auto one = look_for(record);
      if (!one.ok()) return one.error();
      held.push_back(*one);
    }
    return held;
  }

  Result<void> remove(std::span<const Delivery> records) override {
    HOLDFAST_TRY(connect());
    for (const Delivery& record : records) {
      const SqlTable* table = nullptr;
      const auto place = place_of(record, table);
      if (!place) continue;
      HOLDFAST_TRY(ask("DELETE FROM " + name(place->table) + " WHERE " + name(place->column), place->key));
      if (table->mode == SqlMode::inbox && place->table != table->inbox)
        HOLDFAST_TRY(ask("DELETE FROM " + name(table->inbox) + " WHERE " + name(kInboxKey), record.wire_key));
    }
    return {};
  }

 private:
  std::string name(const std::string& of) const { return quoted(dialect_, of); }

  Result<void> connect() {
    if (connection_ && connection_->alive()) return {};
    connection_.reset();
    auto opened = open_({});
    if (!opened.ok()) return opened.error();
    connection_ = *std::move(opened);
    return {};
  }

  std::string hexadecimal(const std::string& column, bool text) const {
    if (dialect_ == SqlDialect::mysql) return "LOWER(HEX(" + name(column) + "))";
    return text ? "encode(convert_to(" + name(column) + ", 'UTF8'), 'hex')" : "encode(" + name(column) + ", 'hex')";
  }

  // Nothing: no table takes it, or none can have it.
  std::optional<Place> place_of(const Delivery& record, const SqlTable*& table) const {
    const auto number = table_for(options_.tables, record.record->envelope.subject);
    if (!number) return std::nullopt;
    table = &options_.tables[*number];
    auto made = sql_row(dialect_, *table, options_.site, record, 0);
    const SqlRow* row = std::get_if<SqlRow>(&made);
    if (row == nullptr) return std::nullopt;
    Place place{table->name, table->effect_column, row->effect, "", ""};
    if (!table->effect_key) {
      const auto key =
          std::ranges::find_if(table->columns, [](const SqlColumn& one) { return one.source == ColumnSource::key; });
      const bool has_key = key != table->columns.end();
      if (!has_key && table->mode != SqlMode::inbox) return std::nullopt;
      place = {has_key ? table->name : table->inbox, has_key ? key->name : kInboxKey, row->key, "", ""};
    }
    note_content(record, *table, *row, place);
    return place;
  }

  void note_content(const Delivery& record, const SqlTable& table, const SqlRow& row, Place& place) const {
    if (place.table == table.inbox || table.mode == SqlMode::insert) {
      place.content = hexadecimal(kDigestColumn, false);
      place.expected = to_hex(row.digest);
    }
    if (place.table == table.inbox) return;
    for (const SqlColumn& column : table.columns) {
      const bool text = column.source == ColumnSource::payload_text;
      if (column.source != ColumnSource::payload && !text) continue;
      place.content = hexadecimal(column.name, text);
      place.expected = to_hex(record.record->envelope.payload);
    }
  }

  Result<Held> look_for(const Delivery& record) {
    const SqlTable* table = nullptr;
    const auto place = place_of(record, table);
    if (!place) return Held{};
    const std::string what = place->content.empty() ? "''" : place->content;
    const auto rows =
        ask("SELECT " + what + " FROM " + name(place->table) + " WHERE " + name(place->column), place->key);
    if (!rows.ok()) return rows.error();
    Held held{rows->rows.size(), true};
    for (const auto& row : rows->rows) {
      if (!place->content.empty() && row.at(0) != place->expected) held.as_sent = false;
    }
    return held;
  }

  // "... = key".
  Result<SqlRows> ask(const std::string& beginning, const std::string& key) {
    const std::vector<SqlValue> values{sql_text(key)};
    auto answer = connection_->run(beginning + (dialect_ == SqlDialect::postgres ? " = $1" : " = ?"), values);
    if (!answer.ok()) return answer.error();
    if (const auto* refusal = std::get_if<SqlRefusal>(&*answer)) return session_error(dialect_, *refusal);
    return std::get<SqlRows>(*std::move(answer));
  }

  const SqlDialect dialect_;
  const SqlTargetOptions options_;
  const OpenSql open_;
  std::unique_ptr<SqlConnection> connection_;
};

}  // namespace

std::unique_ptr<Readback> make_postgres_readback(SqlTargetOptions options) {
  return std::make_unique<SqlReadback>(SqlDialect::postgres, std::move(options));
}

std::unique_ptr<Readback> make_mysql_readback(SqlTargetOptions options) {
  return std::make_unique<SqlReadback>(SqlDialect::mysql, std::move(options));
}

}  // namespace holdfast
