#include <fmt/format.h>

#include "appliance/appliance_status.h"
#include "appliance/quantity.h"
#include "forwarder/code.h"

namespace holdfast {
namespace {

std::string records_text(std::uint64_t count) {
  return count == 1 ? "1 record" : count_text(count) + " records";
}

std::string because(const char* code) {
  const std::string_view text = code_text(code);
  if (*code == '\0') return "";
  return text.empty() ? fmt::format(" ({})", code) : fmt::format(" ({}: {})", code, text);
}

std::string next_try(const ForwarderStatus& target, Nanoseconds now) {
  if (!target.next_attempt) return "";
  if (*target.next_attempt - now < std::chrono::seconds(1)) return "; trying now";
  return "; next try in " + duration_text(*target.next_attempt - now);
}

void look_at_source(const SourceView& source, std::vector<Attention>& out) {
  const SourceStatus& status = source.status;
  const std::string why = status.why.empty() ? "" : ": " + status.why;
  if (source.hung)
    out.push_back(
        {"source_hung", status.name, fmt::format("source {} hangs in its client library", status.name), true});
  if (status.state == SourceState::held)
    out.push_back({"source_on_hold", status.name, fmt::format("source {} is on hold{}", status.name, why), true});
  if (status.state == SourceState::no_stream)
    out.push_back({"source_no_stream", status.name, fmt::format("source {} has no stream{}", status.name, why), true});
  if (status.state == SourceState::connecting)
    out.push_back(
        {"source_not_connected", status.name, fmt::format("source {} is not connected{}", status.name, why), true});
  // What is not as it was asked for, and works all the same.
  if (status.state == SourceState::flowing && !why.empty())
    out.push_back({"source_differs", status.name, fmt::format("source {} flows, but{}", status.name, why), false});
}

void look_at_target(const TargetView& target, Nanoseconds now, std::vector<Attention>& out) {
  const ForwarderStatus& status = target.status;
  const Nanoseconds lasted = now - status.since;
  const std::string since = lasted < std::chrono::seconds(1) ? "" : " for " + duration_text(lasted);
  if (target.hung)
    out.push_back({"target_hung", status.target,
                   fmt::format("target {} hangs in its client library; it is left alone", status.target), true});
  if (status.state == ForwarderState::held_by_operator)
    out.push_back(
        {"target_held", status.target, fmt::format("target {} is held by an operator{}", status.target, since), true});
  if (status.state == ForwarderState::holding)
    out.push_back({"target_on_hold", status.target,
                   fmt::format("target {} takes nothing{}{}{}", status.target, since, because(status.window.code),
                               next_try(status, now)),
                   true});
  if (status.window.lanes_held > 0)
    out.push_back(
        {"lane_on_hold", status.target,
         fmt::format("target {} refuses {}{}; {} behind it", status.target,
                     status.window.lanes_held == 1 ? "a subject" : fmt::format("{} subjects", status.window.lanes_held),
                     because(status.window.code),
                     status.window.lane_records == 1 ? "1 record waits"
                                                     : count_text(status.window.lane_records) + " records wait"),
         true});
  // What is rejected before anything was accepted may be the target's fault: it waits, and somebody should know.
  if (status.window.apart > 0 && status.state != ForwarderState::flowing)
    out.push_back({"target_rejects_all", status.target,
                   fmt::format("target {} has rejected {}{} and accepted nothing since; they wait until it does",
                               status.target, records_text(status.window.apart), because(status.window.code)),
                   true});
  if (status.window.fates.duplicates_unexpected > 0)
    out.push_back({"duplicate_unexpected", status.target,
                   fmt::format("target {} called {} a duplicate that was never sent before", status.target,
                               records_text(status.window.fates.duplicates_unexpected)),
                   false});
}

void look_at_disk(const SpoolStatus& spool, std::vector<Attention>& out) {
  if (spool.pressure.paused())
    out.push_back(
        {"intake_paused", "", fmt::format("nothing is taken in: {}", pressure_text(spool.pressure.kind)), true});
  if (spool.slow_disk)
    out.push_back({"slow_disk", "",
                   fmt::format("the disk is slow: a sync took {:.1f} s",
                               std::chrono::duration<double>(spool.slowest_sync).count()),
                   false});
  if (spool.unsafe_file_system)
    out.push_back({"unsafe_file_system", "", "the spool is on a file system whose syncs cannot be believed", false});
}

void look_at_records(const SpoolStatus& spool, std::vector<Attention>& out) {
  if (spool.totals.lost > 0)
    out.push_back(
        {"lost", "",
         fmt::format("{} that had been acknowledged cannot be found or read any more", records_text(spool.totals.lost)),
         true});
  for (const TargetStatus& target : spool.targets) {
    if (target.active || target.waiting_records == 0) continue;
    out.push_back({"target_gone", target.name,
                   fmt::format("{} for target {}, which the configuration does not have",
                               target.waiting_records == 1 ? "1 record waits"
                                                           : count_text(target.waiting_records) + " records wait",
                               target.name),
                   true});
  }
  if (spool.quarantined > 0)
    out.push_back({"quarantine", "", fmt::format("{} in quarantine", records_text(spool.quarantined)), false});
  if (spool.site_changed)
    out.push_back({"site_changed", "",
                   "the configuration names another site than the spool was begun with; keys keep the old one", false});
}

}  // namespace

const char* source_state_text(SourceState state) {
  switch (state) {
    case SourceState::connecting:
      return "connecting";
    case SourceState::no_stream:
      return "no_stream";
    case SourceState::flowing:
      return "flowing";
    case SourceState::held:
      return "held";
  }
  return "unknown";
}

std::vector<Attention> attentions(const ApplianceStatus& status) {
  std::vector<Attention> out;
  look_at_disk(status.spool, out);
  for (const SourceView& source : status.sources) look_at_source(source, out);
  for (const TargetView& target : status.targets) look_at_target(target, status.monotonic, out);
  look_at_records(status.spool, out);
  return out;
}

}  // namespace holdfast
