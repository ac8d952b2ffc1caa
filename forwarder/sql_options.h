// A target in a database, as values: which server, and what becomes of a record in which table (docs/targets.md,
// "postgres and mysql"). Names of tables and columns have passed their rules here (sql_name.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spool/clock.h"
#include "spool/identity.h"

namespace holdfast {

enum class SqlDialect : std::uint8_t { postgres, mysql };

// What a record becomes:
// - inbox: its key is claimed in the inbox table; only a key that was claimed now goes on to the table, in the same
//   transaction.
// - upsert: the row of its effect key is made, or set to what the record says.
// - insert_ignore: the row of its effect key is made; one that is there stays, whatever it holds.
// - insert: likewise, but one that is there must be this very record's (content_digest), else the record is rejected.
// - append: a row, every time it is sent.
enum class SqlMode : std::uint8_t { inbox, upsert, insert_ignore, insert, append };

enum class ColumnSource : std::uint8_t {
  payload,       // its bytes
  payload_text,  // as text: UTF-8, or the record is rejected
  field,         // of the JSON payload; numbers as decimal text
  header,        // the first of that name, without regard to case
  key,           // as it travels
  subject,
  site,
  source,  // the name of the source
  stream,
  stream_sequence,
  timestamp,     // the stream's own, as the database's kind of timestamp, UTC
  timestamp_ns,  // likewise, nanoseconds since 1970
  spool_sequence,
  accepted_at,  // when it was committed here, by a clock that may be wrong
  clock,        // "trusted" or "untrusted": that clock
  priority,     // 0 to 9
};

struct SqlColumn {
  std::string name;
  ColumnSource source = ColumnSource::payload;
  FieldPath field{};      // field
  std::string header;     // header
  bool required = false;  // a record without it is rejected; otherwise it is NULL
  std::string type;       // for the printed schema; empty: what fits the source
};

// The identity of the effect, which follows the business operation. Nothing in it: the delivery's own key.
using EffectKey = std::optional<IdentityRule>;

struct SqlTable {
  std::vector<std::string> subjects;  // patterns; the first table that matches takes the record
  std::string name;                   // "refunds" or "ledger.refunds"
  SqlMode mode = SqlMode::inbox;
  std::string inbox = "inbox";          // inbox: the table of claims
  std::optional<EffectKey> effect_key;  // always there with upsert, insert_ignore and insert; never with append
  std::string effect_column = "effect_key";
  std::string version_column;  // upsert: what is there stays when its value here is larger
  std::vector<SqlColumn> columns;
  int line = 0;  // of the configuration
};

enum class SqlTls : std::uint8_t { off, verify_full };

struct SqlServer {
  std::string host;  // a name, an address, or the absolute path of a socket (postgres: of its directory)
  std::uint16_t port = 0;
  std::string database;
  std::string user;
  std::string password_file;  // read anew for each connection; empty: none
  SqlTls tls = SqlTls::verify_full;
  std::string tls_ca;  // empty: the system's
  std::string tls_cert;
  std::string tls_key;
  // A host:port to connect to in place of host and port, for certification. Names in certificates are compared with
  // `host` all the same (mysql: with this one, its library knows no other).
  std::string connect_to;
  std::string client_name = "holdfast";
  Nanoseconds connect_limit = std::chrono::seconds(10);
  // The server gives up a statement after so long, and a wait for a lock after a third of it. No answer, and nothing
  // that reached its machine, for half as long again: the connection is given up.
  Nanoseconds statement_limit = std::chrono::seconds(30);
};

struct SqlTargetOptions {
  std::string site;
  SqlServer server;
  std::vector<SqlTable> tables;
  std::size_t batch = 256;             // records of a transaction, at most
  std::size_t batch_bytes = 4u << 20;  // of what they make of the statement, likewise; one larger record goes alone
};

}  // namespace holdfast
