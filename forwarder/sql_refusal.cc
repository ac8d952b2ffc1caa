#include "forwarder/sql_refusal.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace holdfast {
namespace {

using enum SqlBlame;
using enum OutcomeKind;

constexpr SqlRule kPostgres[] = {
    {"08", 0, session, retry, ""},
    {"57P01", 0, session, retry, ""},  // the administrator ends it
    {"57P02", 0, session, retry, ""},  // another session crashed
    {"57P03", 0, session, retry, ""},  // the server starts, stops or recovers
    {"57P05", 0, session, retry, ""},  // idle for too long
    {"25P03", 0, session, retry, ""},  // idle in a transaction for too long
    {"57P04", 0, session, retry, "no_database"},
    {"3D", 0, session, retry, "no_database"},
    {"28", 0, session, retry, "credentials_refused"},
    {"53100", 0, all, hold_target, "disk_full"},
    {"53300", 0, session, retry, "no_resources"},  // connections
    {"53", 0, all, retry, "no_resources"},
    {"58030", 0, all, hold_target, "disk_full"},  // its disk fails
    {"25006", 0, all, hold_target, "read_only"},
    {"40", 0, all, retry, "contended"},     // serialization, deadlock
    {"55P03", 0, all, retry, "contended"},  // a lock that is not given
    {"55006", 0, all, retry, "contended"},
    {"57014", 0, one, retry, "contended"},         // the statement took too long
    {"42501", 0, one, hold_lane, "no_privilege"},  // by a policy of rows, perhaps
    {"42P01", 0, all, hold_lane, "no_table"},
    {"3F", 0, all, hold_lane, "no_table"},  // its schema
    {"42703", 0, all, hold_lane, "no_column"},
    {"42P10", 0, all, hold_lane, "no_unique_key"},
    {"42804", 0, all, hold_lane, "column_mismatch"},
    {"428C9", 0, all, hold_lane, "column_mismatch"},  // the table makes the value itself
    {"42", 0, all, hold_lane, "statement_refused"},
    {"0A", 0, all, hold_lane, "statement_refused"},
    {"55000", 0, all, hold_lane, "statement_refused"},
    {"44", 0, one, rejected, "", Reason::rejected},  // WITH CHECK OPTION of a view
    {"22", 0, one, rejected, "", Reason::rejected},
    {"23502", 0, one, rejected, "", Reason::rejected},
    {"23503", 0, one, retry, "parent_missing"},
    {"23505", 0, one, rejected, "", Reason::exists_otherwise},
    {"23514", 0, one, rejected, "", Reason::rejected},
    {"23P01", 0, one, rejected, "", Reason::exists_otherwise},
    {"54", 0, one, rejected, "", Reason::oversize},
};

constexpr SqlRule kMysql[] = {
    {"", 1053, session, retry, ""},  // it shuts down
    {"", 1927, session, retry, ""},  // the connection was killed
    {"", 1047, session, retry, ""},  // a cluster's node that is not ready
    {"", 1152, session, retry, ""},  // the connection was given up
    {"", 1158, session, retry, ""},
    {"", 1159, session, retry, ""},
    {"", 1160, session, retry, ""},
    {"", 1161, session, retry, ""},
    {"", 4031, session, retry, ""},              // idle for too long
    {"", 1040, session, retry, "no_resources"},  // connections
    {"", 1203, session, retry, "no_resources"},
    {"", 1226, session, retry, "no_resources"},
    {"", 1044, session, retry, "credentials_refused"},
    {"", 1045, session, retry, "credentials_refused"},
    {"", 1129, session, retry, "credentials_refused"},  // the host is blocked
    {"", 1130, session, retry, "credentials_refused"},
    {"", 1698, session, retry, "credentials_refused"},
    {"", 1820, session, retry, "credentials_refused"},  // the password has expired
    {"", 1862, session, retry, "credentials_refused"},
    {"", 3118, session, retry, "credentials_refused"},  // the account is locked
    {"", 4151, session, retry, "credentials_refused"},
    {"", 1049, session, retry, "no_database"},
    {"", 1021, all, hold_target, "disk_full"},
    {"", 1114, all, hold_target, "disk_full"},
    {"", 1026, all, hold_target, "disk_full"},  // an error when writing
    {"", 1037, all, retry, "no_resources"},
    {"", 1041, all, retry, "no_resources"},
    {"", 1135, all, retry, "no_resources"},
    {"", 1206, all, retry, "no_resources"},  // locks
    {"", 1290, all, hold_target, "read_only"},
    {"", 1792, all, hold_target, "read_only"},
    {"", 1836, all, hold_target, "read_only"},
    {"", 1020, all, retry, "contended"},
    {"", 1205, all, retry, "contended"},  // a lock that is not given
    {"", 1213, all, retry, "contended"},  // deadlock
    {"", 1317, one, retry, "contended"},  // somebody killed the statement
    {"", 1615, all, retry, "contended"},  // the table changed meanwhile
    {"", 1637, all, retry, "contended"},
    {"", 1969, one, retry, "contended"},  // the statement took too long
    {"", 3024, one, retry, "contended"},
    {"", 1142, all, hold_lane, "no_privilege"},
    {"", 1143, all, hold_lane, "no_privilege"},
    {"", 1227, all, hold_lane, "no_privilege"},
    {"", 1146, all, hold_lane, "no_table"},
    {"", 1054, all, hold_lane, "no_column"},
    {"", 1364, all, hold_lane, "column_mismatch"},  // a column without a default, which gets no value from us
    {"", 1423, all, hold_lane, "column_mismatch"},
    {"", 1906, all, hold_lane, "column_mismatch"},  // the table makes the value itself
    {"", 1064, all, hold_lane, "statement_refused"},
    {"", 1136, all, hold_lane, "statement_refused"},
    {"", 1235, all, hold_lane, "statement_refused"},
    {"", 1295, all, hold_lane, "statement_refused"},
    {"", 1471, all, hold_lane, "statement_refused"},  // the table takes no INSERT
    {"", 1048, one, rejected, "", Reason::rejected},  // NULL
    {"", 1264, one, rejected, "", Reason::rejected},  // out of range
    {"", 1265, one, rejected, "", Reason::rejected},
    {"", 1292, one, rejected, "", Reason::rejected},
    {"", 1300, one, rejected, "", Reason::rejected},  // not UTF-8
    {"", 1366, one, rejected, "", Reason::rejected},
    {"", 1367, one, rejected, "", Reason::rejected},
    {"", 1369, one, rejected, "", Reason::rejected},  // WITH CHECK OPTION of a view
    {"", 1406, one, rejected, "", Reason::rejected},  // too long for the column
    {"", 1411, one, rejected, "", Reason::rejected},
    {"", 1416, one, rejected, "", Reason::rejected},
    {"", 1526, one, retry, "no_partition"},  // one may still be made
    {"", 1690, one, rejected, "", Reason::rejected},
    {"", 3140, one, rejected, "", Reason::rejected},  // not JSON
    {"", 3819, one, rejected, "", Reason::rejected},  // CHECK
    {"", 4025, one, rejected, "", Reason::rejected},
    {"", 1062, one, rejected, "", Reason::exists_otherwise},
    {"", 1586, one, rejected, "", Reason::exists_otherwise},
    {"", 1216, one, retry, "parent_missing"},
    {"", 1452, one, retry, "parent_missing"},
    {"", 1118, one, rejected, "", Reason::oversize},
    {"", 1139, one, rejected, "", Reason::rejected},
    {"", 1301, one, rejected, "", Reason::oversize},  // a result above max_allowed_packet
};

constexpr int kMysqlDuplicate = 1062, kMysqlDuplicateKeyNamed = 1586;

const SqlRule* find_rule(SqlDialect dialect, const SqlRefusal& refusal) {
  const auto rules = sql_rules(dialect);
  const auto found = std::find_if(rules.begin(), rules.end(), [&](const SqlRule& rule) {
    return dialect == SqlDialect::mysql ? rule.number == refusal.number : refusal.state.starts_with(rule.state);
  });
  return found == rules.end() ? nullptr : &*found;
}

bool is_written(const std::string& column, const std::vector<std::string>& written) {
  return std::find(written.begin(), written.end(), column) != written.end();
}

}  // namespace

std::span<const SqlRule> sql_rules(SqlDialect dialect) {
  if (dialect == SqlDialect::postgres) return kPostgres;
  return kMysql;
}

SqlMeaning meaning_of(SqlDialect dialect, const SqlRefusal& refusal, const std::vector<std::string>& written) {
  const SqlRule* rule = find_rule(dialect, refusal);
  // Whatever it is, it may be one record's (a trigger that raises an error): the others need not wait for it.
  if (rule == nullptr) return {one, holdfast::retry("unknown_error")};
  if (refusal.state == "23502" && !refusal.column.empty() && !is_written(refusal.column, written))
    return {all, holdfast::hold_lane("column_mismatch")};
  // PostgreSQL has no code of its own for a row that no partition takes; it names no constraint then.
  if (refusal.state == "23514" && refusal.constraint.empty()) return {one, holdfast::retry("no_partition")};
  SqlMeaning meaning{rule->blame, {rule->kind, rule->reason, rule->code, std::nullopt, {}}};
  if (rule->kind == OutcomeKind::rejected) meaning.outcome.words = refusal.words;
  return meaning;
}

Error session_error(SqlDialect dialect, const SqlRefusal& refusal) {
  const SqlRule* rule = find_rule(dialect, refusal);
  const std::string code = rule == nullptr ? "" : rule->code;
  const std::string number = dialect == SqlDialect::mysql ? std::to_string(refusal.number) : refusal.state;
  const std::string text = "the server refuses with error " + (number.empty() ? "(none)" : number);
  return {ErrorKind::unavailable, code.empty() ? text : code + ": " + text};
}

bool is_unique_violation(SqlDialect dialect, const SqlRefusal& refusal) {
  if (dialect == SqlDialect::postgres) return refusal.state == "23505";
  return refusal.number == kMysqlDuplicate || refusal.number == kMysqlDuplicateKeyNamed;
}

}  // namespace holdfast
