// A database server, a relay before it, and tables of the test's own: the stage of the tests of SQL targets.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "forwarder/sql_schema.h"
#include "forwarder/sql_target.h"
#include "tests/forwarder/delivered.h"
#include "tests/support/database_server.h"
#include "tests/support/tcp_relay.h"

namespace holdfast {

// For the names of cases.
inline std::string dialect_name(SqlDialect dialect) {
  return dialect == SqlDialect::postgres ? "Postgres" : "Mariadb";
}

inline SqlColumn field_column(const std::string& name, bool required = false) {
  SqlColumn column;
  column.name = name;
  column.source = ColumnSource::field;
  column.field = *parse_field_path(name);
  column.required = required;
  return column;
}

inline SqlColumn column_of(const std::string& name, ColumnSource source) {
  SqlColumn column;
  column.name = name;
  column.source = source;
  return column;
}

inline EffectKey field_key(const std::string& path) {
  IdentityRule rule;
  rule.strategy = Strategy::payload_field;
  rule.field = *parse_field_path(path);
  return rule;
}

class SqlScene {
 public:
  explicit SqlScene(SqlDialect dialect)
      : dialect_(dialect), server_(shared_server(dialect)), relay_(server_.port()), prefix_(next_prefix()) {
    options.site = "truck-07";
    options.server = server_.address();
    options.server.port = static_cast<std::uint16_t>(relay_.port());
    options.server.connect_limit = std::chrono::seconds(30);
  }

  // A table's name that no other test has.
  std::string name(const std::string& of) const { return prefix_ + of; }

  // One that takes every subject.
  SqlTable table(const std::string& of, SqlMode mode, std::vector<SqlColumn> columns) const {
    SqlTable made;
    made.subjects = {">"};
    made.name = name(of);
    made.mode = mode;
    made.inbox = name("inbox");
    made.columns = std::move(columns);
    const bool keyed = mode == SqlMode::upsert || mode == SqlMode::insert_ignore || mode == SqlMode::insert;
    if (keyed) made.effect_key = EffectKey();
    return made;
  }

  // As `holdfast target schema` prints them.
  void create() const { server_.query(sql_schema(dialect_, options.tables)); }
  std::unique_ptr<SqlTarget> target() const { return std::make_unique<SqlTarget>(dialect_, options); }

  // "@name" is a table of this test.
  std::string query(std::string statement) const {
    for (std::size_t at = 0; (at = statement.find('@', at)) != std::string::npos;) statement.replace(at, 1, prefix_);
    return server_.query(statement);
  }

  SqlDialect dialect() const { return dialect_; }
  bool postgres() const { return dialect_ == SqlDialect::postgres; }
  DatabaseServer& server() { return server_; }
  TcpRelay& relay() { return relay_; }

  SqlTargetOptions options;

 private:
  static std::string next_prefix() {
    static std::atomic<int> number{0};
    return "t" + std::to_string(++number) + "_";
  }

  const SqlDialect dialect_;
  DatabaseServer& server_;
  TcpRelay relay_;
  const std::string prefix_;
};

// For cases that are asked of both.
class SqlTest : public ::testing::TestWithParam<SqlDialect> {
 protected:
  void SetUp() override {
    if (const std::string why = DatabaseServer::why_none(GetParam()); !why.empty()) GTEST_SKIP() << why;
    scene = std::make_unique<SqlScene>(GetParam());
  }
  std::unique_ptr<SqlScene> scene;
};

#define HOLDFAST_BOTH_DATABASES(Suite)                                                                   \
  INSTANTIATE_TEST_SUITE_P(Databases, Suite, ::testing::Values(SqlDialect::postgres, SqlDialect::mysql), \
                           [](const auto& chosen) { return dialect_name(chosen.param); })

}  // namespace holdfast
