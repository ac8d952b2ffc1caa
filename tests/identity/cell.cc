#include "tests/identity/cell.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace holdfast {
namespace {

// What becomes of the messages by the rule alone: a new name is a record, a known one with the same content is a
// duplicate, with another a conflict.
struct Expected {
  std::uint64_t duplicates = 0;
  std::uint64_t conflicts = 0;
  std::multiset<std::string> bodies;  // that reach the hub, one for each record that is no conflict
};

Expected expected_of(const Strategy& strategy, const std::vector<Told>& told) {
  Expected expected;
  std::map<std::string, std::string> known;
  for (std::size_t place = 0; place < told.size(); ++place) {
    const std::string body = told[place].body();
    const auto [at, is_new] = known.emplace(strategy.name_of(place, told[place]), body);
    if (is_new) {
      expected.bodies.insert(body);
    } else {
      ++(at->second == body ? expected.duplicates : expected.conflicts);
    }
  }
  return expected;
}

std::uint64_t events_of(const std::vector<Told>& told) {
  std::set<std::string> ids;
  for (const Told& one : told) ids.insert(one.id);
  return ids.size();
}

class Judge {
 public:
  Judge(Stage& stage, Cell& cell) : stage_(stage), cell_(cell) {}

  void equal(const std::string& what, std::uint64_t found, std::uint64_t wanted) {
    if (found != wanted) cell_.flaws.push_back(fmt::format("{}: {}, not {}", what, found, wanted));
  }

  void holds(const std::string& what, bool it) {
    if (!it) cell_.flaws.push_back("not so: " + what);
  }

  // Every duplicate is explained: told twice, made to come again, or handed out again by the server, as it does when it
  // hears late of an acknowledgement.
  void intake(const Expected& expected, const Aftermath& aftermath) {
    const std::uint64_t duplicates = expected.duplicates + aftermath.repeats;
    stage_.soon("a verdict for every message", [&] {
      const Counts counts = stage_.counts();
      return counts.accepted + counts.conflicts + counts.refused + expected.duplicates >= cell_.messages &&
             counts.duplicates >= duplicates && stage_.at_rest();
    });
    cell_.counts = stage_.counts();
    cell_.records = stage_.taken();
    equal("accepted", cell_.counts.accepted, expected.bodies.size());
    equal("conflicts", cell_.counts.conflicts, expected.conflicts);
    equal("refused", cell_.counts.refused, 0);
    equal("records", cell_.records, expected.bodies.size() + expected.conflicts);
    equal("quarantined", stage_.box.status()["accounting"]["quarantined"].count(), expected.conflicts);
    holds("every repeat is recognised", cell_.counts.duplicates >= duplicates);
    holds("every duplicate is a repeat",
          cell_.counts.duplicates <= duplicates + aftermath.possible_repeats + cell_.counts.redelivered);
    holds("the books balance", stage_.box.audit()["balanced"].flag());
  }

  void hub(const Strategy& strategy, const Expected& expected, const Aftermath& aftermath) {
    std::multiset<std::string> bodies;
    std::set<std::string> keys;
    for (const SeenMessage& message : JetStreamClient(stage_.hub.url()).read_all(kHub)) {
      bodies.insert(message.payload);
      keys.insert(message.header("Nats-Msg-Id"));
    }
    cell_.hub = bodies.size();
    equal("keys in the hub's stream", keys.size(), cell_.hub);
    holds("the hub has each body once for each record", bodies == expected.bodies);
    holds("keys are those of the strategy", std::all_of(keys.begin(), keys.end(), [&](const std::string& key) {
            return key.starts_with(strategy.prefix);
          }));
    const std::vector<std::string> heard = stage_.ear.keys();
    cell_.resent = heard.size() - std::min(heard.size(), keys.size());
    holds("what was sent is in the hub's stream", std::set(heard.begin(), heard.end()) == keys);
    if (!aftermath.may_send_again) equal("sent again", cell_.resent, 0);
  }

  void promise(const Strategy& strategy) {
    if (cell_.events == cell_.hub) return;
    cell_.why = strategy.why_not_events;
    if (cell_.why.empty()) equal("hub messages for unique events", cell_.hub, cell_.events);
  }

 private:
  Stage& stage_;
  Cell& cell_;
};

}  // namespace

Cell play(const Strategy& strategy, const Fault& fault) {
  Stage stage(strategy);
  const Aftermath aftermath = fault.play(stage);
  const bool played = stage.flaws().empty();
  Cell cell;
  cell.messages = stage.told().size();
  cell.events = events_of(stage.told());
  const Expected expected = expected_of(strategy, stage.told());
  Judge judge(stage, cell);
  judge.intake(expected, aftermath);
  judge.hub(strategy, expected, aftermath);
  judge.promise(strategy);
  stage.terminate();
  if (!played) cell.flaws.clear();  // what a fault that was not done came to says nothing
  cell.flaws.insert(cell.flaws.begin(), stage.flaws().begin(), stage.flaws().end());
  if (!cell.flaws.empty()) cell.log = stage.box.log();
  return cell;
}

}  // namespace holdfast
