#include "forwarder/sql_row.h"

#include <algorithm>

#include "crypto/plain_digest.h"
#include "crypto/text.h"
#include "forwarder/utc_time.h"
#include "spool/payload_field.h"

namespace holdfast {
namespace {

using Value = std::variant<SqlValue, Reason>;

constexpr std::size_t kAroundValue = 16;  // what the protocols put around a value, and more

std::array<std::uint8_t, 32> content_digest(const Envelope& envelope) {
  std::array<std::uint8_t, 8> subject_size{};
  store_le(subject_size.data(), static_cast<std::uint64_t>(envelope.subject.size()));
  return blake2b_256({subject_size, as_bytes(envelope.subject), envelope.payload});
}

Value text_value(std::string_view text) {
  if (!is_utf8(text) || text.find('\0') != std::string_view::npos) return Reason::unencodable;
  return sql_text(std::string(text));
}

// PostgreSQL reads RFC 3339; MariaDB its own form, of which six decimals are the most that it keeps.
std::string timestamp_text(SqlDialect dialect, std::int64_t ns_since_1970) {
  std::string text = format_time(ns_since_1970);
  if (dialect == SqlDialect::postgres) return text;
  constexpr std::size_t kToMicroseconds = 26;
  text[text.find('T')] = ' ';
  text.resize(kToMicroseconds);
  return text;
}

// MariaDB's boolean is a number.
std::string field_text(SqlDialect dialect, FieldValue field) {
  if (dialect == SqlDialect::mysql && field.type == FieldType::boolean) return field.text == "true" ? "1" : "0";
  return std::move(field.text);
}

Value field_value(SqlDialect dialect, const FieldPath& path, const Envelope& envelope) {
  if (envelope.payload_omitted) return sql_null();
  auto found = find_field(path, envelope.payload);
  if (auto* field = std::get_if<FieldValue>(&found)) return text_value(field_text(dialect, std::move(*field)));
  switch (std::get<Reason>(found)) {
    case Reason::not_json:
    case Reason::field_missing:
    case Reason::field_null:
      return sql_null();
    case Reason::field_empty:
      return sql_text("");
    case Reason::identity_too_long:
      return Reason::oversize;
    default:
      return std::get<Reason>(found);
  }
}

Value payload_value(const Envelope& envelope, bool as_text_of_it) {
  if (envelope.payload_omitted) return sql_null();
  if (as_text_of_it) return text_value(as_text(envelope.payload));
  static constexpr std::uint8_t kNothing = 0;  // an empty view must still be one
  return sql_bytes(envelope.payload.empty() ? ByteView(&kNothing, 0) : ByteView(envelope.payload));
}

Value origin_value(SqlDialect dialect, ColumnSource source, const Origin& origin) {
  if (origin.stream.empty()) return sql_null();
  switch (source) {
    case ColumnSource::stream:
      return text_value(origin.stream);
    case ColumnSource::stream_sequence:
      return sql_text(std::to_string(origin.sequence));
    case ColumnSource::timestamp_ns:
      return sql_text(std::to_string(origin.timestamp_ns));
    default:
      return sql_text(timestamp_text(dialect, origin.timestamp_ns));
  }
}

Value value_of(SqlDialect dialect, const SqlColumn& column, const std::string& site, const Delivery& delivery) {
  const DueRecord& record = *delivery.record;
  const Envelope& envelope = record.envelope;
  switch (column.source) {
    case ColumnSource::payload:
      return payload_value(envelope, false);
    case ColumnSource::payload_text:
      return payload_value(envelope, true);
    case ColumnSource::field:
      return field_value(dialect, column.field, envelope);
    case ColumnSource::header: {
      const auto header = find_header(envelope, column.header);
      return header ? text_value(*header) : Value(sql_null());
    }
    case ColumnSource::key:
      return sql_text(delivery.wire_key);
    case ColumnSource::subject:
      return text_value(envelope.subject);
    case ColumnSource::site:
      return text_value(site);
    case ColumnSource::source:
      return text_value(envelope.source);
    case ColumnSource::stream:
    case ColumnSource::stream_sequence:
    case ColumnSource::timestamp:
    case ColumnSource::timestamp_ns:
      return origin_value(dialect, column.source, envelope.origin);
    case ColumnSource::spool_sequence:
      return sql_text(std::to_string(record.sequence));
    case ColumnSource::accepted_at:
      return sql_text(timestamp_text(dialect, record.accepted_wall_ns));
    case ColumnSource::clock:
      return sql_text(record.clock_trusted ? "trusted" : "untrusted");
    case ColumnSource::priority:
      return sql_text(std::to_string(record.priority));
  }
  return sql_null();
}

Reason reason_of_absence(const SqlColumn& column, const Envelope& envelope) {
  if (envelope.payload_omitted && (column.source == ColumnSource::field || column.source == ColumnSource::payload ||
                                   column.source == ColumnSource::payload_text))
    return Reason::payload_omitted;
  return column.source == ColumnSource::field ? Reason::field_missing : Reason::rejected;
}

// Who is asked why finds the column's name beside the record.
Outcome refused(Reason reason, const std::string& column) {
  return rejected(reason, "column " + column);
}

}  // namespace

std::variant<SqlRow, Outcome> sql_row(SqlDialect dialect, const SqlTable& table, const std::string& site,
                                      const Delivery& delivery, std::size_t place) {
  const Envelope& envelope = delivery.record->envelope;
  SqlRow row;
  row.place = place;
  row.key = delivery.wire_key;
  if (table.effect_key) {
    row.effect = delivery.wire_key;
    if (const EffectKey& own = *table.effect_key) {
      auto identity = identify(*own, site, envelope);
      if (const Reason* why = std::get_if<Reason>(&identity)) return refused(*why, table.effect_column);
      row.effect = wire_key(std::get<Identity>(identity).key);
    }
  }
  if (table.mode == SqlMode::inbox || table.mode == SqlMode::insert) row.digest = content_digest(envelope);
  row.bytes = row.key.size() + row.effect.size() + row.digest.size();
  row.values.reserve(table.columns.size());
  for (const SqlColumn& column : table.columns) {
    Value value = value_of(dialect, column, site, delivery);
    if (const Reason* why = std::get_if<Reason>(&value)) return refused(*why, column.name);
    auto& made = std::get<SqlValue>(value);
    if (column.required && made.form == SqlValue::Form::null)
      return refused(reason_of_absence(column, envelope), column.name);
    row.bytes += made.view().size() + kAroundValue;
    row.values.push_back(std::move(made));
  }
  return row;
}

}  // namespace holdfast
