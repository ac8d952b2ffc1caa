#include "appliance/report.h"

#include <gtest/gtest.h>

#include <sstream>

#include "appliance/status_answer.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kNow = 1'790'000'000'000'000'000;  // 2026-09-21 14:13:20Z
constexpr std::int64_t kHour = 3'600'000'000'000;

SourceView good_source() {
  SourceView source;
  source.status.name = "local";
  source.status.state = SourceState::flowing;
  source.status.pulled = source.status.acknowledged = 1234567;
  source.per_second = 1204.4;
  return source;
}

TargetStatus spool_target(std::uint32_t number, std::string name) {
  TargetStatus target;
  target.number = TargetNumber{number};
  target.name = std::move(name);
  target.active = true;
  return target;
}

ApplianceStatus good_status() {
  ApplianceStatus status;
  status.running = true;
  status.version = "0.1.0";
  status.site = status.configured_site = "truck-07";
  status.wall = {Nanoseconds(kNow), true};
  status.monotonic = 5000s;
  status.uptime = 4000s;
  status.max_bytes = 10ull << 30;
  status.max_records = 10'000'000;
  status.spool.boot = 3;
  status.spool.disk_bytes = 70ull << 20;
  status.spool.free_bytes = 12ull << 30;
  status.spool.slowest_sync = 8ms;
  status.sources.push_back(good_source());
  TargetStatus hub = spool_target(1, "hub");
  hub.delivered = 1234567;
  status.spool.targets.push_back(hub);
  TargetView view;
  view.status.target = "hub";
  view.status.state = ForwarderState::flowing;
  view.status.since = 1000s;
  view.status.last_settled = 4999s;
  view.per_second = 1203.9;
  status.targets.push_back(view);
  return status;
}

// A night on which everything is wrong at once.
ApplianceStatus bad_status() {
  ApplianceStatus status = good_status();
  status.sources[0].status.state = SourceState::held;
  status.sources[0].status.why =
      "the consumer holdfast of TELEMETRY was made by somebody else and filters other subjects";
  status.sources[0].per_second = 0;
  status.sources[0].in_hand = 256;
  status.sources[0].status.pending = 987654;
  status.spool.in_custody = 1'234'567;
  status.spool.in_files = 1'234'000;
  status.spool.in_journal = 567;
  status.spool.pressure.kind = PressureKind::max_bytes;
  status.spool.quarantined = 3;
  status.spool.quarantine_bytes = 12'345;
  status.spool.totals.lost = 1;
  status.spool.slow_disk = true;
  status.spool.slowest_sync = 2400ms;
  status.spool.notices = {"4096 bytes in journal segment 7 were damaged; they are in quarantine as damaged-1.bin"};
  TargetStatus& hub = status.spool.targets[0];
  hub.waiting_records = 1'234'560;
  hub.waiting_bytes = 1'400'000'000;
  hub.oldest_accepted_wall_ns = kNow - 52 * kHour;
  hub.duplicates = 12;
  hub.rejected = 2;
  TargetStatus gone = spool_target(2, "old-hub");
  gone.active = false;
  gone.waiting_records = 7;
  status.spool.targets.push_back(gone);
  ForwarderStatus& forwarder = status.targets[0].status;
  forwarder.state = ForwarderState::holding;
  forwarder.window.code = "no_connection";
  forwarder.window.failed_flights = 12;
  forwarder.next_attempt = 5023s;
  forwarder.last_error = "cannot connect to hub.example:4222: no route to host";
  forwarder.last_error_at = 4960s;
  status.targets[0].per_second = 0;
  return status;
}

std::string status_text(const ApplianceStatus& status) {
  return report_text("status", status_answer(status));
}

void expect_fits(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), kColumns) << line;
}

TEST(Report, AGoodNight_FitsOneGlance) {
  EXPECT_EQ(status_text(good_status()),
            "holdfast at truck-07: OK\n"
            "\n"
            "sources     local          flowing    1,204/s, 0 waiting in the stream\n"
            "backlog     nothing is waiting\n"
            "targets     hub            flowing    1,204/s, 0 waiting\n"
            "              since the start: delivered 1,234,567; last 1 s ago\n"
            "quarantine  empty\n"
            "disk        70.0 MiB used of 10.0 GiB, 12.0 GiB free; slowest sync 0.008 s\n"
            "clock       2026-09-21 14:13:20Z, synchronised\n"
            "process     running for 1 h 6 min, life 3, version 0.1.0\n");
}

TEST(Report, ABadNight_SaysWhatToLookAtFirst) {
  const std::string text = status_text(bad_status());
  expect_fits(text);
  EXPECT_EQ(text,
            "holdfast at truck-07: ATTENTION\n"
            "  - nothing is taken in: spool.max_bytes is reached\n"
            "  - the disk is slow: a sync took 2.4 s\n"
            "  - source local is on hold: the consumer holdfast of TELEMETRY was made by\n"
            "    somebody else and filters other subjects\n"
            "  - target hub takes nothing for 1 h 6 min (no_connection); next try in 23 s\n"
            "  - 1 record that had been acknowledged cannot be found or read any more\n"
            "  - 7 records wait for target old-hub, which the configuration does not have\n"
            "  - 3 records in quarantine\n"
            "\n"
            "sources     local          held       0/s, 987,654 waiting in the stream, 256 in\n"
            "            hand\n"
            "backlog     1,234,567 records, 1.3 GiB; the oldest is 2 d 4 h old\n"
            "targets     hub            holding    0/s, 1,234,560 waiting, next try in 23 s\n"
            "              since the start: delivered 1,234,567, had already 12, rejected 2;\n"
            "            last 1 s ago\n"
            "              last error, 40 s ago: cannot connect to hub.example:4222: no route\n"
            "            to host\n"
            "            old-hub        gone       7 waiting\n"
            "quarantine  3 records, 12.1 KiB\n"
            "disk        70.0 MiB used of 10.0 GiB, 12.0 GiB free; slowest sync 2.400 s\n"
            "clock       2026-09-21 14:13:20Z, synchronised\n"
            "process     running for 1 h 6 min, life 3, version 0.1.0\n"
            "notices     4096 bytes in journal segment 7 were damaged; they are in quarantine\n"
            "            as damaged-1.bin\n");
}

TEST(Report, AnAge_IsNotToldByAClockThatNobodyTrusts) {
  ApplianceStatus status = bad_status();
  status.wall = {Nanoseconds(200'000'000'000), false};
  const std::string text = status_text(status);
  expect_fits(text);
  EXPECT_NE(text.find("the oldest came 2026-09-19 10:13:20Z,"), std::string::npos) << text;
  EXPECT_NE(text.find("but this clock is not to be"), std::string::npos) << text;
  EXPECT_NE(text.find("1970-01-01 00:03:20Z, not synchronised"), std::string::npos) << text;
  EXPECT_EQ(text.find(" old\n"), std::string::npos) << text;
}

TEST(Report, WhereNothingRuns_ItSaysSo) {
  ApplianceStatus status = good_status();
  status.running = false;
  status.sources.clear();
  status.targets.clear();
  const std::string text = status_text(status);
  EXPECT_TRUE(text.starts_with("holdfast at truck-07: NOT RUNNING\n")) << text;
  EXPECT_NE(text.find("targets     hub            stopped    0 waiting\n"), std::string::npos) << text;
  EXPECT_NE(text.find("process     life 3, version 0.1.0\n"), std::string::npos) << text;
}

TEST(Report, LongNames_StillFit) {
  ApplianceStatus status = bad_status();
  status.sources[0].status.name = std::string(64, 's');
  status.spool.targets[0].name = status.targets[0].status.target = std::string(64, 't');
  expect_fits(status_text(status));
}

TEST(StatusAnswer, OnHold_IsWhatWaitsForSomebody) {
  EXPECT_FALSE(status_answer(good_status())["on_hold"].flag());
  EXPECT_TRUE(status_answer(good_status())["good"].flag());
  EXPECT_TRUE(status_answer(bad_status())["on_hold"].flag());

  ApplianceStatus quarantine = good_status();
  quarantine.spool.quarantined = 1;
  EXPECT_FALSE(status_answer(quarantine)["on_hold"].flag());
  EXPECT_FALSE(status_answer(quarantine)["good"].flag());

  ApplianceStatus lane = good_status();
  lane.targets[0].status.window.lanes_held = 1;
  EXPECT_TRUE(status_answer(lane)["on_hold"].flag());

  ApplianceStatus held = good_status();
  held.targets[0].status.state = ForwarderState::held_by_operator;
  EXPECT_TRUE(status_answer(held)["on_hold"].flag());

  ApplianceStatus retrying = good_status();
  retrying.targets[0].status.state = ForwarderState::retrying;
  EXPECT_TRUE(status_answer(retrying)["good"].flag());
  retrying.targets[0].status.window.apart = 3;
  EXPECT_TRUE(status_answer(retrying)["on_hold"].flag());

  ApplianceStatus lost = good_status();
  lost.spool.totals.lost = 1;
  EXPECT_TRUE(status_answer(lost)["on_hold"].flag());
}

TEST(StatusAnswer, EveryAttention_HasACodeOfItsOwn) {
  ApplianceStatus status = bad_status();
  status.sources.push_back(good_source());
  status.sources.back().status.state = SourceState::connecting;
  status.sources.push_back(good_source());
  status.sources.back().status.state = SourceState::no_stream;
  status.sources.back().hung = true;
  status.sources.push_back(good_source());
  status.sources.back().status.why = "consumer theirs: max_deliver is 2";
  status.targets[0].hung = true;
  status.targets[0].status.window.lanes_held = 2;
  status.targets[0].status.window.apart = 1;
  status.targets[0].status.window.fates.duplicates_unexpected = 1;
  status.spool.site_changed = true;
  status.spool.unsafe_file_system = true;
  std::string codes;
  for (const Attention& one : attentions(status)) codes += std::string(one.code) + ' ';
  EXPECT_EQ(
      codes,
      "intake_paused slow_disk unsafe_file_system source_on_hold source_not_connected source_hung source_no_stream "
      "source_differs target_hung target_on_hold lane_on_hold target_rejects_all duplicate_unexpected lost target_gone "
      "quarantine "
      "site_changed ");
}

TEST(Report, Audit_IsASum) {
  AuditReport report;
  report.era = "1";
  report.taken = 1'000'000;
  report.delivered = 999'990;
  report.in_custody = 10;
  EXPECT_EQ(report_text("audit", audit_answer(report)),
            "taken                      1,000,000\n"
            "  delivered                  999,990\n"
            "  in_custody                      10\n"
            "  quarantined                      0\n"
            "  expired                          0\n"
            "  discarded                        0\n"
            "  lost                             0\n"
            "files without a row                0\n"
            "rows without a file                0\n"
            "era 1: balanced\n");
  report.in_custody = 9;
  report.lost = 1;
  EXPECT_NE(report_text("audit", audit_answer(report)).find("balanced, but records were LOST"), std::string::npos);
  report.lost = 0;
  EXPECT_NE(report_text("audit", audit_answer(report)).find("DOES NOT BALANCE"), std::string::npos);
}

std::string target_name(TargetNumber number) {
  return number == TargetNumber{1} ? "hub" : "shelf";
}

TEST(Report, Lists_AreRowsThatFit) {
  RecordSummary record;
  record.sequence = 17;
  record.id.bytes[0] = 0xab;
  record.priority = kNormalPriority;
  record.size = 1500;
  record.accepted_wall_ns = kNow;
  record.waiting = {TargetNumber{1}, TargetNumber{2}};
  Json answer;
  answer.set("records", Json::List{summary_answer(record, target_name)});
  answer.set("next", 17);
  const std::string text = report_text("spool list", answer);
  expect_fits(text);
  EXPECT_EQ(text,
            "id                            accepted  priority        size  waits for\n"
            "ab00000000000000  2026-09-21 14:13:20Z  normal       1.5 KiB  hub,shelf\n"
            "more: --after 17\n");

  QuarantinedRecord aside;
  aside.id = record.id;
  aside.reason = Reason::rejected;
  aside.target = TargetNumber{1};
  aside.priority = 0;
  aside.size = 100;
  aside.accepted_wall_ns = kNow;
  answer.set("records", Json::List{quarantined_answer(aside, target_name)});
  answer.set("next", 0);
  EXPECT_EQ(report_text("quarantine list", answer),
            "id                            accepted  priority        size  reason\n"
            "ab00000000000000  2026-09-21 14:13:20Z  flash          100 B  rejected by hub\n");
  answer.set("records", Json::List());
  EXPECT_EQ(report_text("spool list", answer), "none\n");
}

TEST(Report, AnOpenedRecord_CannotWriteToTheTerminal) {
  OpenedRecord record;
  record.summary.accepted_wall_ns = kNow;
  record.body.key = "msg:x";
  record.body.envelope.subject = "a\x1b[2Jb";
  record.body.envelope.headers = {{"Evil\r", "\x07"}};
  const std::string payload = "line\nnext\x1b]0;x\x07";
  record.body.envelope.payload.assign(payload.begin(), payload.end());
  const std::string text = report_text("spool show", opened_answer(record, target_name));
  for (const char c : text) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c != 0x7f)) << static_cast<int>(c);
  EXPECT_NE(text.find("subject         a\\x1b[2Jb\n"), std::string::npos) << text;
}

TEST(OpenedAnswer, APayloadThatIsNoText_IsBase64) {
  OpenedRecord record;
  record.body.envelope.payload = {0xff, 0x00, 0x01};
  const Json answer = opened_answer(record, target_name);
  EXPECT_EQ(answer["payload_base64"].text(), "/wAB");
  EXPECT_TRUE(answer["payload_text"].is_null());
  EXPECT_EQ(answer["payload_bytes"].count(), 3u);
}

TEST(Report, Changes_AreCounted) {
  Json answer;
  answer.set("changed", 1);
  EXPECT_EQ(report_text("spool retarget", answer), "1 record retargeted\n");
  answer.set("changed", 1234);
  answer.set("dry_run", true);
  EXPECT_EQ(report_text("spool discard", answer), "1,234 records would be discarded\n");
}

}  // namespace
}  // namespace holdfast
