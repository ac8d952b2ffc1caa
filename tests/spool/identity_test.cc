// Identity keys are a contract with every upstream that recomputes them: the vectors of spool/IDENTITY.md hold, and no
// two different origins share a key.
#include "spool/identity.h"

#include <gtest/gtest.h>

#include <charconv>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/support/document.h"
#include "tests/support/simulated_loss.h"

namespace holdfast {
namespace {

using std::string_literals::operator""s;

using Vector = std::map<std::string, std::string>;

// A number as it stands, or text in quotes with \xNN for bytes.
std::string value_of(std::string_view field) {
  if (!field.starts_with('"')) return std::string(field);
  std::string value;
  for (std::size_t i = 1; i + 1 < field.size(); ++i) {
    if (field[i] != '\\') {
      value.push_back(field[i]);
      continue;
    }
    unsigned byte = 0;
    std::from_chars(field.data() + i + 2, field.data() + i + 4, byte, 16);
    value.push_back(static_cast<char>(byte));
    i += 3;
  }
  return value;
}

std::vector<Vector> vectors() {
  std::vector<Vector> all(1);
  for (const std::string& line : document_lines("spool/IDENTITY.md", "vectors")) {
    if (line.empty()) {
      all.emplace_back();
      continue;
    }
    const std::size_t name_end = line.find(' ');
    const std::size_t value_start = line.find_first_not_of(' ', name_end);
    all.back()[line.substr(0, name_end)] = value_of(std::string_view(line).substr(value_start));
  }
  return all;
}

IdentityRule rule_named(const std::string& name) {
  if (name == "message_id_global") return {Strategy::message_id, MessageIdScope::global};
  if (name == "message_id_site") return {Strategy::message_id, MessageIdScope::site};
  if (name == "message_id_stream") return {Strategy::message_id, MessageIdScope::stream};
  if (name == "payload_hash") return {Strategy::payload_hash};
  EXPECT_EQ(name, "stream_sequence");
  return {};
}

IdentityRule rule_of_field(const std::string& text) {
  auto path = parse_field_path(text);
  EXPECT_TRUE(path.ok()) << text;
  return {Strategy::payload_field, {}, path.ok() ? *path : FieldPath()};
}

Envelope from_stream(std::string stream, std::uint64_t sequence, std::int64_t timestamp_ns) {
  Envelope envelope;
  envelope.origin = {std::move(stream), sequence, timestamp_ns};
  return envelope;
}

Envelope with_id(std::string stream, std::string id) {
  Envelope envelope = from_stream(std::move(stream), 7, 8);
  envelope.headers = {{"Nats-Msg-Id", std::move(id)}};
  return envelope;
}

Envelope with_payload(std::string subject, std::string_view payload) {
  Envelope envelope = from_stream("T", 7, 8);
  envelope.subject = std::move(subject);
  envelope.payload.assign(payload.begin(), payload.end());
  return envelope;
}

std::string key_of(const IdentityRule& rule, std::string_view site, const Envelope& envelope) {
  return std::get<Identity>(identify(rule, site, envelope)).key;
}

std::optional<Reason> refusal_of(const IdentityRule& rule, const Envelope& envelope) {
  const auto identified = identify(rule, "s", envelope);
  const Reason* reason = std::get_if<Reason>(&identified);
  return reason == nullptr ? std::nullopt : std::optional(*reason);
}

TEST(IdentityDocument, EveryVectorHolds) {
  const auto all = vectors();
  ASSERT_GE(all.size(), 90U);
  for (Vector vector : all) {
    const IdentityRule rule =
        vector["rule"] == "payload_field" ? rule_of_field(vector["path"]) : rule_named(vector["rule"]);
    Envelope envelope = with_id(vector["stream"], vector["id"]);
    envelope.subject = vector["subject"];
    envelope.payload.assign(vector["payload"].begin(), vector["payload"].end());
    if (vector.contains("refused")) {
      EXPECT_EQ(refusal_of(rule, envelope), reason_from_text(vector["refused"])) << vector["payload"];
      continue;
    }
    if (rule.strategy == Strategy::stream_sequence) {
      envelope.origin.sequence = std::stoull(vector["sequence"]);
      envelope.origin.timestamp_ns = std::stoll(vector["timestamp"]);
    }
    const std::string key = key_of(rule, vector["site"], envelope);
    EXPECT_EQ(key, vector["key"]);
    EXPECT_EQ(wire_key(key), vector["wire"]);
  }
}

TEST(Identity, SaysWhichStrategyMadeIt) {
  EXPECT_EQ(std::get<Identity>(identify({}, "s", from_stream("T", 1, 2))).strategy, Strategy::stream_sequence);
  EXPECT_EQ(std::get<Identity>(identify({Strategy::message_id}, "s", with_id("T", "x"))).strategy,
            Strategy::message_id);
  EXPECT_EQ(std::get<Identity>(identify({Strategy::payload_hash}, "s", from_stream("T", 1, 2))).strategy,
            Strategy::payload_hash);
  EXPECT_EQ(std::get<Identity>(identify(rule_of_field("id"), "s", with_payload("", R"({"id":1})"))).strategy,
            Strategy::payload_field);
}

TEST(Strategy, HasTheNameThatTheConfigurationGivesIt) {
  EXPECT_EQ(strategy_text(Strategy::stream_sequence), "stream_sequence");
  EXPECT_EQ(strategy_text(Strategy::message_id), "message_id");
  EXPECT_EQ(strategy_text(Strategy::payload_field), "payload_field");
  EXPECT_EQ(strategy_text(Strategy::payload_hash), "payload_hash");
}

TEST(Identity, Numbers_AreDecimalWithoutLeadingZeros) {
  constexpr auto kSequence = std::numeric_limits<std::uint64_t>::max();
  constexpr auto kLow = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(key_of({}, "s", from_stream("T", 0, 0)), "seq:s:T:0:0");
  EXPECT_EQ(key_of({}, "s", from_stream("T", kSequence, kLow)), "seq:s:T:18446744073709551615:-9223372036854775808");
  EXPECT_EQ(refused_key("s", from_stream("T", 10, -1)), "refused:s:T:10:-1");
}

TEST(Identity, AReusedSequenceNumber_IsAnotherMessage) {
  EXPECT_NE(key_of({}, "s", from_stream("T", 5, 100)), key_of({}, "s", from_stream("T", 5, 101)));
}

TEST(Identity, OfAPosition_DoesNotDependOnWhatTheMessageSays) {
  Envelope one = with_id("T", "one");
  Envelope other = with_id("T", "other");
  other.subject = "x";
  other.payload = {1};
  other.source = "elsewhere";
  EXPECT_EQ(key_of({}, "s", one), key_of({}, "s", other));
}

TEST(MessageId, IsTheFirstThatIsNotEmpty_InTheOrderOfTheNames) {
  const IdentityRule rule{Strategy::message_id};
  Envelope envelope;
  envelope.headers = {{"message-id", "c"}, {"Nats-Message-Id", "b"}, {"Nats-Msg-Id", "a"}};
  EXPECT_EQ(key_of(rule, "s", envelope), "msg:a");
  envelope.headers[2].value = "";
  EXPECT_EQ(key_of(rule, "s", envelope), "msg:b");
  envelope.headers[1].value = "";
  EXPECT_EQ(key_of(rule, "s", envelope), "msg:c");
}

TEST(MessageId, OfAHeaderThatCameTwice_IsTheFirstThatIsNotEmpty) {
  Envelope envelope;
  envelope.headers = {{"Nats-Msg-Id", ""}, {"nats-msg-id", "a"}, {"Nats-Msg-Id", "b"}};
  EXPECT_EQ(key_of({Strategy::message_id}, "s", envelope), "msg:a");
}

TEST(MessageId, NamesAreExact_AndTheirCaseDoesNotMatter) {
  Envelope envelope;
  envelope.headers = {{"X-Nats-Msg-Id", "no"}, {"Nats-Msg-Id2", "no"}, {"MESSAGE-ID", "yes"}};
  EXPECT_EQ(key_of({Strategy::message_id}, "s", envelope), "msg:yes");
}

TEST(MessageId, OfNothingButSpaces_IsAnId) {
  EXPECT_EQ(key_of({Strategy::message_id}, "s", with_id("T", " ")), "msg:%20");
}

TEST(MessageId, Missing_IsRefusedWithItsReason) {
  for (const auto scope : {MessageIdScope::global, MessageIdScope::site, MessageIdScope::stream}) {
    const IdentityRule rule{Strategy::message_id, scope};
    EXPECT_EQ(std::get<Reason>(identify(rule, "s", from_stream("T", 1, 2))), Reason::no_identity);
    EXPECT_EQ(std::get<Reason>(identify(rule, "s", with_id("T", ""))), Reason::no_identity);
  }
}

TEST(PayloadHash, IsOfSubjectAndPayload_AndOfNothingElse) {
  const IdentityRule rule{Strategy::payload_hash};
  Envelope one = with_payload("a.b", "abc");
  Envelope other = one;
  other.origin = {"ELSEWHERE", 9, 10};
  other.headers = {{"Nats-Msg-Id", "x"}};
  EXPECT_EQ(key_of(rule, "s", one), "hash:a.b:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(key_of(rule, "other", other), key_of(rule, "s", one));
  EXPECT_NE(key_of(rule, "s", with_payload("a.c", "abc")), key_of(rule, "s", one));
  EXPECT_NE(key_of(rule, "s", with_payload("a.b", "abd")), key_of(rule, "s", one));
}

TEST(PayloadField, IsOfTheFieldAlone) {
  EXPECT_EQ(key_of(rule_of_field("id"), "s", with_payload("a", R"({"id":1})")),
            key_of(rule_of_field("id"), "t", with_payload("b", R"({"x":2,"id":1.0})")));
}

TEST(PayloadOmitted, IsRefusedByWhatIsMadeOfThePayload_AndByNothingElse) {
  Envelope envelope = with_id("T", "x");
  envelope.payload_omitted = true;
  EXPECT_EQ(refusal_of({Strategy::payload_hash}, envelope), Reason::payload_omitted);
  EXPECT_EQ(refusal_of(rule_of_field("id"), envelope), Reason::payload_omitted);
  EXPECT_EQ(refusal_of(rule_of_field("payload"), envelope), Reason::payload_omitted);
  EXPECT_EQ(refusal_of({Strategy::message_id}, envelope), std::nullopt);
  EXPECT_EQ(refusal_of({}, envelope), std::nullopt);
  envelope.payload_omitted = false;
  EXPECT_EQ(refusal_of({Strategy::payload_hash}, envelope), std::nullopt) << "an empty payload is one";
}

TEST(Escape, TouchesJustWhatIsNotPlain) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string raw(1, static_cast<char>(byte));
    const bool plain = byte >= 0x21 && byte <= 0x7e && byte != '%' && byte != ':';
    const std::string escaped = escape_component(raw);
    EXPECT_EQ(escaped == raw, plain) << byte;
    if (!plain) {
      EXPECT_EQ(escaped.size(), 3U) << byte;
    }
  }
  EXPECT_EQ(escape_component("\xab:%\0"s), "%AB%3A%25%00");
}

TEST(WireKey, IsTheKeyUpTo200Bytes_AndADigestAbove) {
  const std::string longest(200, 'k');
  EXPECT_EQ(wire_key(longest), longest);
  const std::string hashed = wire_key(longest + "k");
  EXPECT_EQ(hashed.size(), 2U + 64U);
  EXPECT_TRUE(hashed.starts_with("h:"));
  EXPECT_EQ(hashed.substr(2).find_first_not_of("0123456789abcdef"), std::string::npos);
}

// Remembers who made which key.
class Keys {
 public:
  void add(const std::string& key, const std::string& made_of) {
    const auto [known, fresh] = made_of_.emplace(key, made_of);
    EXPECT_TRUE(fresh || known->second == made_of) << key << "\n is of " << known->second << "\nand of " << made_of;
  }
  std::size_t size() const { return made_of_.size(); }

 private:
  std::unordered_map<std::string, std::string> made_of_;
};

// Length-prefixed, so that it is surely injective itself.
std::string tuple_text(const std::string& kind, const std::vector<std::string>& parts) {
  std::string text = kind;
  for (const auto& part : parts) text += "|" + std::to_string(part.size()) + "," + part;
  return text;
}

void add_all_keys(Keys& keys, const std::string& site, const std::string& stream, const std::string& id) {
  const Envelope envelope = with_id(stream, id);
  keys.add(key_of({}, site, envelope), tuple_text("position", {site, stream}));
  keys.add(refused_key(site, envelope), tuple_text("refused", {site, stream}));
  if (id.empty()) return;
  keys.add(key_of({Strategy::message_id, MessageIdScope::global}, site, envelope), tuple_text("global", {id}));
  keys.add(key_of({Strategy::message_id, MessageIdScope::site}, site, envelope), tuple_text("site", {site, id}));
  keys.add(key_of({Strategy::message_id, MessageIdScope::stream}, site, envelope),
           tuple_text("stream", {site, stream, id}));
}

TEST(Identity, NoTwoOrigins_ShareAKey_WhateverTheyAreMadeOf) {
  const std::vector<std::string> hostile{
      "",
      ":",
      "::",
      "%",
      "%%",
      "%3A",
      "%3a",
      "%25",
      "%253A",
      "a",
      "A",
      "a:b",
      "a%3Ab",
      "b",
      "a:",
      ":a",
      "%2",
      "3A",
      " ",
      "\t",
      "\r\n",
      "\0"s,
      "a\0"s,
      "\0a"s,
      "\xff",
      "\x80",
      "\x7f",
      "\xc3",
      "\xc3\xa9",
      "e\xcc\x81",
      "msg",
      "seq",
      "refused",
      "seq:a:b:1:2",
      "7",
      "8",
      "7:8",
      "h:",
      "-1",
      "0",
      "00",
      std::string(300, ':'),
      std::string(300, '%'),
  };
  Keys keys;
  for (const auto& site : hostile) {
    for (const auto& stream : hostile) {
      for (const auto& id : hostile) add_all_keys(keys, site, stream, id);
    }
  }
  const std::size_t n = hostile.size();
  EXPECT_EQ(keys.size(), 2 * n * n + (n - 1) + n * (n - 1) + n * n * (n - 1));
}

// Hostile in each of the ways that a component, a path or JSON could be misread.
class Components {
 public:
  explicit Components(std::uint64_t seed) : dice_(seed) {}

  std::string bytes() {
    static const std::string kAlphabet = ":%A3a\0 \xff"s;
    std::string text(dice_.below(5), '\0');
    for (char& c : text) c = kAlphabet[dice_.below(kAlphabet.size())];
    return text;
  }
  std::string utf8() {
    static const std::vector<std::string> kParts{":", "%",   "3A", "a",  "1",        "0",
                                                 ".", "\0"s, "\"", "\\", "\xc3\xa9", "true"};
    std::string text;
    for (auto left = 1 + dice_.below(3); left > 0; --left) text += kParts[dice_.below(kParts.size())];
    return text;
  }
  std::string path() {
    static const std::vector<std::string> kPaths{"a", "a:string", "a%3A", "a:b", R"(a\.b)", R"(a\\)", "string", "1"};
    return kPaths[dice_.below(kPaths.size())];
  }
  std::string number() { return std::to_string(dice_.below(20)) + (dice_.percent(50) ? ".5" : ""); }
  bool coin() { return dice_.percent(50); }

 private:
  Dice dice_;
};

// Every byte below 0x80 escaped: no writer of JSON is needed that could be wrong.
std::string in_json(const std::string& text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80) {
      out += c;
    } else {
      out.append("\\u00").append(1, kDigits[byte >> 4]).append(1, kDigits[byte & 0xf]);
    }
  }
  return '"' + out + '"';
}

void add_field_key(Keys& keys, const std::string& path, const std::string& type, const std::string& value) {
  const IdentityRule rule = rule_of_field(path);
  ASSERT_EQ(rule.field.keys.size(), 1U);
  const std::string json = "{" + in_json(rule.field.keys[0]) + ":" + (type == "string" ? in_json(value) : value) + "}";
  keys.add(key_of(rule, "s", with_payload("", json)), tuple_text("field", {path, type, value}));
}

TEST(Identity, NoTwoRandomOrigins_ShareAKey_AcrossAllStrategies) {
  const char* given = std::getenv("HOLDFAST_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 0x6b6579;
  SCOPED_TRACE("HOLDFAST_SEED=" + std::to_string(seed));
  Components components(seed);
  Keys keys;
  for (int round = 0; round < 50'000; ++round) {
    add_all_keys(keys, components.bytes(), components.bytes(), components.bytes());
    const std::string subject = components.bytes();
    const std::string payload = components.bytes();
    keys.add(key_of({Strategy::payload_hash}, components.bytes(), with_payload(subject, payload)),
             tuple_text("hash", {subject, payload}));
    add_field_key(keys, components.path(), "string", components.utf8());
    add_field_key(keys, components.path(), "number", components.number());
    add_field_key(keys, components.path(), "boolean", components.coin() ? "true" : "false");
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace holdfast
