#include "appliance/status_answer.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "appliance/quantity.h"
#include "crypto/text.h"

namespace holdfast {
namespace {

double seconds(Nanoseconds duration) {
  return std::round(std::chrono::duration<double>(duration).count() * 1000) / 1000;
}

double rate(double per_second) {
  return std::round(per_second * 10) / 10;
}

// An age is only told while the clock is believed: a record of 1970 is not 56 years old.
void add_age(Json& json, const char* prefix, std::optional<std::int64_t> accepted_ns, const WallTime& now) {
  if (!accepted_ns) return;
  json.set(std::string(prefix) + "_accepted", wall_text(*accepted_ns));
  const Nanoseconds age = now.since_1970 - Nanoseconds(*accepted_ns);
  if (now.trusted && age.count() >= 0) json.set(std::string(prefix) + "_age_s", seconds(age));
}

Json attention_fields(const std::vector<Attention>& all) {
  Json list{Json::List()};
  for (const Attention& one : all) {
    Json json;
    json.set("code", one.code);
    json.set("about", one.about);
    json.set("text", one.text);
    json.set("on_hold", one.on_hold);
    list.add(std::move(json));
  }
  return list;
}

Json verdict_fields(const VerdictCounts& verdicts) {
  Json json;
  json.set("accepted", verdicts.accepted);
  json.set("refused", verdicts.refused);
  json.set("conflicts", verdicts.conflicts);
  json.set("duplicates_in_batch", verdicts.duplicate_in_batch);
  json.set("duplicates_in_custody", verdicts.duplicate_in_custody);
  json.set("duplicates_in_ledger", verdicts.duplicate_in_ledger);
  return json;
}

// And the last of each kind that somebody may want to look at.
Json tally_fields(const VerdictTally& tally) {
  Json json = verdict_fields(tally.counts);
  if (tally.counts.duplicates() > 0) json.set("last_duplicate", tally.last_duplicate.short_hex());
  if (tally.counts.conflicts > 0) json.set("last_conflict", tally.last_conflict.short_hex());
  if (tally.counts.refused > 0) json.set("last_refused", tally.last_refused.short_hex());
  if (tally.counts.refused > 0) json.set("last_reason", reason_text(tally.last_reason));
  return json;
}

Json source_fields(const SourceView& source, bool paused) {
  const SourceStatus& status = source.status;
  Json json;
  json.set("name", status.name);
  const bool waits = paused && status.state == SourceState::flowing;
  json.set("state", waits ? "paused" : source_state_text(status.state));
  json.set("why", status.why);
  json.set("hung", source.hung);
  json.set("per_second", rate(source.per_second));
  json.set("in_hand", std::uint64_t{source.in_hand});
  json.set("pending", status.pending);
  json.set("pulled", status.pulled);
  json.set("acknowledged", status.acknowledged);
  json.set("redelivered", status.redelivered);
  json.set("reconnects", status.reconnects);
  json.set("in_progress_sent", status.in_progress_sent);
  json.set("went_back", status.went_back);
  json.set("last_find", status.last_find);
  json.set("unconfirmed", status.unconfirmed);
  json.set("dead_letters", source.dead_letters);
  Json verdicts{Json::Fields()};
  for (std::size_t strategy = 0; strategy < kStrategies; ++strategy) {
    const VerdictTally& tally = source.verdicts[strategy];
    if (tally.counts == VerdictCounts()) continue;
    verdicts.set(std::string(strategy_text(static_cast<Strategy>(strategy))), tally_fields(tally));
  }
  json.set("verdicts", std::move(verdicts));
  return json;
}

void add_forwarder(Json& json, const TargetView& view, Nanoseconds now) {
  const ForwarderStatus& status = view.status;
  json.set("state", forwarder_state_text(status.state));
  json.set("code", status.window.code);
  json.set("state_for_s", seconds(now - status.since));
  json.set("hung", view.hung);
  json.set("per_second", rate(view.per_second));
  if (status.next_attempt) json.set("next_attempt_s", std::max(0.0, seconds(*status.next_attempt - now)));
  if (status.last_settled) json.set("last_delivery_s", seconds(now - *status.last_settled));
  json.set("maybe_repeated", status.window.fates.maybe_repeated);
  json.set("failed_tries", std::uint64_t{status.window.failed_flights});
  json.set("in_window", std::uint64_t{status.window.records});
  json.set("lanes_on_hold", std::uint64_t{status.window.lanes_held});
  json.set("lane_records", status.window.lane_records);
  json.set("set_apart", std::uint64_t{status.window.apart});
  json.set("last_error", status.last_error);
  if (!status.last_error.empty()) json.set("last_error_s", seconds(now - status.last_error_at));
}

Json target_fields(const TargetStatus& target, const ApplianceStatus& status) {
  Json json;
  json.set("name", target.name);
  json.set("configured", target.active);
  json.set("waiting_records", target.waiting_records);
  json.set("waiting_bytes", target.waiting_bytes);
  add_age(json, "oldest", target.oldest_accepted_wall_ns, status.wall);
  json.set("delivered", target.delivered);
  json.set("duplicates", target.duplicates);
  json.set("duplicates_unexpected", target.duplicates_unexpected);
  json.set("rejected", target.rejected);
  const auto view = std::find_if(status.targets.begin(), status.targets.end(),
                                 [&](const TargetView& one) { return one.status.target == target.name; });
  if (view != status.targets.end()) {
    add_forwarder(json, *view, status.monotonic);
  } else {
    json.set("state", target.active ? "stopped" : "gone");
    json.set("code", "");
    json.set("last_error", "");
  }
  return json;
}

// Bytes: of the target that most waits for.
Json backlog_fields(const ApplianceStatus& status) {
  std::optional<std::int64_t> oldest;
  std::uint64_t bytes = 0;
  for (const TargetStatus& target : status.spool.targets) {
    if (!target.oldest_accepted_wall_ns) continue;
    oldest = std::min(oldest.value_or(*target.oldest_accepted_wall_ns), *target.oldest_accepted_wall_ns);
    bytes = std::max(bytes, target.waiting_bytes);
  }
  Json json;
  json.set("records", status.spool.in_custody);
  json.set("max_records", status.max_records);
  json.set("in_journal", status.spool.in_journal);
  json.set("in_files", status.spool.in_files);
  json.set("bytes", bytes);
  add_age(json, "oldest", oldest, status.wall);
  return json;
}

Json disk_fields(const SpoolStatus& spool, std::uint64_t max_bytes) {
  Json json;
  json.set("used_bytes", spool.disk_bytes);
  json.set("max_bytes", max_bytes);
  json.set("free_bytes", spool.free_bytes);
  json.set("free_inodes", spool.free_inodes);
  json.set("pressure", spool.pressure.paused() ? pressure_text(spool.pressure.kind) : "");
  json.set("slowest_sync_s", seconds(spool.slowest_sync));
  json.set("slow", spool.slow_disk);
  json.set("ignored_names", spool.ignored_names);
  json.set("bad_done_frames", spool.bad_done_frames);
  return json;
}

Json accounting_fields(const SpoolStatus& spool) {
  Json json;
  json.set("era", spool.era);
  json.set("taken", spool.totals.taken);
  json.set("delivered", spool.totals.delivered);
  json.set("in_custody", spool.in_custody);
  json.set("quarantined", spool.quarantined);
  json.set("expired", spool.totals.expired);
  json.set("discarded", spool.totals.discarded);
  json.set("lost", spool.totals.lost);
  return json;
}

Json clock_fields(const WallTime& wall) {
  Json json;
  json.set("now", wall_text(wall.since_1970.count()));
  json.set("trusted", wall.trusted);
  return json;
}

Json names_list(const std::vector<std::string>& names) {
  Json list{Json::List()};
  for (const std::string& name : names) list.add(name);
  return list;
}

void add_payload(Json& json, const Envelope& envelope) {
  json.set("payload_bytes", std::uint64_t{envelope.payload.size()});
  if (envelope.payload_omitted) json.set("payload_omitted_bytes", envelope.original_size);
  const std::string_view text = as_text(envelope.payload);
  if (is_utf8(text)) {
    json.set("payload_text", text);
  } else {
    json.set("payload_base64", to_base64(envelope.payload));
  }
}

}  // namespace

Json status_answer(const ApplianceStatus& status) {
  const std::vector<Attention> looks = attentions(status);
  const bool on_hold = std::any_of(looks.begin(), looks.end(), [](const Attention& one) { return one.on_hold; });
  Json json;
  json.set("running", status.running);
  json.set("good", looks.empty());
  json.set("on_hold", on_hold);
  json.set("attention", attention_fields(looks));
  json.set("version", status.version);
  json.set("site", status.site);
  json.set("configured_site", status.configured_site);
  json.set("life", std::uint64_t{status.spool.boot});
  json.set("uptime_s", seconds(status.uptime));
  json.set("clock", clock_fields(status.wall));
  json.set("backlog", backlog_fields(status));
  Json sources{Json::List()};
  for (const SourceView& source : status.sources) sources.add(source_fields(source, status.spool.pressure.paused()));
  json.set("sources", std::move(sources));
  Json targets{Json::List()};
  for (const TargetStatus& target : status.spool.targets) targets.add(target_fields(target, status));
  json.set("targets", std::move(targets));
  Json quarantine;
  quarantine.set("records", status.spool.quarantined);
  quarantine.set("bytes", status.spool.quarantine_bytes);
  json.set("quarantine", std::move(quarantine));
  json.set("disk", disk_fields(status.spool, status.max_bytes));
  json.set("verdicts", verdict_fields(status.spool.verdicts));
  json.set("accounting", accounting_fields(status.spool));
  json.set("reconciling", status.spool.reconciling);
  json.set("notices", names_list(status.spool.notices));
  return json;
}

Json audit_answer(const AuditReport& report) {
  Json json;
  json.set("balanced", report.balanced());
  json.set("era", report.era);
  json.set("taken", report.taken);
  json.set("delivered", report.delivered);
  json.set("in_custody", report.in_custody);
  json.set("quarantined", report.quarantined);
  json.set("expired", report.expired);
  json.set("discarded", report.discarded);
  json.set("lost", report.lost);
  json.set("files_without_row", report.files_without_row);
  json.set("rows_without_file", report.rows_without_file);
  return json;
}

Json summary_answer(const RecordSummary& record, const TargetNames& names) {
  Json json;
  json.set("sequence", record.sequence);
  json.set("id", record.id.short_hex());
  json.set("priority", priority_text(record.priority));
  json.set("bytes", record.size);
  json.set("accepted", wall_text(record.accepted_wall_ns));
  json.set("in", record.in_file ? "file" : "journal");
  Json waiting{Json::List()};
  for (const TargetNumber target : record.waiting) waiting.add(names(target));
  json.set("waits_for", std::move(waiting));
  return json;
}

Json quarantined_answer(const QuarantinedRecord& record, const TargetNames& names) {
  Json json;
  json.set("sequence", record.sequence);
  json.set("id", record.id.short_hex());
  json.set("reason", reason_text(record.reason));
  json.set("target", record.target == TargetNumber{} ? "" : names(record.target));
  json.set("priority", priority_text(record.priority));
  json.set("bytes", record.size);
  json.set("accepted", wall_text(record.accepted_wall_ns));
  return json;
}

Json opened_answer(const OpenedRecord& record, const TargetNames& names) {
  Json json = summary_answer(record.summary, names);
  json.set("id", record.summary.id.hex());
  if (record.reason != Reason::none) json.set("reason", reason_text(record.reason));
  if (!record.words.empty()) json.set("target_said", record.words);
  json.set("key", record.body.key);
  const Envelope& envelope = record.body.envelope;
  json.set("source", envelope.source);
  json.set("stream", envelope.origin.stream);
  json.set("stream_sequence", envelope.origin.sequence);
  json.set("stream_time", wall_text(envelope.origin.timestamp_ns));
  json.set("subject", envelope.subject);
  Json headers{Json::List()};
  for (const Header& header : envelope.headers) {
    Json one;
    one.set("name", header.name);
    one.set("value", header.value);
    headers.add(std::move(one));
  }
  json.set("headers", std::move(headers));
  add_payload(json, envelope);
  return json;
}

}  // namespace holdfast
