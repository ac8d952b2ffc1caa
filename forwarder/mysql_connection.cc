#include "forwarder/mysql_connection.h"

#include <fmt/format.h>
#include <mysql.h>

#include <algorithm>
#include <list>
#include <mutex>
#include <utility>
#include <vector>

#include "crypto/text.h"
#include "forwarder/sql_refusal.h"
#include "forwarder/sql_session.h"

namespace holdfast {
namespace {

constexpr std::size_t kMostWords = 1024;
constexpr std::size_t kMostPrepared = 16;       // of a session: a table's statements, for a full batch and what is left
constexpr std::size_t kPacketMargin = 4096;     // of a packet that is not the statement's own
constexpr std::size_t kLeastPacket = 1u << 20;  // of a server that does not tell
constexpr auto kIdleInTransaction = std::chrono::seconds(60);
// Errors of the library's own: the session is over.
constexpr unsigned kFirstOwnError = 2000, kLastOwnError = 2999;

std::int64_t seconds_of(Nanoseconds time) {
  return std::max<std::int64_t>(1, std::chrono::duration_cast<std::chrono::seconds>(time).count());
}

using Connection = std::unique_ptr<MYSQL, decltype(&::mysql_close)>;
struct CloseStatement {
  void operator()(MYSQL_STMT* statement) const { ::mysql_stmt_close(statement); }
};
using Statement = std::unique_ptr<MYSQL_STMT, CloseStatement>;
struct FreeResult {
  void operator()(MYSQL_RES* result) const { ::mysql_free_result(result); }
};
using ResultSet = std::unique_ptr<MYSQL_RES, FreeResult>;

SqlRefusal refusal_of(unsigned number, const char* state, const char* words) {
  SqlRefusal refusal;
  refusal.state = state;
  refusal.number = static_cast<int>(number);
  refusal.words = std::string(words).substr(0, kMostWords);
  return refusal;
}

class MysqlConnection : public SqlConnection {
 public:
  MysqlConnection(Connection connection, const SqlServer& server)
      : connection_(std::move(connection)), watch_(::mysql_get_socket(connection_.get()), server) {}

  Result<SqlAnswer> run(const std::string& statement, std::span<const SqlValue> values) override {
    const auto call = watch_.call();
    return values.empty() ? ask(statement) : ask(statement, values);
  }
  bool alive() override { return !lost_ && !watch_.ended(); }
  void abort() override { watch_.abort(); }
  std::size_t max_statement() const override { return max_packet_; }

  // Of a session that begins.
  Result<void> begin(const SqlServer& server);

 private:
  struct Prepared {
    std::string text;
    Statement statement;
  };

  Result<SqlAnswer> ask(const std::string& statement);
  Result<SqlAnswer> ask(const std::string& statement, std::span<const SqlValue> values);
  Result<SqlAnswer> read_rows(MYSQL_STMT* statement);
  Result<SqlAnswer> failed(unsigned number, const char* state, const char* words);
  Result<SqlAnswer> failed() {
    MYSQL* const at = connection_.get();
    return failed(::mysql_errno(at), ::mysql_sqlstate(at), ::mysql_error(at));
  }
  Result<SqlAnswer> failed(MYSQL_STMT* at) {
    return failed(::mysql_stmt_errno(at), ::mysql_stmt_sqlstate(at), ::mysql_stmt_error(at));
  }

  Connection connection_;
  SqlWatch watch_;
  std::list<Prepared> prepared_;  // the one that was used last in front; goes before the connection
  std::size_t max_packet_ = kLeastPacket;
  bool lost_ = false;
};

Result<SqlAnswer> MysqlConnection::failed(unsigned number, const char* state, const char* words) {
  if (number == 0 || (number >= kFirstOwnError && number <= kLastOwnError)) {
    lost_ = true;
    return Error{ErrorKind::unavailable, "the connection was lost"};
  }
  return SqlAnswer(refusal_of(number, state, words));
}

Result<SqlAnswer> MysqlConnection::ask(const std::string& statement) {
  if (::mysql_real_query(connection_.get(), statement.data(), statement.size()) != 0) return failed();
  const ResultSet result(::mysql_store_result(connection_.get()));
  if (!result) return ::mysql_field_count(connection_.get()) == 0 ? Result<SqlAnswer>(SqlAnswer(SqlRows())) : failed();
  SqlRows rows;
  const unsigned columns = ::mysql_num_fields(result.get());
  while (MYSQL_ROW row = ::mysql_fetch_row(result.get())) {
    const unsigned long* const sizes = ::mysql_fetch_lengths(result.get());
    auto& cells = rows.rows.emplace_back();
    for (unsigned i = 0; i < columns; ++i)
      cells.push_back(row[i] == nullptr ? SqlCell() : SqlCell(std::string(row[i], sizes[i])));
  }
  return SqlAnswer(std::move(rows));
}

Result<SqlAnswer> MysqlConnection::ask(const std::string& text, std::span<const SqlValue> values) {
  const auto known =
      std::find_if(prepared_.begin(), prepared_.end(), [&](const auto& one) { return one.text == text; });
  if (known != prepared_.end()) {
    prepared_.splice(prepared_.begin(), prepared_, known);
  } else {
    Statement made(::mysql_stmt_init(connection_.get()));
    if (!made) return failed();
    if (::mysql_stmt_prepare(made.get(), text.data(), text.size()) != 0) return failed(made.get());
    prepared_.push_front({text, std::move(made)});
    if (prepared_.size() > kMostPrepared) prepared_.pop_back();
  }
  MYSQL_STMT* const statement = prepared_.front().statement.get();
  std::vector<MYSQL_BIND> binds(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const ByteView view = values[i].view();
    MYSQL_BIND& bind = binds[i];
    bind.buffer_type = values[i].form == SqlValue::Form::null    ? MYSQL_TYPE_NULL
                       : values[i].form == SqlValue::Form::bytes ? MYSQL_TYPE_BLOB
                                                                 : MYSQL_TYPE_STRING;
    bind.buffer = const_cast<std::uint8_t*>(view.data());
    bind.buffer_length = static_cast<unsigned long>(view.size());
    bind.length_value = bind.buffer_length;
    bind.length = &bind.length_value;
  }
  if (::mysql_stmt_bind_param(statement, binds.data()) != 0) return failed(statement);
  if (::mysql_stmt_execute(statement) != 0) return failed(statement);
  return ::mysql_stmt_field_count(statement) == 0 ? Result<SqlAnswer>(SqlAnswer(SqlRows())) : read_rows(statement);
}

// All of them, as text, each cell as long as the longest of its column.
Result<SqlAnswer> MysqlConnection::read_rows(MYSQL_STMT* statement) {
  const my_bool wanted = 1;
  ::mysql_stmt_attr_set(statement, STMT_ATTR_UPDATE_MAX_LENGTH, &wanted);
  if (::mysql_stmt_store_result(statement) != 0) return failed(statement);
  const ResultSet about(::mysql_stmt_result_metadata(statement));
  const unsigned columns = about ? ::mysql_num_fields(about.get()) : 0;
  std::vector<MYSQL_BIND> binds(columns);
  std::vector<std::string> buffers(columns);
  for (unsigned i = 0; i < columns; ++i) {
    buffers[i].resize(::mysql_fetch_field_direct(about.get(), i)->max_length + 1);
    binds[i].buffer_type = MYSQL_TYPE_STRING;
    binds[i].buffer = buffers[i].data();
    binds[i].buffer_length = static_cast<unsigned long>(buffers[i].size());
    binds[i].length = &binds[i].length_value;
    binds[i].is_null = &binds[i].is_null_value;
  }
  if (columns == 0 || ::mysql_stmt_bind_result(statement, binds.data()) != 0) return failed(statement);
  SqlRows rows;
  int fetched = 0;
  while ((fetched = ::mysql_stmt_fetch(statement)) == 0) {
    auto& cells = rows.rows.emplace_back();
    for (unsigned i = 0; i < columns; ++i)
      cells.push_back(binds[i].is_null_value != 0 ? SqlCell() : SqlCell(buffers[i].substr(0, binds[i].length_value)));
  }
  Result<SqlAnswer> answer =
      fetched == MYSQL_NO_DATA ? Result<SqlAnswer>(SqlAnswer(std::move(rows))) : failed(statement);
  ::mysql_stmt_free_result(statement);
  return answer;
}

// Sources: MariaDB, "SQL_MODE", "Server System Variables". The last two are not in every server.
Result<void> MysqlConnection::begin(const SqlServer& server) {
  const auto limit = seconds_of(server.statement_limit);
  const std::string needed = fmt::format(
      "SET SESSION sql_mode = 'STRICT_ALL_TABLES,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,"
      "ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION', time_zone = '+00:00', autocommit = 1,"
      " innodb_lock_wait_timeout = {}",
      std::max<std::int64_t>(1, limit / 3));
  for (const std::string& set :
       {needed, std::string("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"),
        fmt::format("SET SESSION max_statement_time = {}", limit),
        fmt::format("SET SESSION idle_transaction_timeout = {}", seconds_of(kIdleInTransaction))}) {
    constexpr int kUnknownVariable = 1193;
    const auto answer = run(set, {});
    if (!answer.ok()) return answer.error();
    const auto* refusal = std::get_if<SqlRefusal>(&*answer);
    if (refusal != nullptr && refusal->number != kUnknownVariable) return session_error(SqlDialect::mysql, *refusal);
  }
  const auto answer = run("SELECT @@max_allowed_packet", {});
  if (!answer.ok()) return answer.error();
  const auto* rows = std::get_if<SqlRows>(&*answer);
  if (rows == nullptr || rows->rows.empty() || !rows->rows[0][0]) return {};
  const auto told = parse_decimal<std::size_t>(*rows->rows[0][0]);
  if (told && *told > 2 * kPacketMargin) max_packet_ = *told - kPacketMargin;
  return {};
}

void set_options(MYSQL* connection, const SqlServer& server) {
  const bool tls = server.tls == SqlTls::verify_full;
  const auto set = [&](mysql_option option, const void* value) { ::mysql_options(connection, option, value); };
  // Half of the limit, so that a second address gets its turn.
  const auto connect_seconds = static_cast<unsigned>(seconds_of(server.connect_limit / 2));
  const auto call_seconds = static_cast<unsigned>(seconds_of(server.statement_limit * 3 / 2));
  const my_bool verify = tls ? 1 : 0;
  const unsigned local_files = 0;
  const unsigned protocol = is_socket_path(place_of(server).host) ? MYSQL_PROTOCOL_SOCKET : MYSQL_PROTOCOL_TCP;
  set(MYSQL_OPT_CONNECT_TIMEOUT, &connect_seconds);
  set(MYSQL_OPT_READ_TIMEOUT, &call_seconds);
  set(MYSQL_OPT_WRITE_TIMEOUT, &call_seconds);
  set(MYSQL_OPT_LOCAL_INFILE, &local_files);
  set(MYSQL_OPT_PROTOCOL, &protocol);
  set(MYSQL_SET_CHARSET_NAME, "utf8mb4");
  set(MYSQL_OPT_SSL_ENFORCE, &verify);
  set(MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verify);
  if (tls) set(MYSQL_OPT_SSL_CA, server.tls_ca.empty() ? kSystemCertificates : server.tls_ca.c_str());
  if (tls && !server.tls_cert.empty()) set(MYSQL_OPT_SSL_CERT, server.tls_cert.c_str());
  if (tls && !server.tls_key.empty()) set(MYSQL_OPT_SSL_KEY, server.tls_key.c_str());
  ::mysql_options4(connection, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name", server.client_name.c_str());
}

Error connect_error(MYSQL* connection) {
  const unsigned number = ::mysql_errno(connection);
  if (number >= kFirstOwnError && number <= kLastOwnError)
    return {ErrorKind::unavailable,
            fmt::format("no connection to the server (error {} of the client library)", number)};
  return session_error(SqlDialect::mysql, refusal_of(number, "", ""));
}

Result<std::unique_ptr<SqlConnection>> connect(const SqlServer& server) {
  const auto password = SqlPassword::read(server.password_file);
  if (!password.ok()) return password.error();
  Connection connection(::mysql_init(nullptr), &::mysql_close);
  if (!connection) return Error{ErrorKind::unavailable, "no memory for a connection"};
  set_options(connection.get(), server);
  const SqlPlace place = place_of(server);
  const bool by_path = is_socket_path(place.host);
  const auto* made = ::mysql_real_connect(connection.get(), by_path ? nullptr : place.host.c_str(), server.user.c_str(),
                                          password->c_str(), server.database.c_str(), by_path ? 0 : place.port,
                                          by_path ? place.host.c_str() : nullptr, 0);
  if (made == nullptr) return connect_error(connection.get());
  auto session = std::make_unique<MysqlConnection>(std::move(connection), server);
  HOLDFAST_TRY(session->begin(server));
  return std::unique_ptr<SqlConnection>(std::move(session));
}

}  // namespace

OpenSql open_mysql(SqlServer server) {
  static std::once_flag once;  // not for threads, says its manual
  std::call_once(once, [] { ::mysql_server_init(0, nullptr, nullptr); });
  return [server = std::move(server)](const std::stop_token& stop) {
    return connect_within(server, stop, [server] { return connect(server); });
  };
}

}  // namespace holdfast
