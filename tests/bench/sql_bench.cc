// A target in a database against its client library in a tight loop: the same statements, batch and server, nothing
// looked up, compared or made anew for a record.
#include <fmt/format.h>
#include <libpq-fe.h>
#include <mysql.h>

#include <algorithm>
#include <memory>

#include "forwarder/sql_row.h"
#include "forwarder/sql_schema.h"
#include "forwarder/sql_statement.h"
#include "forwarder/sql_target.h"
#include "spool/check.h"
#include "tests/bench/bench_spool.h"
#include "tests/bench/figures.h"
#include "tests/support/database_server.h"

namespace holdfast {
namespace {

constexpr std::size_t kWindow = 1024;

SqlTable bench_table() {
  SqlTable table;
  table.subjects = {">"};
  table.name = "effects";
  SqlColumn body;
  body.name = "body";
  body.source = ColumnSource::payload;
  table.columns = {body};
  return table;
}

// Records of new keys each time.
class Records {
 public:
  explicit Records(std::size_t count) : records_(count) {
    for (std::size_t i = 0; i < count; ++i) {
      records_[i].sequence = i + 1;
      records_[i].envelope.subject = "telemetry.a";
      records_[i].envelope.payload = Bytes(kPayload, 'x');
      records_[i].envelope.origin = {"EDGE", i + 1, 1};
    }
  }
  std::vector<Delivery> next() {
    std::vector<Delivery> window;
    for (const DueRecord& record : records_)
      window.push_back({&record, fmt::format("seq:{}:EDGE:{}:1714564800123456789", kBenchSite, ++keys_)});
    return window;
  }

 private:
  std::vector<DueRecord> records_;
  std::uint64_t keys_ = 0;
};

double rate(std::size_t count, Nanoseconds began) {
  return static_cast<double>(count) / seconds_since(began);
}

// Claims and effects of one batch as values, in the order of both statements.
struct Batch {
  std::vector<std::string> keys;
  std::array<std::uint8_t, 32> digest{};
  Bytes body = Bytes(kPayload, 'x');
};

class PlainPostgres {
 public:
  explicit PlainPostgres(const DatabaseServer& server) {
    const std::string where =
        fmt::format("host=127.0.0.1 port={} dbname={} user={} password='{}' sslmode=disable", server.port(),
                    DatabaseServer::kDatabase, DatabaseServer::kUser, DatabaseServer::kPassword);
    connection_.reset(::PQconnectdb(where.c_str()));
    CHECK(::PQstatus(connection_.get()) == CONNECTION_OK);
  }
  void send(const std::string& claim, const std::string& effect, const Batch& batch) {
    done(::PQexec(connection_.get(), "BEGIN"));
    const std::size_t rows = batch.keys.size();
    begin(rows * 2);
    for (const std::string& key : batch.keys) {
      add(key.c_str(), key.size(), 0);
      add(reinterpret_cast<const char*>(batch.digest.data()), batch.digest.size(), 1);
    }
    run(claim);
    begin(rows);
    for (std::size_t i = 0; i < rows; ++i) add(reinterpret_cast<const char*>(batch.body.data()), batch.body.size(), 1);
    run(effect);
    done(::PQexec(connection_.get(), "COMMIT"));
  }

 private:
  struct Finish {
    void operator()(PGconn* connection) const { ::PQfinish(connection); }
  };
  static void done(PGresult* result) {
    const auto status = ::PQresultStatus(result);
    CHECK(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK);
    ::PQclear(result);
  }
  void begin(std::size_t values) {
    for (auto* list : {&sizes_, &forms_}) list->clear(), list->reserve(values);
    values_.clear();
  }
  void add(const char* value, std::size_t size, int form) {
    values_.push_back(value);
    sizes_.push_back(static_cast<int>(size));
    forms_.push_back(form);
  }
  void run(const std::string& text) {
    done(::PQexecParams(connection_.get(), text.c_str(), static_cast<int>(values_.size()), nullptr, values_.data(),
                        sizes_.data(), forms_.data(), 0));
  }
  std::unique_ptr<PGconn, Finish> connection_;
  std::vector<const char*> values_;
  std::vector<int> sizes_, forms_;
};

class PlainMysql {
 public:
  explicit PlainMysql(const DatabaseServer& server) : connection_(::mysql_init(nullptr)) {
    CHECK(::mysql_real_connect(connection_.get(), "127.0.0.1", DatabaseServer::kUser, DatabaseServer::kPassword,
                               DatabaseServer::kDatabase, static_cast<unsigned>(server.port()), nullptr, 0) != nullptr);
  }
  ~PlainMysql() {
    for (MYSQL_STMT* statement : {claim_, effect_})
      if (statement != nullptr) ::mysql_stmt_close(statement);
  }
  PlainMysql(const PlainMysql&) = delete;
  PlainMysql& operator=(const PlainMysql&) = delete;

  void send(const std::string& claim, const std::string& effect, const Batch& batch) {
    if (claim_ == nullptr) claim_ = prepared(claim);
    if (effect_ == nullptr) effect_ = prepared(effect);
    query("START TRANSACTION");
    std::vector<MYSQL_BIND> claims, effects;
    for (const std::string& key : batch.keys) {
      claims.push_back(bound(key.data(), key.size(), MYSQL_TYPE_STRING));
      claims.push_back(bound(batch.digest.data(), batch.digest.size(), MYSQL_TYPE_BLOB));
      effects.push_back(bound(batch.body.data(), batch.body.size(), MYSQL_TYPE_BLOB));
    }
    run(claim_, claims);
    run(effect_, effects);
    query("COMMIT");
  }

 private:
  struct Close {
    void operator()(MYSQL* connection) const { ::mysql_close(connection); }
  };
  MYSQL_STMT* prepared(const std::string& text) {
    MYSQL_STMT* statement = ::mysql_stmt_init(connection_.get());
    CHECK(::mysql_stmt_prepare(statement, text.data(), text.size()) == 0);
    return statement;
  }
  static MYSQL_BIND bound(const void* value, std::size_t size, enum_field_types type) {
    MYSQL_BIND bind{};
    bind.buffer_type = type;
    bind.buffer = const_cast<void*>(value);
    bind.buffer_length = static_cast<unsigned long>(size);
    return bind;
  }
  void query(const std::string& text) { CHECK(::mysql_real_query(connection_.get(), text.data(), text.size()) == 0); }
  static void run(MYSQL_STMT* statement, std::vector<MYSQL_BIND>& binds) {
    for (MYSQL_BIND& bind : binds) {
      bind.length_value = bind.buffer_length;
      bind.length = &bind.length_value;
    }
    CHECK(::mysql_stmt_bind_param(statement, binds.data()) == 0);
    CHECK(::mysql_stmt_execute(statement) == 0);
  }
  std::unique_ptr<MYSQL, Close> connection_;
  MYSQL_STMT* claim_ = nullptr;
  MYSQL_STMT* effect_ = nullptr;
};

class Drain {
 public:
  Drain(SqlDialect dialect, std::size_t count)
      : dialect_(dialect), count_(count), server_({.dialect = dialect, .syncs = true}), records_(kWindow) {
    server_.query(sql_schema(dialect, {bench_table()}));
  }

  double ours(std::size_t batch) {
    empty();
    SqlTargetOptions options;
    options.site = kBenchSite;
    options.server = server_.address();
    options.tables = {bench_table()};
    options.batch = batch;
    SqlTarget target(dialect_, options);
    CHECK(target.probe().ok());
    const Nanoseconds began = system_clock().monotonic();
    std::size_t delivered = 0;
    while (delivered < count_) {
      const std::vector<Delivery> window = records_.next();
      CHECK(target
                .deliver(window,
                         [&](std::size_t, const Outcome& outcome) {
                           CHECK(outcome.kind == OutcomeKind::delivered);
                           ++delivered;
                         })
                .ok());
    }
    return rate(delivered, began);
  }

  template <typename Plain>
  double plain(std::size_t batch) {
    empty();
    Plain client(server_);
    const SqlTable table = bench_table();
    const std::string claim = insert_new_statement(dialect_, into_inbox(table, true), kInboxKey, batch);
    const std::string effect = insert_statement(dialect_, into_table(table), batch);
    const Nanoseconds began = system_clock().monotonic();
    Batch values;
    std::size_t sent = 0;
    while (sent < count_) {
      values.keys.clear();
      while (values.keys.size() < batch)
        values.keys.push_back(fmt::format("seq:{}:PLAIN:{}:1714564800123456789", kBenchSite, ++sent));
      client.send(claim, effect, values);
    }
    return rate(sent, began);
  }

 private:
  void empty() const { server_.query("TRUNCATE TABLE inbox; TRUNCATE TABLE effects"); }

  const SqlDialect dialect_;
  const std::size_t count_;
  DatabaseServer server_;
  Records records_;
};

template <typename Plain>
void measure(SqlDialect dialect, const std::string& name, const Scale& scale) {
  if (const std::string why = DatabaseServer::why_none(dialect); !why.empty()) return;
  constexpr std::size_t kUsual = 256;
  Drain drain(dialect, scale.quick ? 20'480 : 102'400);
  std::vector<std::size_t> batches{kUsual};
  if (!scale.quick) batches.insert(batches.end(), {16, 64, 512, 1024});
  for (const std::size_t batch : batches) {
    const std::string suffix = batch == kUsual ? "" : "_batch_" + std::to_string(batch);
    const Pair pair = alternate(
        scale.quick ? 3 : 5, [&] { return drain.ours(batch); }, [&] { return drain.plain<Plain>(batch); });
    report(name + suffix, pair.ours, pair.limit, "records/s");
  }
}

}  // namespace

void measure_databases(const Scale& scale) {
  measure<PlainPostgres>(SqlDialect::postgres, "drain_postgres", scale);
  measure<PlainMysql>(SqlDialect::mysql, "drain_mysql", scale);
}

}  // namespace holdfast
