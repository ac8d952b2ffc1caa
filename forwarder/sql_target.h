// A database as a target: PostgreSQL or MariaDB, each record a row, once, by keys that the database arbitrates.
//
// The records of a window go to the table that takes their subject, in batches of one transaction each (sql_batch.h).
// `delivered` means that the COMMIT was answered. A COMMIT whose answer did not arrive is an error: nothing is known,
// the records come again, and their keys decide. A refusal that may be one record's is found out by sending halves, so
// that the others commit; what no table takes, or a table that cannot keep its promise (no unique key, no
// transactions), holds the lane.
//
// Errors of deliver and probe are `unavailable` and begin with their code. Threads: as Target.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>

#include "forwarder/bounded_call.h"
#include "forwarder/sql_batch.h"
#include "forwarder/target.h"

namespace holdfast {

OpenSql open_database(SqlDialect dialect, const SqlServer& server);

// Its place in `tables`, of the first that takes the subject.
std::optional<std::size_t> table_for(const std::vector<SqlTable>& tables, std::string_view subject);

class SqlTarget : public Target {
 public:
  SqlTarget(SqlDialect dialect, SqlTargetOptions options);
  SqlTarget(SqlDialect dialect, SqlTargetOptions options, OpenSql open);

  Result<void> deliver(std::span<const Delivery> window, const Report& report) override;
  Result<void> probe() override;
  // When no call is in progress, the next one returns at once.
  void interrupt() override;

 private:
  struct Looked {  // at a table
    Moment when;
    bool inbox_digest = false;
  };
  struct Lot;  // of one table

  Result<void> connect();
  Result<void> begin();
  Result<void> end(Result<void> result);
  Result<void> deliver_rows(std::span<const Delivery> window, const Report& report);
  Result<void> deliver_lot(Lot& lot);
  Result<void> carry_part(Lot& lot, std::span<const SqlRow> rows);
  Result<std::optional<Outcome>> look_at(std::size_t table);
  Result<std::variant<std::vector<struct SqlColumnFact>, Outcome>> facts_of(const std::string& table);
  bool interrupted();

  const SqlDialect dialect_;
  const SqlTargetOptions options_;
  const OpenSql open_;
  std::map<std::size_t, Looked> looked_;  // since the connection was made

  std::mutex mutex_;
  std::shared_ptr<SqlConnection> connection_;  // replaced by the calling thread only, under the mutex
  bool calling_ = false;
  bool interrupted_ = false;
  std::stop_source stop_;  // of a connect in progress
};

}  // namespace holdfast
