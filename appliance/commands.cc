#include "appliance/commands.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "appliance/status_answer.h"
#include "crypto/text.h"
#include "spool/subject.h"

namespace holdfast {
namespace {

constexpr std::size_t kUsuallyListed = 100;
constexpr std::size_t kMinIdDigits = 4;
constexpr std::size_t kMaxReason = 200;

Error invalid(std::string text) {
  return {ErrorKind::invalid, std::move(text)};
}

TargetNames names_of(const Spool& spool) {
  return [&spool](TargetNumber target) { return spool.target_name(target); };
}

// The number of a name that is known; a command never makes a new one.
Result<TargetNumber> known_target(const Spool& spool, const std::string& name, bool configured) {
  for (const TargetStatus& target : spool.status().targets) {
    if (target.name != name) continue;
    if (configured && !target.active) return invalid("target " + name + " is not in the configuration");
    return target.number;
  }
  return Error{ErrorKind::not_found, "no target is called " + name};
}

Result<std::string> parse_id(std::string id) {
  const bool hex =
      std::all_of(id.begin(), id.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  if (!hex || id.size() < kMinIdDigits || id.size() > 64)
    return invalid("a record is named by 4 to 64 hexadecimal digits of its id, as `spool list` shows it");
  return id;
}

std::size_t limit_of(const Json& arguments) {
  const std::uint64_t asked = arguments["limit"].count();
  return asked == 0 ? kUsuallyListed : static_cast<std::size_t>(std::min<std::uint64_t>(asked, kMaxPage));
}

// No sequence is above what a database can hold.
Sequence after_of(const Json& arguments) {
  return std::min<Sequence>(arguments["after"].count(), std::numeric_limits<std::int64_t>::max());
}

// Lists tell where to go on: `next` is given back as `after`; 0 at the end.
template <typename Record, typename Show>
Json page(const std::vector<Record>& records, std::size_t limit, Show show) {
  Json list{Json::List()};
  for (const Record& record : records) list.add(show(record));
  Json json;
  json.set("records", std::move(list));
  json.set("next", records.size() < limit ? Sequence{0} : records.back().sequence);
  return json;
}

Json changed(std::uint64_t count) {
  Json json;
  json.set("changed", count);
  return json;
}

Result<Json> status(const Premises& premises, const Json&) {
  return status_answer(premises.status());
}

Result<Json> audit(const Premises& premises, const Json&) {
  const auto report = premises.spool.audit();
  if (!report) return report.error();
  return audit_answer(*report);
}

Result<Json> spool_list(const Premises& premises, const Json& arguments) {
  const std::size_t limit = limit_of(arguments);
  const auto records = premises.spool.list(after_of(arguments), limit);
  if (!records) return records.error();
  return page(*records, limit,
              [names = names_of(premises.spool)](const auto& one) { return summary_answer(one, names); });
}

Result<Json> spool_show(const Premises& premises, const Json& arguments) {
  const auto id = parse_id(arguments["id"].text());
  if (!id) return id.error();
  const auto record = premises.spool.show(*id);
  if (!record) return record.error();
  return opened_answer(*record, names_of(premises.spool));
}

Result<Json> spool_verify(const Premises& premises, const Json& arguments) {
  Json bad{Json::List()};
  const auto note = [&bad, names = names_of(premises.spool)](const RecordSummary& record, Reason reason) {
    Json one = summary_answer(record, names);
    one.set("reason", reason_text(reason));
    bad.add(std::move(one));
  };
  const auto next = premises.spool.verify(after_of(arguments), limit_of(arguments), note);
  if (!next) return next.error();
  Json json;
  json.set("bad", std::move(bad));
  json.set("next", *next);
  return json;
}

Result<Json> spool_retarget(const Premises& premises, const Json& arguments) {
  const auto from = known_target(premises.spool, arguments["from"].text(), false);
  if (!from) return from.error();
  const auto to = known_target(premises.spool, arguments["to"].text(), true);
  if (!to) return to.error();
  if (*from == *to) return invalid("both names are the same target");
  const auto count = premises.spool.retarget(*from, *to);
  if (!count) return count.error();
  return changed(*count);
}

Result<Json> spool_discard(const Premises& premises, const Json& arguments) {
  const std::string& reason = arguments["reason"].text();
  if (reason.empty() || reason.size() > kMaxReason)
    return invalid("a reason of 1 to 200 bytes must be given; it goes to the log");
  const auto filter = parse_filter(arguments["filter"], premises.spool);
  if (!filter) return filter.error();
  if (!arguments["dry_run"].is_null() && !arguments["dry_run"].is_flag()) return invalid("dry_run is true or false");
  const bool dry_run = arguments["dry_run"].flag();
  const auto count = premises.spool.discard(*filter, dry_run);
  if (!count) return count.error();
  Json json = changed(*count);
  json.set("dry_run", dry_run);
  return json;
}

Result<Json> quarantine_list(const Premises& premises, const Json& arguments) {
  const std::size_t limit = limit_of(arguments);
  const auto records = premises.spool.list_quarantine(after_of(arguments), limit);
  if (!records) return records.error();
  return page(*records, limit,
              [names = names_of(premises.spool)](const auto& one) { return quarantined_answer(one, names); });
}

Result<Json> quarantine_show(const Premises& premises, const Json& arguments) {
  const auto id = parse_id(arguments["id"].text());
  if (!id) return id.error();
  const auto record = premises.spool.show_quarantined(*id);
  if (!record) return record.error();
  return opened_answer(*record, names_of(premises.spool));
}

Result<Json> quarantine_requeue(const Premises& premises, const Json& arguments) {
  const auto filter = parse_filter(arguments["filter"], premises.spool);
  if (!filter) return filter.error();
  const auto count = premises.spool.requeue(*filter, [&](const Envelope& envelope) -> std::optional<RouteNumber> {
    const auto routed = premises.router.route(envelope);
    const Routed* way = std::get_if<Routed>(&routed);
    return way == nullptr ? std::nullopt : std::optional(way->route);
  });
  if (!count) return count.error();
  return changed(*count);
}

Result<Json> quarantine_drop(const Premises& premises, const Json& arguments) {
  const auto filter = parse_filter(arguments["filter"], premises.spool);
  if (!filter) return filter.error();
  const auto count = premises.spool.drop_quarantined(*filter);
  if (!count) return count.error();
  return changed(*count);
}

template <TargetOrder order>
Result<Json> target_order(const Premises& premises, const Json& arguments) {
  HOLDFAST_TRY(premises.order(arguments["target"].text(), order));
  Json json;
  json.set("target", arguments["target"].text());
  return json;
}

struct Command {
  std::string_view name;
  Right right;
  Result<Json> (*run)(const Premises&, const Json&);
};

constexpr std::array kCommands{
    Command{"status", Right::read, status},
    Command{"audit", Right::read, audit},
    Command{"spool list", Right::read, spool_list},
    Command{"spool show", Right::change, spool_show},
    Command{"spool verify", Right::change, spool_verify},
    Command{"spool retarget", Right::change, spool_retarget},
    Command{"spool discard", Right::change, spool_discard},
    Command{"quarantine list", Right::read, quarantine_list},
    Command{"quarantine show", Right::change, quarantine_show},
    Command{"quarantine requeue", Right::change, quarantine_requeue},
    Command{"quarantine drop", Right::change, quarantine_drop},
    Command{"target hold", Right::change, target_order<TargetOrder::hold>},
    Command{"target resume", Right::change, target_order<TargetOrder::resume>},
    Command{"target kick", Right::change, target_order<TargetOrder::kick>},
};

const Command* find_command(std::string_view name) {
  const auto found =
      std::find_if(kCommands.begin(), kCommands.end(), [&](const Command& command) { return command.name == name; });
  return found == kCommands.end() ? nullptr : &*found;
}

// One word of a filter into its place.
Result<void> add_condition(RecordFilter& filter, const std::string& word, const Spool& spool) {
  if (word == "all") {
    filter.everything = true;
    return {};
  }
  const std::size_t sign = word.find('=');
  const std::string name = word.substr(0, sign);
  const std::string value = sign == std::string::npos ? "" : word.substr(sign + 1);
  if (name == "target") {
    const auto target = known_target(spool, value, false);
    if (!target) return target.error();
    filter.target = *target;
  } else if (name == "id") {
    const auto id = parse_id(value);
    if (!id) return id.error();
    filter.id_prefix = *id;
  } else if (name == "subject") {
    if (!valid_pattern(value)) return invalid("subject= takes a pattern like telemetry.>");
    filter.subject = value;
  } else if (name == "sequence") {
    filter.sequence = parse_decimal<Sequence>(value);
    if (!filter.sequence) return invalid("sequence= takes a spool sequence");
  } else {
    return invalid("a filter is made of target=NAME, id=HEX, subject=PATTERN, sequence=N, or all");
  }
  return {};
}

}  // namespace

std::string about(const Json& arguments) {
  std::string text;
  const auto add = [&](const std::string& word) { text += (text.empty() ? "" : " ") + word; };
  for (const char* name : {"id", "from", "to", "target"}) {
    const std::string& value = arguments[name].text();
    if (!value.empty()) add(std::string(name) + "=" + value);
  }
  for (const Json& word : arguments["filter"].list()) {
    const std::string name = word.text().substr(0, word.text().find('='));
    if (name == "subject") {
      add("subject=(a pattern)");
    } else if (name == "all" || name == "id" || name == "target" || name == "sequence") {
      add(word.text());
    }
  }
  return text;
}

std::optional<Right> right_of(std::string_view command) {
  const Command* found = find_command(command);
  if (found == nullptr) return std::nullopt;
  return found->right;
}

bool may(Right right, unsigned uid, unsigned own) {
  return right == Right::read || uid == 0 || uid == own;
}

Result<Json> run_command(const Premises& premises, std::string_view command, const Json& arguments) {
  const Command* found = find_command(command);
  if (found == nullptr) return Error{ErrorKind::not_found, "there is no such command"};
  return found->run(premises, arguments);
}

Result<RecordFilter> parse_filter(const Json& words, const Spool& spool) {
  RecordFilter filter;
  std::set<std::string> names;
  for (const Json& word : words.list()) {
    if (!names.insert(word.text().substr(0, word.text().find('='))).second)
      return invalid("a condition of a filter can be given once");
  }
  for (const Json& word : words.list()) HOLDFAST_TRY(add_condition(filter, word.text(), spool));
  if (!filter.is_narrow() && !filter.everything) return invalid("a filter must be given; \"all\" for every record");
  if (filter.is_narrow() && filter.everything)
    return invalid("\"all\" stands alone; what else is given would not narrow it");
  return filter;
}

}  // namespace holdfast
