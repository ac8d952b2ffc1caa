#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "appliance/config_file.h"
#include "appliance/config_rules.h"
#include "appliance/consumer_fit.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

// Every line of it is one that a case below replaces, or adds to.
const std::string kGood = R"([appliance]
site = "truck-07"

[spool]
key_file = "/etc/holdfast/spool.key"

[[source]]
name = "local"
type = "nats"
url = "nats://127.0.0.1:4222"
stream = "TELEMETRY"
consumer = "holdfast"
subjects = ["telemetry.>"]
identity = "stream_sequence"

[[target]]
name = "hub"
type = "nats"
url = "nats://hub.example:4222"

[[target]]
name = "shelf"
type = "file"
directory = "/media/shelf"
required = false

[[route]]
subjects = ["telemetry.>"]
targets = ["hub", "shelf"]
priority = "normal"

[control]
socket = "/run/holdfast/control.sock"
)";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  if (place != std::string::npos) text.replace(place, from.size(), to);
  return text;
}

std::string all_errors(const LoadedConfig& loaded) {
  std::string text;
  for (const Finding& finding : loaded.errors) text += finding_text("h.toml", finding) + '\n';
  return text;
}

std::string all_warnings(const LoadedConfig& loaded) {
  std::string text;
  for (const Finding& finding : loaded.warnings) text += finding_text("h.toml", finding) + '\n';
  return text;
}

TEST(Config, TheGoodFile_IsReadWhole) {
  const LoadedConfig loaded = parse_config(kGood);
  ASSERT_TRUE(loaded.ok()) << all_errors(loaded);
  EXPECT_TRUE(loaded.warnings.empty()) << all_warnings(loaded);
  const Config& config = loaded.config;
  EXPECT_EQ(config.appliance.site, "truck-07");
  EXPECT_EQ(config.spool.site, "truck-07");
  EXPECT_EQ(config.key.file, "/etc/holdfast/spool.key");
  ASSERT_EQ(config.sources.size(), 1u);
  EXPECT_EQ(config.sources[0].consumer.subjects, std::vector<std::string>{"telemetry.>"});
  EXPECT_EQ(config.sources[0].line, 7);
  ASSERT_EQ(config.targets.size(), 2u);
  EXPECT_EQ(std::get<FileTargetConfig>(config.targets[1].settings).directory, "/media/shelf");
  EXPECT_FALSE(config.targets[1].required);
  ASSERT_EQ(config.routes.size(), 1u);
  EXPECT_EQ(config.routes[0].priority, kNormalPriority);
}

TEST(Config, Defaults_AreTheDocumentedOnes) {
  const Config config = parse_config(kGood).config;
  EXPECT_EQ(config.appliance.state_dir, "/var/lib/holdfast");
  EXPECT_EQ(spool_directory(config), "/var/lib/holdfast/spool");
  EXPECT_EQ(config.appliance.log_level, LogLevel::info);
  EXPECT_EQ(config.spool.limits.max_bytes, 10ull << 30);
  EXPECT_EQ(config.spool.limits.max_records, 10'000'000u);
  EXPECT_EQ(config.spool.limits.min_free_bytes, 256ull << 20);
  EXPECT_EQ(config.spool.limits.min_free_inodes_percent, 1.0);
  EXPECT_EQ(config.spool.limits.quarantine_max_bytes, 1ull << 30);
  EXPECT_EQ(config.spool.linger, 1s);
  EXPECT_EQ(config.spool.journal_bytes, 64ull << 20);
  EXPECT_EQ(config.spool.sync, SyncMode::automatic);
  EXPECT_FALSE(config.spool.allow_unsafe_fs);
  EXPECT_EQ(config.spool.ledger_window, 168h);
  EXPECT_EQ(config.sources[0].batch, 256u);
  EXPECT_EQ(config.sources[0].identity.strategy, Strategy::stream_sequence);
  EXPECT_EQ(config.targets[0].window, 1024u);
  EXPECT_EQ(config.targets[0].window_bytes, 16u << 20);
  EXPECT_TRUE(config.targets[0].required);
  EXPECT_EQ(config.targets[0].order, Drain::fifo);
  EXPECT_EQ(config.control.socket, "/run/holdfast/control.sock");
}

TEST(Config, EveryKeyThatIsWritten_IsUsed) {
  std::string text =
      replaced(kGood, "site = \"truck-07\"",
               "site = \"truck-07\"\nstate_dir = \"/data\"\nlog_level = \"debug\"\nlog_format = \"json\"");
  text = replaced(
      text, "key_file = \"/etc/holdfast/spool.key\"",
      "credential = \"spool.key\"\nmax_bytes = \"20GiB\"\nmax_records = 5_000\nmax_record_bytes = \"8MiB\"\n"
      "min_free_bytes = \"1GiB\"\nmin_free_inodes = \"2.5%\"\nquarantine_max_bytes = \"2GiB\"\nlinger = \"0s\"\n"
      "journal_bytes = \"128MiB\"\nsync = \"files\"\nallow_unsafe_fs = true\nledger_window = \"30d\"\nledger_max = "
      "2_000");
  text = replaced(
      text, "identity = \"stream_sequence\"",
      "identity = \"message_id\"\nmessage_id_scope = \"site\"\nbatch = 64\nack_wait = \"10s\"\ncreds_file = \"/c\"\n"
      "domain = \"edge\"\nconsumer_mode = \"bind\"\ndeliver_policy = \"by_start_time\"\nstart_time = "
      "\"2026-01-31T12:00:00Z\"\nheaders_only = true\nmax_ack_pending = 500\nmax_deliver = 7\nbackoff = [\"1s\", "
      "\"30s\"]\nack = \"confirmed\"\ndead_letter = \"dead.telemetry\"\non_conflict = \"forward\"\non_duplicate = "
      "\"quarantine\"\n"
      "tls_ca = \"/ca\"\ntls_cert = \"/cert\"\ntls_key = \"/key\"");
  text = replaced(text, "url = \"nats://hub.example:4222\"",
                  "url = \"tls://[2001:db8::1]:4222\"\nnkey_file = \"/n\"\nwindow = 10\nwindow_bytes = \"1MiB\"\norder "
                  "= \"priority\"");
  text = replaced(text, "directory = \"/media/shelf\"", "directory = \"/media/shelf\"\nformat = \"raw\"");
  text = replaced(text, "priority = \"normal\"", "priority = \"flash\"");
  text = replaced(text, "socket = \"/run/holdfast/control.sock\"", "socket = \"/tmp/c.sock\"");
  const LoadedConfig loaded = parse_config(text);
  ASSERT_TRUE(loaded.ok()) << all_errors(loaded);
  const Config& config = loaded.config;
  EXPECT_EQ(config.appliance.state_dir, "/data");
  EXPECT_EQ(config.appliance.log_level, LogLevel::debug);
  EXPECT_EQ(config.appliance.log_format, LogFormat::json);
  EXPECT_EQ(config.key.credential, "spool.key");
  EXPECT_EQ(config.spool.limits.max_bytes, 20ull << 30);
  EXPECT_EQ(config.spool.limits.max_records, 5000u);
  EXPECT_EQ(config.spool.limits.max_record_bytes, 8u << 20);
  EXPECT_EQ(config.spool.limits.min_free_bytes, 1ull << 30);
  EXPECT_EQ(config.spool.limits.min_free_inodes_percent, 2.5);
  EXPECT_EQ(config.spool.limits.quarantine_max_bytes, 2ull << 30);
  EXPECT_EQ(config.spool.linger, 0s);
  EXPECT_EQ(config.spool.journal_bytes, 128ull << 20);
  EXPECT_EQ(config.spool.sync, SyncMode::files);
  EXPECT_TRUE(config.spool.allow_unsafe_fs);
  EXPECT_EQ(config.spool.ledger_window, 720h);
  EXPECT_EQ(config.spool.ledger_max, 2000u);
  EXPECT_EQ(config.sources[0].identity.strategy, Strategy::message_id);
  EXPECT_EQ(config.sources[0].identity.scope, MessageIdScope::site);
  EXPECT_EQ(config.sources[0].batch, 64u);
  const SourceConfig& source = config.sources[0];
  EXPECT_EQ(source.consumer.ack_wait, 10s);
  EXPECT_EQ(source.domain, "edge");
  EXPECT_EQ(source.mode, ConsumerMode::bind);
  EXPECT_EQ(source.consumer.deliver_policy, "by_start_time");
  EXPECT_EQ(source.consumer.start_time, "2026-01-31T12:00:00Z");
  EXPECT_TRUE(source.consumer.headers_only);
  EXPECT_EQ(source.consumer.max_ack_pending, 500);
  EXPECT_EQ(source.consumer.max_deliver, 7);
  EXPECT_EQ(source.consumer.backoff, (std::vector<Nanoseconds>{1s, 30s}));
  EXPECT_EQ(source.ack, AckMode::confirmed);
  EXPECT_EQ(source.dead_letter, "dead.telemetry");
  EXPECT_EQ(source.on_conflict, OnConflict::forward);
  EXPECT_EQ(source.on_duplicate, OnDuplicate::quarantine);
  EXPECT_EQ(config.sources[0].address.creds_file, "/c");
  EXPECT_EQ(config.sources[0].address.tls_ca, "/ca");
  EXPECT_EQ(config.sources[0].address.tls_cert, "/cert");
  EXPECT_EQ(config.sources[0].address.tls_key, "/key");
  const auto& hub = std::get<NatsTargetConfig>(config.targets[0].settings);
  EXPECT_EQ(hub.address.url, "tls://[2001:db8::1]:4222");
  EXPECT_EQ(hub.address.nkey_file, "/n");
  EXPECT_EQ(config.targets[0].window, 10u);
  EXPECT_EQ(config.targets[0].window_bytes, 1u << 20);
  EXPECT_EQ(config.targets[0].order, Drain::priority);
  EXPECT_EQ(std::get<FileTargetConfig>(config.targets[1].settings).format, FileFormat::raw);
  EXPECT_EQ(config.routes[0].priority, 0);
  EXPECT_EQ(config.control.socket, "/tmp/c.sock");
}

TEST(Config, IdentityOfThePayload_IsRead) {
  LoadedConfig loaded = parse_config(replaced(kGood, "identity = \"stream_sequence\"", "identity = \"payload_hash\""));
  ASSERT_TRUE(loaded.ok()) << all_errors(loaded);
  EXPECT_EQ(loaded.config.sources[0].identity.strategy, Strategy::payload_hash);
  for (const char* written :
       {"identity = { payload_field = 'order\\.no.id' }", "identity.payload_field = 'order\\.no.id'",
        "[source.identity]\npayload_field = 'order\\.no.id'"}) {
    loaded = parse_config(replaced(kGood, "identity = \"stream_sequence\"", written));
    ASSERT_TRUE(loaded.ok()) << all_errors(loaded);
    EXPECT_EQ(loaded.config.sources[0].identity.strategy, Strategy::payload_field);
    EXPECT_EQ(loaded.config.sources[0].identity.field.text, "order\\.no.id");
    EXPECT_EQ(loaded.config.sources[0].identity.field.keys, (std::vector<std::string>{"order.no", "id"}));
  }
}

TEST(Config, ARoute_HasAnIdentityOfItsOwnOrNone) {
  EXPECT_EQ(parse_config(kGood).config.routes[0].identity, std::nullopt);
  LoadedConfig loaded = parse_config(replaced(kGood, "priority = \"normal\"", "identity = \"stream_sequence\""));
  ASSERT_TRUE(loaded.ok()) << all_errors(loaded);
  EXPECT_EQ(loaded.config.routes[0].identity, IdentityRule());
  loaded = parse_config(
      replaced(kGood, "priority = \"normal\"", "identity = \"message_id\"\nmessage_id_scope = \"stream\""));
  ASSERT_TRUE(loaded.ok()) << all_errors(loaded);
  EXPECT_EQ(loaded.config.routes[0].identity, (IdentityRule{Strategy::message_id, MessageIdScope::stream}));
  loaded = parse_config(replaced(kGood, "priority = \"normal\"", "identity = { payload_field = \"id\" }"));
  ASSERT_TRUE(loaded.ok()) << all_errors(loaded);
  EXPECT_EQ(loaded.config.routes[0].identity->field.text, "id");
}

// One change of the good file, and what must be said of it: all of it, so that nothing else is said either.
struct BadFile {
  const char* name;
  const char* from;
  const char* to;
  const char* said;
};

constexpr const char* kSiteLine = "site = \"truck-07\"";
constexpr const char* kKeyLine = "key_file = \"/etc/holdfast/spool.key\"";

const BadFile kBadFiles[] = {
    {"UnknownTable", "[control]", "[controls]",
     "h.toml:32: controls: is not a key of this file; known are appliance, control, route, source, spool, target\n"},
    {"UnknownKey", kSiteLine, "site = \"truck-07\"\nsiet = 1",
     "h.toml:3: appliance.siet: is not a key of [appliance]; known are log_format, log_level, site, state_dir\n"},
    {"KeyAtTheTop", "[appliance]", "verbose = true\n[appliance]",
     "h.toml:1: verbose: is not a key of this file; known are appliance, control, route, source, spool, target\n"},
    {"KeyOfAnotherType", "directory = \"/media/shelf\"", "directory = \"/media/shelf\"\nurl = \"nats://h\"",
     "h.toml:25: target.url: is not a key of [target]; known are compression, directory, format, layout, name, "
     "order, required, rotate_after, rotate_bytes, type, window, window_bytes\n"},
    {"NoSite", kSiteLine, "", "h.toml:1: appliance.site: is missing; it has no default\n"},
    {"EmptySite", kSiteLine, "site = \"\"",
     "h.toml:2: appliance.site: must be 1 to 64 printable ASCII characters without a space or '/', like "
     "\"truck-07\"\n"},
    {"SiteWithSpace", kSiteLine, "site = \"truck 7\"",
     "h.toml:2: appliance.site: must be 1 to 64 printable ASCII characters without a space or '/', like "
     "\"truck-07\"\n"},
    {"SiteIsNumber", kSiteLine, "site = 7", "h.toml:2: appliance.site: is an integer; must be a string\n"},
    {"RelativeStateDir", kSiteLine, "site = \"a\"\nstate_dir = \"var\"",
     "h.toml:3: appliance.state_dir: must be an absolute path\n"},
    {"LogLevel", kSiteLine, "site = \"a\"\nlog_level = \"loud\"",
     "h.toml:3: appliance.log_level: \"loud\" is not known; must be one of \"debug\", \"info\", \"warning\", "
     "\"error\"\n"},
    {"NoKey", kKeyLine, "",
     "h.toml:4: spool.key_file: is missing; name the file that `holdfast keygen` made, or a systemd credential with "
     "credential\n"},
    {"KeyTwice", kKeyLine, "key_file = \"/k\"\ncredential = \"k\"",
     "h.toml:6: spool.credential: cannot be used together with key_file; keep one of them\n"},
    {"CredentialIsPath", kKeyLine, "credential = \"../k\"",
     "h.toml:5: spool.credential: must be the name of a systemd credential, like \"spool.key\", not a path\n"},
    {"CredentialIsDots", kKeyLine, "credential = \"..\"",
     "h.toml:5: spool.credential: must be the name of a systemd credential, like \"spool.key\", not a path\n"},
    {"SizeWithoutUnit", kKeyLine, "key_file = \"/k\"\nmax_bytes = \"10\"",
     "h.toml:6: spool.max_bytes: \"10\" is not a size like \"64MiB\" (B, KiB, MiB, GiB, TiB)\n"},
    {"SizeIsNumber", kKeyLine, "key_file = \"/k\"\nmax_bytes = 10",
     "h.toml:6: spool.max_bytes: is an integer; must be a size like \"64MiB\" (B, KiB, MiB, GiB, TiB)\n"},
    {"SizeInDecimalUnits", kKeyLine, "key_file = \"/k\"\nmax_bytes = \"10GB\"",
     "h.toml:6: spool.max_bytes: \"10GB\" is not a size like \"64MiB\" (B, KiB, MiB, GiB, TiB)\n"},
    {"SizeThatWraps", kKeyLine, "key_file = \"/k\"\nmax_bytes = \"16777216TiB\"",
     "h.toml:6: spool.max_bytes: \"16777216TiB\" is not a size like \"64MiB\" (B, KiB, MiB, GiB, TiB)\n"},
    {"SizeTooSmall", kKeyLine, "key_file = \"/k\"\nmax_bytes = \"1KiB\"",
     "h.toml:6: spool.max_bytes: must be from 32.0 MiB to 1024 TiB\n"},
    {"NoRoomBesideJournal", kKeyLine, "key_file = \"/k\"\nmax_bytes = \"64MiB\"",
     "h.toml:4: spool.max_bytes: leaves no room for records beside the journal; must be at least 80.0 MiB with this "
     "journal_bytes\n"},
    {"JournalOdd", kKeyLine, "key_file = \"/k\"\njournal_bytes = \"5000001B\"",
     "h.toml:6: spool.journal_bytes: must be a multiple of 16KiB: four segments of whole 4 KiB blocks\n"},
    {"JournalTiny", kKeyLine, "key_file = \"/k\"\njournal_bytes = \"16KiB\"",
     "h.toml:6: spool.journal_bytes: must be from 4.0 MiB to 4.0 GiB\n"},
    {"NoRecords", kKeyLine, "key_file = \"/k\"\nmax_records = 0",
     "h.toml:6: spool.max_records: must be from 1 to 1,000,000,000\n"},
    {"NegativeRecords", kKeyLine, "key_file = \"/k\"\nmax_records = -1",
     "h.toml:6: spool.max_records: must be from 1 to 1,000,000,000\n"},
    {"FloatingRecords", kKeyLine, "key_file = \"/k\"\nmax_records = 1e6",
     "h.toml:6: spool.max_records: is a floating-point number; must be an integer\n"},
    {"Inodes", kKeyLine, "key_file = \"/k\"\nmin_free_inodes = \"101%\"",
     "h.toml:6: spool.min_free_inodes: \"101%\" is not a share like \"1%\"\n"},
    {"InodesIsNumber", kKeyLine, "key_file = \"/k\"\nmin_free_inodes = 1",
     "h.toml:6: spool.min_free_inodes: is an integer; must be a share like \"1%\"\n"},
    {"Linger", kKeyLine, "key_file = \"/k\"\nlinger = \"1 s\"",
     "h.toml:6: spool.linger: \"1 s\" is not a duration like \"500ms\" (ms, s, m, h, d)\n"},
    {"LingerTooLong", kKeyLine, "key_file = \"/k\"\nlinger = \"2h\"",
     "h.toml:6: spool.linger: must be from 0 s to 1 h 0 min\n"},
    {"LedgerWindow", kKeyLine, "key_file = \"/k\"\nledger_window = \"1w\"",
     "h.toml:6: spool.ledger_window: \"1w\" is not a duration like \"500ms\" (ms, s, m, h, d)\n"},
    {"Sync", kKeyLine, "key_file = \"/k\"\nsync = \"never\"",
     "h.toml:6: spool.sync: \"never\" is not known; must be one of \"auto\", \"files\"\n"},
    {"UnsafeIsWord", kKeyLine, "key_file = \"/k\"\nallow_unsafe_fs = \"yes\"",
     "h.toml:6: spool.allow_unsafe_fs: is a string; must be true or false\n"},
    {"NoSourceName", "name = \"local\"", "", "h.toml:7: source.name: is missing; it has no default\n"},
    {"SourceName", "name = \"local\"", "name = \"lo cal\"",
     "h.toml:8: source.name: must be 1 to 64 letters, digits, '-', '_' or '.'\n"},
    {"NoSourceType", "type = \"nats\"", "", "h.toml:7: source.type: is missing; must be one of \"nats\"\n"},
    {"SourceType", "type = \"nats\"", "type = \"mqtt\"",
     "h.toml:9: source.type: \"mqtt\" is not known; must be one of \"nats\"\n"},
    {"NoUrl", "url = \"nats://127.0.0.1:4222\"", "", "h.toml:7: source.url: is missing; it has no default\n"},
    {"UrlScheme", "url = \"nats://127.0.0.1:4222\"", "url = \"http://127.0.0.1\"",
     "h.toml:10: source.url: must be like \"nats://host:4222\" or \"tls://host:4222\", several with commas between "
     "them\n"},
    {"UrlPort", "url = \"nats://127.0.0.1:4222\"", "url = \"nats://127.0.0.1:70000\"",
     "h.toml:10: source.url: must be like \"nats://host:4222\" or \"tls://host:4222\", several with commas between "
     "them\n"},
    {"UrlNoHost", "url = \"nats://127.0.0.1:4222\"", "url = \"nats://:4222\"",
     "h.toml:10: source.url: must be like \"nats://host:4222\" or \"tls://host:4222\", several with commas between "
     "them\n"},
    {"UrlPath", "url = \"nats://127.0.0.1:4222\"", "url = \"nats://127.0.0.1:4222/x\"",
     "h.toml:10: source.url: must be like \"nats://host:4222\" or \"tls://host:4222\", several with commas between "
     "them\n"},
    {"UrlTwoServersOneBad", "url = \"nats://127.0.0.1:4222\"", "url = \"nats://a:1,http://b:2\"",
     "h.toml:10: source.url: must be like \"nats://host:4222\" or \"tls://host:4222\", several with commas between "
     "them\n"},
    {"NoStream", "stream = \"TELEMETRY\"", "", "h.toml:7: source.stream: is missing; it has no default\n"},
    {"StreamWithDot", "stream = \"TELEMETRY\"", "stream = \"TELE.METRY\"",
     "h.toml:11: source.stream: must be a name as JetStream takes it: printable, without spaces, '.', '*', '>', '/' or "
     "'\\'\n"},
    {"EmptyConsumer", "consumer = \"holdfast\"", "consumer = \"\"",
     "h.toml:12: source.consumer: must be a name as JetStream takes it: printable, without spaces, '.', '*', '>', '/' "
     "or '\\'\n"},
    {"SubjectsIsText", "subjects = [\"telemetry.>\"]\nidentity", "subjects = \"telemetry.>\"\nidentity",
     "h.toml:13: source.subjects: is a string; must be an array of strings\n"},
    {"SubjectsEmpty", "subjects = [\"telemetry.>\"]\nidentity", "subjects = []\nidentity",
     "h.toml:13: source.subjects: is empty; name at least one, or leave the key out\n"},
    {"SubjectsMixed", "subjects = [\"telemetry.>\"]\nidentity", "subjects = [\"telemetry.>\", 7]\nidentity",
     "h.toml:13: source.subjects: has an integer in it; must be an array of strings\n"},
    {"SubjectBad", "subjects = [\"telemetry.>\"]\nidentity", "subjects = [\"telemetry.>.x\"]\nidentity",
     "h.toml:13: source.subjects: \"telemetry.>.x\" must be a subject, like \"telemetry.>\": tokens between dots, '*' "
     "for one token, a last '>' for all that follow\n"},
    {"Identity", "identity = \"stream_sequence\"", "identity = \"random\"",
     "h.toml:14: source.identity: \"random\" is not known; must be one of \"stream_sequence\", \"message_id\", "
     "\"payload_field\", \"payload_hash\"\n"},
    {"FieldBlank", "identity = \"stream_sequence\"", "identity = { payload_field = \" \" }",
     "h.toml:14: source.identity.payload_field: is blank; must name a field, like \"order.id\"\n"},
    {"FieldEmptyKey", "identity = \"stream_sequence\"", "identity = { payload_field = \"a..b\" }",
     "h.toml:14: source.identity.payload_field: has an empty key; each dot stands between two keys, \\. is a dot in "
     "one\n"},
    {"FieldControl", "identity = \"stream_sequence\"", "identity = { payload_field = \"a\\tb\" }",
     "h.toml:14: source.identity.payload_field: has a control character in it\n"},
    {"FieldEscape", "identity = \"stream_sequence\"", "identity = { payload_field = 'a\\b' }",
     "h.toml:14: source.identity.payload_field: has a backslash that escapes nothing; \\. is a dot in a key, \\\\ a "
     "backslash\n"},
    {"FieldDeep", "identity = \"stream_sequence\"",
     "identity = { payload_field = \"a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a\" }",
     "h.toml:14: source.identity.payload_field: has more than 16 keys\n"},
    {"FieldIsNumber", "identity = \"stream_sequence\"", "identity = { payload_field = 7 }",
     "h.toml:14: source.identity.payload_field: is an integer; must be a string\n"},
    {"FieldMissing", "identity = \"stream_sequence\"", "identity = {}",
     "h.toml:14: source.identity.payload_field: is missing; must name a field, like \"order.id\"\n"},
    {"FieldAndMore", "identity = \"stream_sequence\"", "identity = { payload_field = \"id\", scope = \"site\" }",
     "h.toml:14: source.identity.scope: is not a key of [source.identity]; known are payload_field\n"},
    {"FieldWithoutName", "identity = \"stream_sequence\"", "identity = \"payload_field\"",
     "h.toml:14: source.identity: names no field; must be like { payload_field = \"order.id\" }\n"},
    {"FieldWithScope", "identity = \"stream_sequence\"",
     "identity = { payload_field = \"id\" }\nmessage_id_scope = \"site\"",
     "h.toml:15: source.message_id_scope: says nothing with this identity; it belongs to identity = \"message_id\"\n"},
    {"RouteIdentity", "priority = \"normal\"", "identity = \"random\"",
     "h.toml:30: route.identity: \"random\" is not known; must be one of \"stream_sequence\", \"message_id\", "
     "\"payload_field\", \"payload_hash\"\n"},
    {"RouteField", "priority = \"normal\"", "identity = { payload_field = \"a.\" }",
     "h.toml:30: route.identity.payload_field: has an empty key; each dot stands between two keys, \\. is a dot in "
     "one\n"},
    {"RouteScopeAlone", "priority = \"normal\"", "message_id_scope = \"site\"",
     "h.toml:30: route.message_id_scope: says nothing with this identity; it belongs to identity = \"message_id\"\n"},
    {"ScopeWithoutMessageId", "identity = \"stream_sequence\"", "message_id_scope = \"site\"",
     "h.toml:14: source.message_id_scope: says nothing with this identity; it belongs to identity = \"message_id\"\n"},
    {"BatchZero", "identity = \"stream_sequence\"", "batch = 0", "h.toml:14: source.batch: must be from 1 to 4,096\n"},
    {"AckWait", "identity = \"stream_sequence\"", "ack_wait = \"10ms\"",
     "h.toml:14: source.ack_wait: must be from 1 s to 1 h 0 min\n"},
    {"DeadLetterPattern", "identity = \"stream_sequence\"", "dead_letter = \"dlq.>\"",
     "h.toml:14: source.dead_letter: must be a subject without wildcards or a '$' before it, like "
     "\"dead.telemetry\"\n"},
    {"DeadLetterToTheServer", "identity = \"stream_sequence\"", "dead_letter = \"$JS.API.STREAM.DELETE.TELEMETRY\"",
     "h.toml:14: source.dead_letter: must be a subject without wildcards or a '$' before it, like "
     "\"dead.telemetry\"\n"},
    {"DeadLetterOfItsOwn", "identity = \"stream_sequence\"", "dead_letter = \"telemetry.dead\"",
     "h.toml:7: source.dead_letter: is one of the source's own subjects: dead letters would come round\n"},
    {"DeliverPolicy", "identity = \"stream_sequence\"", "deliver_policy = \"oldest\"",
     "h.toml:14: source.deliver_policy: must be one of \"all\", \"new\", \"last\", \"by_start_sequence\", "
     "\"by_start_time\"\n"},
    {"StartWithoutPolicy", "identity = \"stream_sequence\"", "start_sequence = 5",
     "h.toml:14: source.start_sequence: belongs to deliver_policy = \"by_start_sequence\"\n"},
    {"PolicyWithoutStart", "identity = \"stream_sequence\"", "deliver_policy = \"by_start_time\"",
     "h.toml:7: source.start_time: is missing; deliver_policy \"by_start_time\" needs it\n"},
    {"StartTime", "identity = \"stream_sequence\"", "deliver_policy = \"by_start_time\"\nstart_time = \"yesterday\"",
     "h.toml:15: source.start_time: must be a time like \"2026-01-31T12:00:00Z\"\n"},
    {"Backoff", "identity = \"stream_sequence\"", "backoff = [\"1s\", \"10ms\"]",
     "h.toml:14: source.backoff: \"10ms\" must be a duration from 1s to 24h\n"},
    {"BackoffTooLong", "identity = \"stream_sequence\"", "backoff = [\"1s\", \"2s\"]\nmax_deliver = 1",
     "h.toml:7: source.backoff: must be shorter than max_deliver, or a server refuses it\n"},
    {"HeadersOnlyWithoutPayload", "identity = \"stream_sequence\"", "identity = \"payload_hash\"\nheaders_only = true",
     "h.toml:7: source.headers_only: leaves out the payload, which this identity is made of\n"},
    {"OneStreamOnTwoServers", "[[target]]\nname = \"hub\"",
     "[[source]]\nname = \"far\"\ntype = \"nats\"\nurl = \"nats://far:4222\"\nstream = \"TELEMETRY\"\n[[target]]\nname "
     "= "
     "\"hub\"",
     "h.toml:16: source.stream: \"TELEMETRY\" is the stream of source \"local\", too, on another server or in another "
     "domain: the two would be one in every key\n"},
    {"ConsumerOfTwo", "[[target]]\nname = \"hub\"",
     "[[source]]\nname = \"too\"\ntype = \"nats\"\nurl = \"nats://127.0.0.1:4222\"\nstream = "
     "\"TELEMETRY\"\n[[target]]\n"
     "name = \"hub\"",
     "h.toml:16: source.consumer: \"holdfast\" is the consumer of source \"local\", too; give each a consumer of its "
     "own, "
     "or its messages go now to one, now to the other\n"},
    {"TwoCredentials", "identity = \"stream_sequence\"", "creds_file = \"/a\"\nnkey_file = \"/b\"",
     "h.toml:7: source.nkey_file: cannot be used together with creds_file; keep one of them\n"},
    {"CertWithoutKey", "identity = \"stream_sequence\"", "tls_ca = \"/ca\"\ntls_cert = \"/a\"",
     "h.toml:7: source.tls_key: is missing; tls_cert and tls_key go together\n"},
    {"KeyWithoutCert", "identity = \"stream_sequence\"", "tls_ca = \"/ca\"\ntls_key = \"/a\"",
     "h.toml:7: source.tls_cert: is missing; tls_cert and tls_key go together\n"},
    {"TargetNameTwice", "name = \"shelf\"", "name = \"hub\"",
     "h.toml:21: target.name: \"hub\" is used twice; give each target a name of its own\nh.toml:27: route.targets: "
     "\"shelf\" is no target of this file; add a [[target]] of that name or correct the route\n"},
    {"TargetType", "type = \"file\"\ndirectory = \"/media/shelf\"", "type = \"smtp\"\nurl = \"nats://h\"",
     "h.toml:23: target.type: \"smtp\" is not known; must be one of \"nats\", \"file\", \"http\", \"s3\", "
     "\"postgres\", \"mysql\"\n"},
    {"NoDirectory", "directory = \"/media/shelf\"", "", "h.toml:21: target.directory: is missing; it has no default\n"},
    {"RelativeDirectory", "directory = \"/media/shelf\"", "directory = \"shelf\"",
     "h.toml:24: target.directory: must be an absolute path\n"},
    {"Format", "directory = \"/media/shelf\"", "directory = \"/media/shelf\"\nformat = \"xml\"",
     "h.toml:25: target.format: \"xml\" is not known; must be one of \"json\", \"raw\", \"ndjson\"\n"},
    {"Window", "url = \"nats://hub.example:4222\"", "url = \"nats://hub.example:4222\"\nwindow = 0",
     "h.toml:20: target.window: must be from 1 to 65,536\n"},
    {"WindowBytes", "url = \"nats://hub.example:4222\"", "url = \"nats://hub.example:4222\"\nwindow_bytes = \"1B\"",
     "h.toml:20: target.window_bytes: must be from 64.0 KiB to 1.0 GiB\n"},
    {"Order", "url = \"nats://hub.example:4222\"", "url = \"nats://hub.example:4222\"\norder = \"lifo\"",
     "h.toml:20: target.order: \"lifo\" is not known; must be one of \"fifo\", \"priority\"\n"},
    {"RequiredIsNumber", "required = false", "required = 0",
     "h.toml:25: target.required: is an integer; must be true or false\n"},
    {"UnknownTarget", "targets = [\"hub\", \"shelf\"]", "targets = [\"hub\", \"self\"]",
     "h.toml:27: route.targets: \"self\" is no target of this file; add a [[target]] of that name or correct the "
     "route\n"},
    {"TargetTwiceInRoute", "targets = [\"hub\", \"shelf\"]", "targets = [\"hub\", \"hub\"]",
     "h.toml:27: route.targets: \"hub\" is named twice; name each target once\n"},
    {"NoRequiredTarget", "targets = [\"hub\", \"shelf\"]", "targets = [\"shelf\"]",
     "h.toml:27: route.targets: has no required target, so its records could never leave; add one with required = "
     "true\n"},
    {"NoRouteTargets", "targets = [\"hub\", \"shelf\"]", "",
     "h.toml:27: route.targets: is missing; name where this route leads\n"},
    {"NoRouteSubjects", "subjects = [\"telemetry.>\"]\ntargets", "targets",
     "h.toml:27: route.subjects: is missing; name what this route takes, \">\" for everything\n"},
    {"Priority", "priority = \"normal\"", "priority = \"asap\"",
     "h.toml:30: route.priority: must be one of flash, immediate, urgent, high, normal, none, low, deferred\n"},
    {"SingleBrackets", "[[route]]", "[route]", "h.toml:27: route: is a table; must be written as [[route]]\n"},
    {"DoubleBrackets", "[control]", "[[control]]", "h.toml:32: control: is an array; must be a table, [control]\n"},
    {"RelativeSocket", "socket = \"/run/holdfast/control.sock\"", "socket = \"control.sock\"",
     "h.toml:33: control.socket: must be an absolute path of at most 107 bytes\n"},
    {"Syntax", kSiteLine, "site = \"truck-07", nullptr},
    {"KeyWrittenTwice", kSiteLine, "site = \"a\"\nsite = \"b\"", nullptr},
    {"TableWrittenTwice", "[control]", "[appliance]\n[control]", nullptr},
    {"NotUtf8", kSiteLine, "site = \"\xff\"", nullptr},
};

class ConfigRefusal : public ::testing::TestWithParam<BadFile> {};

TEST_P(ConfigRefusal, NamesLineAndKey) {
  const BadFile& bad = GetParam();
  const LoadedConfig loaded = parse_config(replaced(kGood, bad.from, bad.to));
  EXPECT_FALSE(loaded.ok());
  if (bad.said == nullptr) {
    ASSERT_EQ(loaded.errors.size(), 1u) << all_errors(loaded);
    EXPECT_GT(loaded.errors[0].line, 0);
    EXPECT_FALSE(loaded.errors[0].text.empty());
    EXPECT_EQ(loaded.errors[0].text.find('\n'), std::string::npos);
  } else {
    EXPECT_EQ(all_errors(loaded), bad.said);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, ConfigRefusal, ::testing::ValuesIn(kBadFiles),
                         [](const auto& file) { return std::string(file.param.name); });

TEST(Config, AllErrors_AreFoundInOneReading) {
  std::string text = replaced(kGood, kSiteLine, "site = \"\"");
  text = replaced(text, "stream = \"TELEMETRY\"", "stream = 1");
  text = replaced(text, "required = false", "required = \"no\"");
  text = replaced(text, "priority = \"normal\"", "prority = \"normal\"");
  EXPECT_EQ(
      all_errors(parse_config(text)),
      "h.toml:2: appliance.site: must be 1 to 64 printable ASCII characters without a space or '/', like \"truck-07\"\n"
      "h.toml:11: source.stream: is an integer; must be a string\n"
      "h.toml:25: target.required: is a string; must be true or false\n"
      "h.toml:30: route.prority: is not a key of [route]; known are identity, message_id_scope, priority, subjects, "
      "targets\n");
}

TEST(Config, AnEmptyFile_NamesEverythingThatIsMissing) {
  EXPECT_EQ(all_errors(parse_config("")),
            "h.toml:1: appliance.site: is missing; it has no default\n"
            "h.toml:1: spool.key_file: is missing; name the file that `holdfast keygen` made, or a systemd credential "
            "with credential\n"
            "h.toml:1: target: there is none, so no record could ever leave; add a [[target]]\n");
}

TEST(Config, AFileOfErrors_IsReportedUpToABound) {
  std::string text = kGood;
  for (int n = 0; n < 100; ++n) text = "k" + std::to_string(n) + " = 1\n" + text;
  const LoadedConfig loaded = parse_config(text);
  EXPECT_EQ(loaded.errors.size(), Findings::kMost);
  EXPECT_EQ(loaded.errors_left_out, 80u);
}

TEST(Config, WithoutRoutes_OneTargetMustBeRequired) {
  std::string text = kGood.substr(0, kGood.find("[[route]]"));
  EXPECT_TRUE(parse_config(text).ok()) << all_errors(parse_config(text));
  text = replaced(text, "url = \"nats://hub.example:4222\"", "url = \"nats://hub.example:4222\"\nrequired = false");
  EXPECT_EQ(
      all_errors(parse_config(text)),
      "h.toml:16: target.required: no target is required, so no record could ever leave; set required = true on one\n");
}

TEST(Config, WhatWouldSurprise_IsWarnedOf) {
  std::string text = replaced(kGood, "subjects = [\"telemetry.>\"]\nidentity",
                              "subjects = [\"telemetry.>\", \"alarm.*\", \"log\"]\nidentity");
  text +=
      "\n[[route]]\nsubjects = [\"telemetry.engine\"]\ntargets = [\"hub\"]\n\n[[route]]\nsubjects = [\"alarm.fire\", "
      "\"video.>\"]\ntargets = [\"hub\"]\n";
  const LoadedConfig loaded = parse_config(text);
  EXPECT_TRUE(loaded.ok()) << all_errors(loaded);
  EXPECT_EQ(all_warnings(loaded),
            "h.toml:7: source.subjects: no one route takes all of \"alarm.*\"; what none takes will go to quarantine "
            "as no_route\n"
            "h.toml:7: source.subjects: no route can match \"log\"; its messages will go to quarantine as no_route\n"
            "h.toml:35: route.subjects: no message reaches this route: the ones before it take them all\n"
            "h.toml:39: route.subjects: no source brings \"video.>\"\n");
}

TEST(Config, ALoginInAUrl_IsTakenAndWarnedOf) {
  const LoadedConfig loaded =
      parse_config(replaced(kGood, "nats://127.0.0.1:4222", "nats://user:secret@a:1,nats://b:2"));
  EXPECT_TRUE(loaded.ok()) << all_errors(loaded);
  EXPECT_EQ(all_warnings(loaded),
            "h.toml:7: source.url: holds a login that who reads this file can read; creds_file or nkey_file keeps it "
            "apart\n");
}

TEST(Config, WithoutASource_ThereIsAWarning) {
  std::string text = kGood;
  const std::size_t from = text.find("[[source]]");
  text.erase(from, text.find("[[target]]") - from);
  const LoadedConfig loaded = parse_config(text);
  EXPECT_TRUE(loaded.ok()) << all_errors(loaded);
  EXPECT_EQ(all_warnings(loaded), "h.toml:1: source: there is none: nothing will be taken in\n");
}

TEST(Config, PatternCovers_IsInclusionOfSubjects) {
  EXPECT_TRUE(pattern_covers(">", "a"));
  EXPECT_TRUE(pattern_covers(">", "a.*.>"));
  EXPECT_TRUE(pattern_covers("a.>", "a.b"));
  EXPECT_TRUE(pattern_covers("a.>", "a.>"));
  EXPECT_TRUE(pattern_covers("a.*", "a.b"));
  EXPECT_TRUE(pattern_covers("*.*", "a.*"));
  EXPECT_FALSE(pattern_covers("a.>", "a"));
  EXPECT_FALSE(pattern_covers("a.*", "a.>"));
  EXPECT_FALSE(pattern_covers("a.*", "a.b.c"));
  EXPECT_FALSE(pattern_covers("a.b", "a.*"));
  EXPECT_FALSE(pattern_covers("a.b.c", "a.b"));
  EXPECT_FALSE(pattern_covers("*", ">"));
}

class ConfigOnDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "holdfast-config-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::filesystem::path directory_;
};

TEST_F(ConfigOnDisk, AFile_IsRead) {
  const auto path = directory_ / "holdfast.toml";
  std::ofstream(path) << kGood;
  EXPECT_TRUE(load_config(path.string()).ok());
}

TEST_F(ConfigOnDisk, WhatIsNoFile_IsRefused) {
  EXPECT_EQ(load_config((directory_ / "absent").string()).errors.at(0).text,
            "cannot be read: No such file or directory");
  EXPECT_EQ(load_config(directory_.string()).errors.at(0).text, "is not a regular file");
  EXPECT_EQ(load_config("/dev/zero").errors.at(0).text, "is not a regular file");
}

TEST_F(ConfigOnDisk, AHugeFile_IsRefusedWithoutReadingIt) {
  const auto path = directory_ / "huge";
  std::ofstream(path) << "x";
  std::filesystem::resize_file(path, 1ull << 33);
  EXPECT_EQ(load_config(path.string()).errors.at(0).text, "is larger than 1 MiB; that is no configuration");
}

// The parser would look at it, and what it does then is undefined.
TEST(Config, CharactersBeyondAscii_AreForStringsAndCommentsOfOneLine) {
  const std::string beyond = "has a character beyond ASCII outside a string or comment of one line";
  for (const char* text :
       {"\u01e0?", "\u01fcber = 1", "a = \u01e0", "[\u0100]", "a = 'x' \u01e0", "a = \"\\\"\" \u01e0",
        "a = \"\"\"\nx \\\n \u01e0\"\"\"", "a = \"\"\" \"x \\\n\u01e0\"\"\"", "a = '''\u01e0'''", "a = 0\"^\ufebf\"",
        "a\"\u01e0\" = 1", "a=9[b{\"\u01e0\"", "a = 9=\"\u01e0\"", "a = 9.\"\u01e0\"",
        "a =\"\"\"\"]\" [ '\"\"\"\ufebf'", "a = 1979-05-27 0\"\u01e0\""}) {
    const LoadedConfig loaded = parse_config(text);
    ASSERT_EQ(loaded.errors.size(), 1u) << text;
    EXPECT_EQ(loaded.errors[0].text, beyond) << text;
  }
  EXPECT_EQ(parse_config("# \u01e0\na = \"\n\n\u01e0").errors.at(0).line, 4) << "a string ends with its line";
  for (const char* text :
       {"# \u01e0\n", "\ufeff# after a byte order mark\n", "a = \"\u01e0\"", "a = '\u01e0'", "a=\"\u01e0\"",
        "a = [\"\u01e0\",'\u01e0']", "a = {'\u01e0' = 1} # \u01e0", "a ={b=\"\u01e0\",c='\u01e0'}", "a=[['\u01e0']]"}) {
    for (const auto& error : parse_config(text).errors) EXPECT_NE(error.text, beyond) << text;
  }
}

TEST(Config, DeepNesting_IsRefused) {
  EXPECT_FALSE(parse_config("a = " + std::string(100000, '[')).ok());
}

}  // namespace
}  // namespace holdfast
