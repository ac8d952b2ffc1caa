#include "forwarder/sql_target.h"

#include <algorithm>

#include "forwarder/mysql_connection.h"
#include "forwarder/postgres_connection.h"
#include "forwarder/sql_schema.h"
#include "forwarder/sql_statement.h"
#include "spool/subject.h"

namespace holdfast {
namespace {

using std::chrono::steady_clock;

// A table may lose its key while we are connected, and MariaDB would not say so.
constexpr auto kLookAgain = std::chrono::seconds(60);
// Records that were refused one by one, with none taken, before the rest of a batch is spared the same: what refuses
// them is then hardly theirs.
constexpr std::size_t kRefusedAlone = 16;
// Of the longest statement that a server takes: as much a batch has, whatever batch_bytes says.
constexpr std::size_t kStatementShare = 2;

Error interrupted_error() {
  return {ErrorKind::unavailable, "interrupted"};
}

}  // namespace

// The records of a window that go to one table.
struct SqlTarget::Lot {
  std::size_t number = 0;
  const SqlTable& table;
  const Report& report;
  std::vector<SqlRow> rows = {};
  bool inbox_digest = false;
  // Of the batch that is being taken apart.
  std::size_t refused_alone = 0;
  bool taken = false;

  void settle(std::span<const SqlRow> of, const Outcome& outcome) const {
    for (const SqlRow& row : of) report(row.place, outcome);
  }
};

OpenSql open_database(SqlDialect dialect, const SqlServer& server) {
  return dialect == SqlDialect::postgres ? open_postgres(server) : open_mysql(server);
}

std::optional<std::size_t> table_for(const std::vector<SqlTable>& tables, std::string_view subject) {
  for (std::size_t i = 0; i < tables.size(); ++i) {
    for (const std::string& pattern : tables[i].subjects) {
      if (subject_matches(pattern, subject)) return i;
    }
  }
  return std::nullopt;
}

SqlTarget::SqlTarget(SqlDialect dialect, SqlTargetOptions options)
    : dialect_(dialect), options_(std::move(options)), open_(open_database(dialect, options_.server)) {}

SqlTarget::SqlTarget(SqlDialect dialect, SqlTargetOptions options, OpenSql open)
    : dialect_(dialect), options_(std::move(options)), open_(std::move(open)) {}

bool SqlTarget::interrupted() {
  const std::lock_guard lock(mutex_);
  return interrupted_;
}

Result<void> SqlTarget::begin() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(interrupted_, false)) return interrupted_error();
  calling_ = true;
  stop_ = {};
  return {};
}

Result<void> SqlTarget::end(Result<void> result) {
  const std::lock_guard lock(mutex_);
  calling_ = false;
  if (std::exchange(interrupted_, false) && !result.ok()) return interrupted_error();
  return result;
}

Result<void> SqlTarget::connect() {
  if (connection_ && connection_->alive()) return {};
  std::shared_ptr<SqlConnection> old;  // goes after the lock
  std::stop_token stop;
  {
    const std::lock_guard lock(mutex_);
    old = std::move(connection_);
    stop = stop_.get_token();
  }
  old.reset();
  looked_.clear();
  auto opened = open_(stop);
  if (!opened.ok()) return opened.error();
  const std::lock_guard lock(mutex_);
  connection_ = *std::move(opened);
  if (interrupted_) return interrupted_error();
  return {};
}

Result<void> SqlTarget::deliver(std::span<const Delivery> window, const Report& report) {
  if (window.empty()) return {};
  HOLDFAST_TRY(begin());
  auto result = connect();
  if (result.ok()) result = deliver_rows(window, report);
  return end(std::move(result));
}

Result<void> SqlTarget::deliver_rows(std::span<const Delivery> window, const Report& report) {
  std::map<std::size_t, Lot> lots;
  for (std::size_t place = 0; place < window.size(); ++place) {
    const auto number = table_for(options_.tables, window[place].record->envelope.subject);
    if (!number) {
      report(place, hold_lane("no_table_for_subject"));
      continue;
    }
    const SqlTable& table = options_.tables[*number];
    auto row = sql_row(dialect_, table, options_.site, window[place], place);
    if (auto* refused = std::get_if<Outcome>(&row)) {
      report(place, std::move(*refused));
    } else if (std::get<SqlRow>(row).bytes > connection_->max_statement()) {
      report(place, rejected(Reason::oversize));
    } else {
      lots.try_emplace(*number, Lot{*number, table, report})
          .first->second.rows.push_back(std::get<SqlRow>(std::move(row)));
    }
  }
  for (auto& [number, lot] : lots) HOLDFAST_TRY(deliver_lot(lot));
  return {};
}

Result<void> SqlTarget::deliver_lot(Lot& lot) {
  const auto trouble = look_at(lot.number);
  if (!trouble.ok()) return trouble.error();
  if (*trouble) {
    lot.settle(lot.rows, **trouble);
    return {};
  }
  lot.inbox_digest = looked_.at(lot.number).inbox_digest;
  const std::size_t most_bytes = std::min(options_.batch_bytes, connection_->max_statement() / kStatementShare);
  const std::span<const SqlRow> rows = lot.rows;
  for (std::size_t from = 0, to = 0; from < rows.size(); from = to) {
    std::size_t bytes = 0;
    while (to < rows.size() && to - from < options_.batch) {
      bytes += rows[to].bytes;
      if (bytes > most_bytes && to > from) break;
      ++to;
    }
    lot.refused_alone = 0;
    lot.taken = false;
    HOLDFAST_TRY(carry_part(lot, rows.subspan(from, to - from)));
  }
  return {};
}

Result<void> SqlTarget::carry_part(Lot& lot, std::span<const SqlRow> rows) {
  if (interrupted()) return interrupted_error();
  const auto carried = carry(*connection_, {dialect_, &lot.table, lot.inbox_digest, rows});
  if (!carried.ok()) {
    connection_->abort();  // with whatever it still holds
    return carried.error();
  }
  if (const auto* outcomes = std::get_if<std::vector<Outcome>>(&*carried)) {
    lot.taken = true;
    for (std::size_t i = 0; i < rows.size(); ++i) lot.report(rows[i].place, (*outcomes)[i]);
    return {};
  }
  const auto& meaning = std::get<SqlMeaning>(*carried);
  if (meaning.blame == SqlBlame::all) looked_.erase(lot.number);
  const bool hardly_theirs = !lot.taken && lot.refused_alone >= kRefusedAlone;
  const bool verdict = meaning.outcome.kind == OutcomeKind::rejected;
  if (rows.size() == 1 || meaning.blame == SqlBlame::all || (hardly_theirs && !verdict)) {
    ++lot.refused_alone;
    lot.settle(rows, meaning.outcome);
    return {};
  }
  HOLDFAST_TRY(carry_part(lot, rows.first(rows.size() / 2)));
  return carry_part(lot, rows.subspan(rows.size() / 2));
}

// Nothing: the table is as it must be.
Result<std::optional<Outcome>> SqlTarget::look_at(std::size_t number) {
  const auto known = looked_.find(number);
  const Moment now = steady_clock::now();
  if (known != looked_.end() && now - known->second.when < kLookAgain) return std::optional<Outcome>();
  looked_.erase(number);
  const SqlTable& table = options_.tables[number];
  Looked looked{now, false};
  if (table.mode == SqlMode::inbox) {
    auto facts = facts_of(table.inbox);
    if (!facts.ok()) return facts.error();
    if (auto* refused = std::get_if<Outcome>(&*facts)) return std::optional(std::move(*refused));
    const auto& columns = std::get<std::vector<SqlColumnFact>>(*facts);
    looked.inbox_digest = has_column(dialect_, columns, kDigestColumn);
    const auto trouble = table_trouble(dialect_, columns, {kInboxKey}, kInboxKey, false);
    if (trouble) return trouble;
  }
  auto facts = facts_of(table.name);
  if (!facts.ok()) return facts.error();
  if (auto* refused = std::get_if<Outcome>(&*facts)) return std::optional(std::move(*refused));
  // MariaDB's ON DUPLICATE KEY UPDATE takes whichever constraint speaks first.
  const bool only_key = dialect_ == SqlDialect::mysql && table.mode == SqlMode::upsert;
  const auto trouble = table_trouble(dialect_, std::get<std::vector<SqlColumnFact>>(*facts), into_table(table).columns,
                                     table.effect_key ? table.effect_column : "", only_key);
  if (!trouble) looked_[number] = looked;
  return trouble;
}

Result<std::variant<std::vector<SqlColumnFact>, Outcome>> SqlTarget::facts_of(const std::string& table) {
  using Facts = std::variant<std::vector<SqlColumnFact>, Outcome>;
  const SqlQuestion question = table_question(dialect_, table);
  const auto answer = connection_->run(question.statement, question.values);
  if (!answer.ok()) return answer.error();
  if (const auto* rows = std::get_if<SqlRows>(&*answer)) return Facts(table_facts(*rows));
  const SqlMeaning meaning = meaning_of(dialect_, std::get<SqlRefusal>(*answer), {});
  if (meaning.blame == SqlBlame::session) return session_error(dialect_, std::get<SqlRefusal>(*answer));
  // Nothing of any record was asked, so nothing is a verdict on one.
  return Facts(meaning.outcome.kind == OutcomeKind::rejected ? retry("unknown_error") : meaning.outcome);
}

Result<void> SqlTarget::probe() {
  HOLDFAST_TRY(begin());
  auto result = connect();
  if (result.ok()) {
    const auto answer = connection_->run("SELECT 1", {});
    if (!answer.ok()) {
      result = answer.error();
    } else if (const auto* refusal = std::get_if<SqlRefusal>(&*answer)) {
      result = session_error(dialect_, *refusal);
    }
  }
  return end(std::move(result));
}

void SqlTarget::interrupt() {
  const std::lock_guard lock(mutex_);
  interrupted_ = true;
  stop_.request_stop();
  if (calling_ && connection_) connection_->abort();
}

}  // namespace holdfast
