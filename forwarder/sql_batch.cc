#include "forwarder/sql_batch.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "forwarder/sql_schema.h"
#include "forwarder/sql_statement.h"

namespace holdfast {
namespace {

using Places = std::vector<std::size_t>;  // of rows in the batch
using KeyOf = const std::string& (*)(const SqlRow&);

const std::string& delivery_key(const SqlRow& row) {
  return row.key;
}
const std::string& effect_key(const SqlRow& row) {
  return row.effect;
}

// What a key holds after an INSERT of new rows.
struct Holding {
  std::optional<std::size_t> claimed_by;  // a row of this batch
  bool known = true;                      // it was found
  std::string digest;                     // of another than this batch's, in hexadecimal; empty: none to compare
};
using Holdings = std::map<std::string_view, Holding>;

class Transaction {
 public:
  Transaction(SqlConnection& connection, const SqlBatch& batch)
      : connection_(connection), dialect_(batch.dialect), batch_(batch), table_(*batch.table), rows_(batch.rows) {}

  Result<SqlCarried> run() {
    const Result<void> done = carry();
    if (done.ok()) return SqlCarried(std::move(outcomes_));
    if (!refusal_) return done.error();
    SqlMeaning meaning = meaning_of(dialect_, *refusal_, into_table(table_).columns);
    if (meaning.blame == SqlBlame::session) return session_error(dialect_, *refusal_);
    // What cannot be rolled back is rolled back by the end of the session; the refusal stands either way.
    const auto rolled_back = connection_.run("ROLLBACK", {});
    if (!rolled_back.ok()) return rolled_back.error();
    return SqlCarried(std::move(meaning));
  }

 private:
  Result<void> carry() {
    HOLDFAST_TRY(ask(dialect_ == SqlDialect::mysql ? "START TRANSACTION" : "BEGIN", {}));
    outcomes_.assign(rows_.size(), accepted());
    HOLDFAST_TRY(write());
    HOLDFAST_TRY(ask("COMMIT", {}));
    // Rolled back after all, or committed with a warning that it may not be where it should.
    if (dialect_ == SqlDialect::postgres && rows_back_.tag != "COMMIT")
      return Error{ErrorKind::unavailable, "the outcome of the commit is not known"};
    return {};
  }

  Result<void> write() {
    const Places all = every_place();
    switch (table_.mode) {
      case SqlMode::inbox:
        return claim_in_inbox(all);
      case SqlMode::upsert:
        return upsert(all);
      case SqlMode::insert_ignore:
      case SqlMode::insert: {
        const auto holdings = insert_new(into_table(table_), table_.effect_column, effect_key, all, digest_in_table());
        if (!holdings.ok()) return holdings.error();
        judge(*holdings, effect_key, all, digest_in_table());
        return {};
      }
      case SqlMode::append:
        return insert(all);
    }
    return {};
  }

  bool digest_in_table() const { return table_.mode == SqlMode::insert; }

  Places every_place() const {
    Places all(rows_.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    return all;
  }

  // Only what was claimed now goes on to the effect. Another message may have had the effect already: its own is done.
  Result<void> claim_in_inbox(const Places& all) {
    const auto holdings =
        insert_new(into_inbox(table_, batch_.inbox_digest), kInboxKey, delivery_key, all, batch_.inbox_digest);
    if (!holdings.ok()) return holdings.error();
    judge(*holdings, delivery_key, all, batch_.inbox_digest);
    Places fresh;
    for (const std::size_t place : all) {
      if (outcomes_[place].kind == OutcomeKind::delivered) fresh.push_back(place);
    }
    if (!table_.effect_key) return insert(fresh);
    const auto effects = insert_new(into_table(table_), table_.effect_column, effect_key, fresh, false);
    return effects.ok() ? Result<void>() : effects.error();
  }

  // Of the two that are behind one key.
  bool is_other_content(const Holding& held, const SqlRow& row) const {
    if (held.claimed_by) return rows_[*held.claimed_by].digest != row.digest;
    return !held.digest.empty() && held.digest != to_hex(row.digest);
  }

  void judge(const Holdings& holdings, KeyOf key_of, const Places& places, bool digest) {
    for (const std::size_t place : places) {
      const Holding& held = holdings.at(key_of(rows_[place]));
      if (held.claimed_by == place) continue;
      if (!held.known) {
        outcomes_[place] = retry("contended");  // gone again: the next try finds out
      } else if (digest && is_other_content(held, rows_[place])) {
        outcomes_[place] = rejected(Reason::exists_otherwise);
      } else {
        outcomes_[place] = accepted(OutcomeKind::duplicate);
      }
    }
  }

  // Rows that have one effect key follow each other, so that the last one stands in the end.
  Result<void> upsert(const Places& all) {
    std::map<std::string_view, std::size_t> seen;
    std::vector<Places> turns;
    for (const std::size_t place : all) {
      const std::size_t turn = seen[rows_[place].effect]++;
      if (turn == turns.size()) turns.emplace_back();
      turns[turn].push_back(place);
    }
    for (const Places& turn : turns) {
      HOLDFAST_TRY(in_parts(turn, into_table(table_), [&](const Places& part) {
        return ask(upsert_statement(dialect_, table_, part.size()), values_for_table(part));
      }));
    }
    return {};
  }

  Result<void> insert(const Places& places) {
    const SqlInto into = into_table(table_);
    return in_parts(places, into, [&](const Places& part) {
      return ask(insert_statement(dialect_, into, part.size()), values_for_table(part));
    });
  }

  // Of several rows with one key the first goes; the others find it there.
  Result<Holdings> insert_new(const SqlInto& into, const std::string& key, KeyOf key_of, const Places& places,
                              bool digest) {
    Holdings holdings;
    Places first;
    for (const std::size_t place : places) {
      const auto [held, is_first] = holdings.try_emplace(key_of(rows_[place]));
      if (is_first) first.push_back(place);
      if (is_first) held->second.claimed_by = place;
    }
    const Result<void> done = in_parts(first, into, [&](const Places& part) -> Result<void> {
      return dialect_ == SqlDialect::postgres ? insert_unless_there(into, key, key_of, part, digest, holdings)
                                              : insert_or_look(into, key, key_of, part, digest, holdings);
    });
    if (!done.ok()) return done.error();
    return holdings;
  }

  Result<void> insert_unless_there(const SqlInto& into, const std::string& key, KeyOf key_of, const Places& part,
                                   bool digest, Holdings& holdings) {
    HOLDFAST_TRY(ask(insert_new_statement(dialect_, into, key, part.size()), values_for(into, part)));
    if (rows_back_.rows.size() == part.size()) return {};
    std::set<std::string, std::less<>> in;
    for (const auto& row : rows_back_.rows) in.insert(row.at(0).value_or(""));
    Places there;
    for (const std::size_t place : part) {
      const std::string& its = key_of(rows_[place]);
      if (in.contains(its)) continue;
      holdings.at(its) = {std::nullopt, !digest, ""};
      there.push_back(place);
    }
    if (digest) HOLDFAST_TRY(look(into, key, key_of, there, digest, holdings));
    return {};
  }

  // Refused for a duplicate as a whole, until those that are there have been taken out. A refusal that none of them
  // explains is that of another constraint.
  Result<void> insert_or_look(const SqlInto& into, const std::string& key, KeyOf key_of, Places part, bool digest,
                              Holdings& holdings) {
    while (!part.empty()) {
      const Result<void> inserted = ask(insert_new_statement(dialect_, into, key, part.size()), values_for(into, part));
      if (inserted.ok() || !refusal_ || !is_unique_violation(dialect_, *refusal_)) return inserted;
      const SqlRefusal duplicate = *std::exchange(refusal_, std::nullopt);
      HOLDFAST_TRY(look(into, key, key_of, part, digest, holdings));
      const auto gone = std::erase_if(
          part, [&](std::size_t place) { return !holdings.at(key_of(rows_[place])).claimed_by.has_value(); });
      if (gone > 0) continue;
      refusal_ = duplicate;
      return inserted;
    }
    return {};
  }

  // Which of them are there.
  Result<void> look(const SqlInto& into, const std::string& key, KeyOf key_of, const Places& part, bool digest,
                    Holdings& holdings) {
    std::vector<SqlValue> keys;
    for (const std::size_t place : part) keys.push_back(lent_text(key_of(rows_[place])));
    HOLDFAST_TRY(ask(existing_statement(dialect_, into.table, key, digest, part.size()), std::move(keys)));
    for (const auto& row : rows_back_.rows) {
      const auto held = holdings.find(row.at(0).value_or(""));
      if (held == holdings.end()) continue;
      held->second = {std::nullopt, true, digest ? row.at(1).value_or("") : ""};
    }
    return {};
  }

  template <typename Work>
  Result<void> in_parts(const Places& places, const SqlInto& into, Work work) {
    const std::size_t most = kMostValues / std::max<std::size_t>(1, into.columns.size());
    for (std::size_t from = 0; from < places.size(); from += most) {
      const std::size_t to = std::min(places.size(), from + most);
      HOLDFAST_TRY(work(Places(places.begin() + static_cast<std::ptrdiff_t>(from),
                               places.begin() + static_cast<std::ptrdiff_t>(to))));
    }
    return {};
  }

  static SqlValue lent_text(const std::string& text) { return {SqlValue::Form::text, {}, as_bytes(text)}; }

  std::vector<SqlValue> values_for(const SqlInto& into, const Places& places) const {
    return into.table == table_.name ? values_for_table(places) : values_for_inbox(places);
  }
  std::vector<SqlValue> values_for_inbox(const Places& places) const {
    std::vector<SqlValue> values;
    for (const std::size_t place : places) {
      values.push_back(lent_text(rows_[place].key));
      if (batch_.inbox_digest) values.push_back(sql_bytes(rows_[place].digest));
    }
    return values;
  }
  std::vector<SqlValue> values_for_table(const Places& places) const {
    std::vector<SqlValue> values;
    for (const std::size_t place : places) {
      const SqlRow& row = rows_[place];
      if (table_.effect_key) values.push_back(lent_text(row.effect));
      if (digest_in_table()) values.push_back(sql_bytes(row.digest));
      for (const SqlValue& value : row.values) values.push_back(sql_lent(value));
    }
    return values;
  }

  // The answer is in rows_back_, a refusal in refusal_.
  Result<void> ask(const std::string& statement, std::vector<SqlValue> values) {
    auto answer = connection_.run(statement, values);
    if (!answer.ok()) return answer.error();
    if (auto* refusal = std::get_if<SqlRefusal>(&*answer)) {
      refusal_ = std::move(*refusal);
      return Error{ErrorKind::unavailable, "refused"};
    }
    rows_back_ = std::get<SqlRows>(*std::move(answer));
    return {};
  }

  SqlConnection& connection_;
  const SqlDialect dialect_;
  const SqlBatch& batch_;
  const SqlTable& table_;
  const std::span<const SqlRow> rows_;
  std::vector<Outcome> outcomes_;
  SqlRows rows_back_;
  std::optional<SqlRefusal> refusal_;
};

}  // namespace

Result<SqlCarried> carry(SqlConnection& connection, const SqlBatch& batch) {
  return Transaction(connection, batch).run();
}

}  // namespace holdfast
