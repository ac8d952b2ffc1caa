// Tables of real databases as upstreams of the target contract.
#pragma once

#include <sstream>

#include "tests/forwarder/sql_scene.h"
#include "tests/forwarder/target_worlds.h"

namespace holdfast {

class SqlWorld : public TargetWorld {
 public:
  SqlWorld(SqlDialect dialect, SqlMode mode) : scene_(dialect), mode_(mode) {
    scene_.options.tables = {scene_.table(
        "held", mode, {column_of("wire_key", ColumnSource::key), column_of("body", ColumnSource::payload)})};
    scene_.create();
  }

  std::unique_ptr<Target> target() override { return scene_.target(); }
  std::multimap<std::string, std::string> upstream() override {
    const std::string hex = scene_.postgres() ? "encode(body, 'hex')" : "hex(body)";
    std::istringstream lines(scene_.query("SELECT wire_key, " + hex + " FROM @held"));
    std::multimap<std::string, std::string> copies;
    for (std::string line; std::getline(lines, line);) {
      const std::size_t bar = line.find('|');
      std::string payload;
      for (std::size_t at = bar + 1; at + 1 < line.size(); at += 2)
        payload.push_back(static_cast<char>(std::stoi(line.substr(at, 2), nullptr, 16)));
      copies.emplace(line.substr(0, bar), payload);
    }
    return copies;
  }
  bool tells_conflicts() const override { return mode_ != SqlMode::insert_ignore; }
  void break_upstream() override { scene_.relay().refuse(true); }
  void repair_upstream() override { scene_.relay().refuse(false); }
  bool hang(Target&) override {
    scene_.relay().swallow(true);
    return true;
  }

 private:
  SqlScene scene_;
  const SqlMode mode_;
};

inline std::vector<TargetCase> sql_worlds() {
  std::vector<TargetCase> worlds;
  for (const SqlDialect dialect : {SqlDialect::postgres, SqlDialect::mysql}) {
    for (const auto& [mode, name] : {std::pair(SqlMode::inbox, "Inbox"), std::pair(SqlMode::insert, "Insert"),
                                     std::pair(SqlMode::insert_ignore, "InsertIgnore")}) {
      worlds.push_back({dialect_name(dialect) + name,
                        [dialect, mode = mode] { return std::make_unique<SqlWorld>(dialect, mode); },
                        [dialect] { return DatabaseServer::why_none(dialect); }});
    }
  }
  return worlds;
}

}  // namespace holdfast
