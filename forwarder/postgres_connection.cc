#include "forwarder/postgres_connection.h"

#include <fmt/format.h>
#include <libpq-fe.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "forwarder/bounded_call.h"
#include "forwarder/resolve.h"
#include "forwarder/sql_refusal.h"
#include "forwarder/sql_session.h"

namespace holdfast {
namespace {

constexpr std::size_t kMostWords = 1024;
constexpr std::size_t kMostMessage = 1u << 30;  // of the protocol's: a signed 32-bit length, and some room
constexpr auto kIdleInTransaction = std::chrono::seconds(60);

std::int64_t milliseconds_of(Nanoseconds time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
}

std::string field(const PGresult* result, int code) {
  const char* text = ::PQresultErrorField(result, code);
  return text == nullptr ? "" : text;
}

SqlRefusal refusal_of(const PGresult* result) {
  SqlRefusal refusal;
  refusal.state = field(result, PG_DIAG_SQLSTATE);
  refusal.column = field(result, PG_DIAG_COLUMN_NAME);
  refusal.constraint = field(result, PG_DIAG_CONSTRAINT_NAME);
  refusal.words = field(result, PG_DIAG_MESSAGE_PRIMARY).substr(0, kMostWords);
  return refusal;
}

SqlRows rows_of(const PGresult* result) {
  SqlRows rows;
  rows.tag = ::PQcmdStatus(const_cast<PGresult*>(result));
  const int columns = ::PQnfields(result);
  rows.rows.resize(static_cast<std::size_t>(::PQntuples(result)));
  for (int row = 0; row < ::PQntuples(result); ++row) {
    auto& cells = rows.rows[static_cast<std::size_t>(row)];
    for (int column = 0; column < columns; ++column) {
      if (::PQgetisnull(result, row, column) != 0) {
        cells.emplace_back();
      } else {
        const auto size = static_cast<std::size_t>(::PQgetlength(result, row, column));
        cells.emplace_back(std::string(::PQgetvalue(result, row, column), size));
      }
    }
  }
  return rows;
}

using Connection = std::unique_ptr<PGconn, decltype(&::PQfinish)>;
using Answer = std::unique_ptr<PGresult, decltype(&::PQclear)>;

class PostgresConnection : public SqlConnection {
 public:
  PostgresConnection(Connection connection, const SqlServer& server)
      : connection_(std::move(connection)), watch_(::PQsocket(connection_.get()), server) {
    ::PQsetErrorVerbosity(connection_.get(), PQERRORS_DEFAULT);
    ::PQsetnonblocking(connection_.get(), 0);
    ::PQsetNoticeReceiver(connection_.get(), note, this);
  }

  Result<SqlAnswer> run(const std::string& statement, std::span<const SqlValue> values) override {
    warned_ = false;
    const Answer answer(values.empty() ? ask(statement) : ask(statement, values), &::PQclear);
    const ExecStatusType status = ::PQresultStatus(answer.get());
    if (::PQstatus(connection_.get()) != CONNECTION_OK) return lost();
    if (status == PGRES_FATAL_ERROR) return SqlAnswer(refusal_of(answer.get()));
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) return lost();
    SqlRows rows = rows_of(answer.get());
    if (warned_) rows.tag.clear();
    return SqlAnswer(std::move(rows));
  }
  bool alive() override { return !lost_ && ::PQstatus(connection_.get()) == CONNECTION_OK && !watch_.ended(); }
  void abort() override { watch_.abort(); }
  std::size_t max_statement() const override { return kMostMessage; }

 private:
  // Without a receiver of ours the library writes them to standard error.
  static void note(void* self, const PGresult* notice) {
    const std::string severity = field(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
    if (severity == "WARNING") static_cast<PostgresConnection*>(self)->warned_ = true;
  }

  PGresult* ask(const std::string& statement) {
    const auto call = watch_.call();
    return ::PQexec(connection_.get(), statement.c_str());
  }
  PGresult* ask(const std::string& statement, std::span<const SqlValue> values) {
    std::vector<const char*> texts;
    std::vector<int> sizes, forms;
    for (const SqlValue& value : values) {
      const ByteView view = value.view();
      const bool null = value.form == SqlValue::Form::null;
      texts.push_back(null ? nullptr : reinterpret_cast<const char*>(view.data()));
      sizes.push_back(static_cast<int>(view.size()));
      forms.push_back(value.form == SqlValue::Form::bytes ? 1 : 0);
    }
    const auto call = watch_.call();
    return ::PQexecParams(connection_.get(), statement.c_str(), static_cast<int>(values.size()), nullptr, texts.data(),
                          sizes.data(), forms.data(), 0);
  }

  Error lost() {
    lost_ = true;
    return {ErrorKind::unavailable, "the connection was lost"};
  }

  Connection connection_;
  SqlWatch watch_;
  bool warned_ = false;  // in the last statement
  bool lost_ = false;
};

// Everything that would otherwise come from the environment, or from a file in somebody's home.
std::vector<std::pair<const char*, std::string>> parameters(const SqlServer& server) {
  const bool tls = server.tls == SqlTls::verify_full;
  return {
      {"host", server.host},
      {"port", std::to_string(place_of(server).port)},
      {"dbname", server.database},
      {"user", server.user},
      {"passfile", "/nonexistent"},  // of /dev/null the library would complain on the standard error
      {"sslmode", tls ? "verify-full" : "disable"},
      {"sslrootcert", server.tls_ca.empty() ? kSystemCertificates : server.tls_ca},
      {"sslcert", server.tls_cert.empty() ? "/nonexistent" : server.tls_cert},
      {"sslkey", server.tls_key.empty() ? "/nonexistent" : server.tls_key},
      {"gssencmode", "disable"},
      {"target_session_attrs", "any"},
      {"client_encoding", "UTF8"},
      {"application_name", server.client_name},
      {"keepalives", "1"},
      {"keepalives_idle", "30"},
      {"keepalives_interval", "10"},
      {"keepalives_count", "3"},
  };
}

// Where to: addresses of the host, or of connect_to; the name in `host` is what a certificate is compared with. One
// empty one for a socket's path.
Result<std::vector<std::string>> addresses(const SqlServer& server) {
  constexpr std::size_t kMost = 8;
  const SqlPlace place = place_of(server);
  if (is_socket_path(place.host)) return std::vector<std::string>(1);
  std::vector<Candidate> found;
  NatsEndpoint endpoint;
  endpoint.host = place.host;
  endpoint.port = place.port;
  resolve(endpoint, kMost, found);
  if (found.empty()) return Error{ErrorKind::unavailable, "no address is known by the name"};
  std::vector<std::string> literals;
  for (const Candidate& candidate : found) {
    const std::string& literal = candidate.literal;
    literals.push_back(literal.starts_with('[') ? literal.substr(1, literal.size() - 2) : literal);
  }
  return literals;
}

Connection start(const SqlServer& server, const std::string& address, const SqlPassword& password) {
  const auto named = parameters(server);
  std::vector<const char*> names, texts;
  const auto add = [&](const char* name, const char* text) {
    names.push_back(name);
    texts.push_back(text);
  };
  for (const auto& [name, text] : named) add(name, text.c_str());
  if (!address.empty()) add("hostaddr", address.c_str());
  if (!password.empty()) add("password", password.c_str());
  names.push_back(nullptr);
  texts.push_back(nullptr);
  return {::PQconnectStartParams(names.data(), texts.data(), 0), &::PQfinish};
}

// False: not within its time, or refused.
bool see_through(PGconn* connection, Moment deadline) {
  PostgresPollingStatusType wants = PGRES_POLLING_WRITING;
  while (wants == PGRES_POLLING_READING || wants == PGRES_POLLING_WRITING) {
    const short events = wants == PGRES_POLLING_READING ? POLLIN : POLLOUT;
    pollfd look{::PQsocket(connection), events, 0};
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (look.fd < 0 || left.count() <= 0) return false;
    const int ready = ::poll(&look, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) return false;
    if (ready > 0) wants = ::PQconnectPoll(connection);
  }
  return wants == PGRES_POLLING_OK;
}

// The library tells no SQLSTATE of a connect, but puts it behind the severity when it is told to say nothing else.
Error connect_error(PGconn* connection, const SqlServer& server) {
  const std::string words = ::PQerrorMessage(connection);
  if (::PQconnectionNeedsPassword(connection) != 0)
    return {ErrorKind::unavailable, "credentials_refused: it wants a password"};
  for (const char* state : {"28P01", "28000", "3D000", "42501", "53300", "57P03"}) {
    if (words.find(std::string(":  ") + state) == std::string::npos) continue;
    SqlRefusal refusal;
    refusal.state = std::strcmp(state, "42501") == 0 ? "28000" : state;  // may not CONNECT to the database
    return session_error(SqlDialect::postgres, refusal);
  }
  if (server.tls == SqlTls::verify_full) {
    for (const std::string& file : {server.tls_ca, server.tls_cert, server.tls_key}) {
      if (!file.empty() && ::access(file.c_str(), R_OK) != 0)
        return {ErrorKind::unavailable, "file_unusable: a file of TLS cannot be read"};
    }
  }
  return {ErrorKind::unavailable, "no connection to the server"};
}

// Sources: PostgreSQL, "Client Connection Defaults", "Write Ahead Log".
std::string settings(const SqlServer& server) {
  return fmt::format(
      "SET statement_timeout = {}; SET lock_timeout = {}; SET idle_in_transaction_session_timeout = {};"
      "SET DateStyle = 'ISO'; SET TimeZone = 'UTC'; SET default_transaction_isolation = 'read committed';"
      "SELECT pg_catalog.set_config('synchronous_commit', 'on', false)"
      " WHERE pg_catalog.current_setting('synchronous_commit') IN ('off', 'local')",
      milliseconds_of(server.statement_limit), milliseconds_of(server.statement_limit / 3),
      milliseconds_of(kIdleInTransaction));
}

Result<std::unique_ptr<SqlConnection>> begin_session(Connection connection, const SqlServer& server) {
  auto session = std::make_unique<PostgresConnection>(std::move(connection), server);
  const auto set = session->run(settings(server), {});
  if (!set.ok()) return set.error();
  if (const auto* refusal = std::get_if<SqlRefusal>(&*set)) return session_error(SqlDialect::postgres, *refusal);
  return std::unique_ptr<SqlConnection>(std::move(session));
}

// Address after address, each with an even share of the time that is left: one that is silent hides no other.
Result<std::unique_ptr<SqlConnection>> connect(const SqlServer& server) {
  const Moment deadline = std::chrono::steady_clock::now() + server.connect_limit;
  const auto password = SqlPassword::read(server.password_file);
  if (!password.ok()) return password.error();
  const auto all = addresses(server);
  if (!all.ok()) return all.error();
  Error error{ErrorKind::unavailable, "no connection to the server"};
  for (std::size_t i = 0; i < all->size(); ++i) {
    Connection connection = start(server, (*all)[i], *password);
    if (!connection) return Error{ErrorKind::unavailable, "no memory for a connection"};
    ::PQsetErrorVerbosity(connection.get(), PQERRORS_SQLSTATE);
    const Moment now = std::chrono::steady_clock::now();
    const auto share = (deadline - now) / static_cast<std::int64_t>(all->size() - i);
    if (see_through(connection.get(), now + share)) return begin_session(std::move(connection), server);
    error = connect_error(connection.get(), server);
  }
  return error;
}

}  // namespace

OpenSql open_postgres(SqlServer server) {
  return [server = std::move(server)](const std::stop_token& stop) {
    return connect_within(server, stop, [server] { return connect(server); });
  };
}

}  // namespace holdfast
