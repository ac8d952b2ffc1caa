#include "appliance/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "appliance/quantity.h"

namespace holdfast {
namespace {

constexpr std::size_t kLabel = 12;  // columns of the label at the left of status

std::string seconds_text(const Json& seconds) {
  return duration_text(std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(seconds.number())));
}

std::string rate_text(const Json& per_second) {
  const double rate = per_second.number();
  if (rate > 0 && rate < 10) return fmt::format("{:.1f}/s", rate);
  return count_text(static_cast<std::uint64_t>(std::llround(std::max(0.0, rate)))) + "/s";
}

std::string records_text(std::uint64_t count) {
  return count == 1 ? "1 record" : count_text(count) + " records";
}

// Breaks at spaces; every line after the first begins in column `indent`.
std::string wrapped(const std::string& text, std::size_t indent) {
  std::string out;
  std::string_view rest = text;
  std::size_t room = kColumns - indent;
  while (rest.size() > room) {
    std::size_t cut = rest.rfind(' ', room);
    if (cut == std::string_view::npos || cut == 0) cut = std::min(rest.find(' '), rest.size());
    out += std::string(rest.substr(0, cut)) + '\n' + std::string(indent, ' ');
    rest.remove_prefix(std::min(cut + 1, rest.size()));
  }
  return out + std::string(rest);
}

std::string line(std::string_view label, const std::string& text) {
  return fmt::format("{:<{}}{}\n", label, kLabel, wrapped(text, kLabel));
}

// Lines under one label.
std::string block(std::string_view label, const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& one : lines) out += line(out.empty() ? label : "", one);
  return out;
}

std::string headline(const Json& status) {
  const char* word = !status["running"].flag() ? "NOT RUNNING" : status["good"].flag() ? "OK" : "ATTENTION";
  std::string out = fmt::format("holdfast at {}: {}\n", status["site"].text(), word);
  const std::string& configured = status["configured_site"].text();
  if (configured != status["site"].text()) out += fmt::format("  (the configuration says {})\n", configured);
  for (const Json& one : status["attention"].list()) out += "  - " + wrapped(one["text"].text(), 4) + '\n';
  return out + '\n';
}

std::string source_line(const Json& source) {
  std::string text =
      fmt::format("{:<14} {:<10} {}", source["name"].text(), source["state"].text(), rate_text(source["per_second"]));
  text += fmt::format(", {} waiting in the stream", count_text(source["pending"].count()));
  if (source["in_hand"].count() > 0) text += fmt::format(", {} in hand", count_text(source["in_hand"].count()));
  return text;
}

// What was not simply taken, for each way of naming messages.
std::vector<std::string> source_details(const Json& source) {
  std::vector<std::string> out;
  for (const char* strategy : {"stream_sequence", "message_id", "payload_field", "payload_hash"}) {
    const Json& verdicts = source["verdicts"][strategy];
    const std::uint64_t duplicates = verdicts["duplicates_in_batch"].count() +
                                     verdicts["duplicates_in_custody"].count() +
                                     verdicts["duplicates_in_ledger"].count();
    std::string text;
    const auto add = [&](const char* what, std::uint64_t count) {
      if (count > 0) text += fmt::format("{} {} {}", text.empty() ? ":" : ",", what, count_text(count));
    };
    add("duplicates", duplicates);
    add("conflicts", verdicts["conflicts"].count());
    add("refused", verdicts["refused"].count());
    if (!text.empty()) out.push_back(fmt::format("  by {}{}", strategy, text));
  }
  if (!source["last_find"].text().empty()) out.push_back("  found: " + source["last_find"].text());
  if (source["dead_letters"].count() > 0)
    out.push_back(fmt::format("  dead letters published: {}", count_text(source["dead_letters"].count())));
  return out;
}

std::string age_text(const Json& of, const Json& clock) {
  if (of["oldest_accepted"].is_null()) return "";
  if (!of["oldest_age_s"].is_null()) return fmt::format("; the oldest is {} old", seconds_text(of["oldest_age_s"]));
  const char* why = clock["trusted"].flag() ? "which is to come" : "but this clock is not to be trusted";
  return fmt::format("; the oldest came {}, {}", of["oldest_accepted"].text(), why);
}

std::string backlog_line(const Json& status) {
  const Json& backlog = status["backlog"];
  const std::uint64_t records = backlog["records"].count();
  if (records == 0) return "nothing is waiting";
  return fmt::format("{}, {}{}", records_text(records), bytes_text(backlog["bytes"].count()),
                     age_text(backlog, status["clock"]));
}

std::string target_state(const Json& target) {
  if (!target["configured"].flag()) return "gone";
  if (target["hung"].flag()) return "hung";
  const std::string& state = target["state"].text();
  return state == "held_by_operator" ? "held" : state;
}

std::string target_line(const Json& target) {
  std::string text = fmt::format("{:<14} {:<10} ", target["name"].text(), target_state(target));
  if (!target["per_second"].is_null()) text += rate_text(target["per_second"]) + ", ";
  text += count_text(target["waiting_records"].count()) + " waiting";
  if (!target["next_attempt_s"].is_null())
    text += target["next_attempt_s"].number() < 1 ? ", trying now"
                                                  : ", next try in " + seconds_text(target["next_attempt_s"]);
  return text;
}

// What a target did so far, when it did anything out of the ordinary.
std::vector<std::string> target_details(const Json& target) {
  std::vector<std::string> out;
  if (target["state"].text() == "stopped" || target["state"].text() == "gone") return out;
  std::string counts = fmt::format("since the start: delivered {}", count_text(target["delivered"].count()));
  if (target["duplicates"].count() > 0)
    counts += fmt::format(", had already {}", count_text(target["duplicates"].count()));
  if (target["rejected"].count() > 0) counts += fmt::format(", rejected {}", count_text(target["rejected"].count()));
  if (!target["last_delivery_s"].is_null())
    counts += fmt::format("; last {} ago", seconds_text(target["last_delivery_s"]));
  out.push_back("  " + counts);
  if (!target["last_error"].text().empty())
    out.push_back(
        fmt::format("  last error, {} ago: {}", seconds_text(target["last_error_s"]), target["last_error"].text()));
  return out;
}

std::string targets_block(const Json& status) {
  std::vector<std::string> lines;
  for (const Json& target : status["targets"].list()) {
    if (!target["configured"].flag() && target["waiting_records"].count() == 0) continue;  // gone, and nobody misses it
    lines.push_back(target_line(target));
    for (std::string& detail : target_details(target)) lines.push_back(std::move(detail));
  }
  return block("targets", lines);
}

std::string sources_block(const Json& status) {
  std::vector<std::string> lines;
  for (const Json& source : status["sources"].list()) {
    lines.push_back(source_line(source));
    for (std::string& detail : source_details(source)) lines.push_back(std::move(detail));
  }
  return block("sources", lines);
}

std::string disk_line(const Json& disk) {
  std::string text = fmt::format("{} used", bytes_text(disk["used_bytes"].count()));
  if (disk["max_bytes"].count() > 0) text += fmt::format(" of {}", bytes_text(disk["max_bytes"].count()));
  text += fmt::format(", {} free", bytes_text(disk["free_bytes"].count()));
  if (disk["slowest_sync_s"].number() > 0)
    text += fmt::format("; slowest sync {:.3f} s", disk["slowest_sync_s"].number());
  return text;
}

std::string quarantine_line(const Json& quarantine) {
  const std::uint64_t records = quarantine["records"].count();
  return records == 0 ? "empty" : fmt::format("{}, {}", records_text(records), bytes_text(quarantine["bytes"].count()));
}

std::string clock_line(const Json& clock) {
  return clock["now"].text() +
         (clock["trusted"].flag() ? ", synchronised" : ", not synchronised: ages and dates may be wrong");
}

std::string since_line(const Json& status) {
  std::string text = status["running"].flag() ? fmt::format("running for {}, ", seconds_text(status["uptime_s"])) : "";
  return text + fmt::format("life {}, version {}", status["life"].count(), status["version"].text());
}

std::string status_report(const Json& status) {
  std::string out = headline(status);
  out += sources_block(status);
  out += line("backlog", backlog_line(status));
  out += targets_block(status);
  out += line("quarantine", quarantine_line(status["quarantine"]));
  out += line("disk", disk_line(status["disk"]));
  out += line("clock", clock_line(status["clock"]));
  out += line("process", since_line(status));
  std::vector<std::string> notices;
  if (status["running"].flag() && status["reconciling"].flag())
    notices.push_back("files and index are still being compared after the start");
  for (const Json& notice : status["notices"].list()) notices.push_back(notice.text());
  return out + block("notices", notices);
}

std::string audit_report(const Json& audit) {
  std::string out = fmt::format("{:<20}{:>16}\n", "taken", count_text(audit["taken"].count()));
  for (const char* part : {"delivered", "in_custody", "quarantined", "expired", "discarded", "lost"})
    out += fmt::format("  {:<18}{:>16}\n", part, count_text(audit[part].count()));
  out += fmt::format("{:<20}{:>16}\n", "files without a row", count_text(audit["files_without_row"].count()));
  out += fmt::format("{:<20}{:>16}\n", "rows without a file", count_text(audit["rows_without_file"].count()));
  return out + fmt::format("era {}: {}\n", audit["era"].text(),
                           !audit["balanced"].flag()   ? "DOES NOT BALANCE"
                           : audit["lost"].count() > 0 ? "balanced, but records were LOST"
                                                       : "balanced");
}

std::string joined(const Json& names) {
  std::string out;
  for (const Json& name : names.list()) out += (out.empty() ? "" : ",") + name.text();
  return out;
}

constexpr const char* kRecordRow = "{:<16}  {:>20}  {:<9}  {:>9}  {}\n";

std::string record_rows(const Json& records) {
  std::string out = fmt::format(kRecordRow, "id", "accepted", "priority", "size", "waits for");
  for (const Json& one : records.list())
    out += fmt::format(kRecordRow, one["id"].text(), one["accepted"].text(), one["priority"].text(),
                       bytes_text(one["bytes"].count()), joined(one["waits_for"]));
  return out;
}

std::string quarantine_rows(const Json& records) {
  std::string out = fmt::format(kRecordRow, "id", "accepted", "priority", "size", "reason");
  for (const Json& one : records.list()) {
    const std::string by = one["target"].text().empty() ? "" : " by " + one["target"].text();
    out += fmt::format(kRecordRow, one["id"].text(), one["accepted"].text(), one["priority"].text(),
                       bytes_text(one["bytes"].count()), one["reason"].text() + by);
  }
  return out;
}

std::string list_report(const Json& answer, std::string rows) {
  if (answer["records"].list().empty()) return "none\n";
  if (answer["next"].count() > 0) rows += fmt::format("more: --after {}\n", answer["next"].count());
  return rows;
}

// Control characters of a stranger's must not reach a terminal.
std::string tame(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if ((c >= 0 && c < 0x20 && c != '\n' && c != '\t') || c == 0x7f) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out;
}

std::string opened_report(const Json& record) {
  std::string out;
  const auto add = [&](const char* label, const std::string& text) {
    out += fmt::format("{:<16}{}\n", label, tame(text));
  };
  for (const char* name : {"id", "accepted", "priority", "in", "reason", "target", "target_said", "key", "source",
                           "stream", "stream_time", "subject"})
    if (!record[name].text().empty()) add(name, record[name].text());
  add("sequence", fmt::format("{} (in the stream {})", record["sequence"].count(), record["stream_sequence"].count()));
  if (!record["waits_for"].list().empty()) add("waits_for", joined(record["waits_for"]));
  for (const Json& header : record["headers"].list())
    add("header", header["name"].text() + ": " + header["value"].text());
  add("payload", bytes_text(record["payload_bytes"].count()));
  const bool is_text = !record["payload_text"].is_null();
  return out + '\n' + tame(is_text ? record["payload_text"].text() : record["payload_base64"].text()) + '\n';
}

std::string verify_report(const Json& answer) {
  const Json& bad = answer["bad"];
  if (bad.list().empty()) return "";
  std::string out;
  for (const Json& one : bad.list()) out += fmt::format("{}  {}\n", one["id"].text(), one["reason"].text());
  return out;
}

std::string changed_report(std::string_view command, const Json& answer) {
  const char* what = command == "spool discard"        ? "discarded"
                     : command == "spool retarget"     ? "retargeted"
                     : command == "quarantine requeue" ? "requeued"
                                                       : "dropped";
  std::string out =
      records_text(answer["changed"].count()) + (answer["dry_run"].flag() ? " would be " : " ") + what + '\n';
  if (command == "quarantine requeue" && answer["changed"].count() == 0)
    out +=
        "A record stays where it is when no route takes it, when it cannot be opened, or\n"
        "when one of its identity is in custody.\n";
  return out;
}

std::string order_report(std::string_view command, const Json& answer) {
  const char* what = command == "target hold" ? "is held" : command == "target resume" ? "goes on" : "is tried now";
  return fmt::format("target {} {}\n", answer["target"].text(), what);
}

const char* safety_headline(const std::string& safety) {
  if (safety == "safe") return "SAFE";
  if (safety == "safe_with_conditions") return "SAFE WITH CONDITIONS";
  return safety == "not_safe" ? "NOT SAFE" : "NOT PROVEN";
}

const char* verdict_word(const std::string& verdict) {
  if (verdict == "passed") return "passed";
  if (verdict == "conditional") return "condition";
  if (verdict == "failed") return "FAILED";
  return verdict == "unproven" ? "UNPROVEN" : "-";
}

std::string certify_report(const Json& answer) {
  std::string out = fmt::format("target {}: {}\n\n", answer["target"].text(), safety_headline(answer["safety"].text()));
  for (const Json& one : answer["properties"].list()) {
    const std::string begin = fmt::format("{:<18}{:<11}", one["name"].text(), verdict_word(one["verdict"].text()));
    out += begin + wrapped(one["reason"].text(), begin.size()) + '\n';
  }
  out += fmt::format("\n{} in run {}", records_text(answer["records"].count()), answer["run"].text());
  if (!answer["may_be_left"].flag()) return out + "; none is left there\n";
  return out + ".\nSome may be left there, with the run in key, payload and the header\nHoldfast-Certification.\n";
}

}  // namespace

std::string report_text(std::string_view command, const Json& answer) {
  if (command == "status") return status_report(answer);
  if (command == "audit") return audit_report(answer);
  if (command == "certify") return certify_report(answer);
  if (command == "spool list") return list_report(answer, record_rows(answer["records"]));
  if (command == "quarantine list") return list_report(answer, quarantine_rows(answer["records"]));
  if (command == "spool show" || command == "quarantine show") return opened_report(answer);
  if (command == "spool verify") return verify_report(answer);
  if (command.starts_with("target ")) return order_report(command, answer);
  return changed_report(command, answer);
}

}  // namespace holdfast
