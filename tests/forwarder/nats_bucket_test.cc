// A key-value bucket as a target: its keys, its policies, and what a real server's bucket has afterwards. Templates,
// and the stream that is expected.
#include "forwarder/nats_bucket.h"

#include <gtest/gtest.h>

#include <set>

#include "forwarder/nats_target.h"
#include "tests/forwarder/delivered.h"
#include "tests/support/jetstream_client.h"
#include "tests/support/mutation.h"
#include "tests/support/nats_server.h"

namespace holdfast {
namespace {

using std::chrono::milliseconds;

// --- Templates

std::optional<std::string> rendered(std::string_view text, const DueRecord& record) {
  const auto parsed = SubjectTemplate::parse(text);
  EXPECT_TRUE(parsed) << text;
  return parsed ? parsed->render({&record, wire_key(record.key)}, "truck-07") : std::nullopt;
}

TEST(SubjectTemplate, PutsInWhatTheRecordIs) {
  const DueRecord record = made_record(7, "x", "telemetry.engine.1");
  EXPECT_EQ(rendered("site.{site}.{subject}", record), "site.truck-07.telemetry.engine.1");
  EXPECT_EQ(rendered("{stream}.{2}.{1}", record), "TELEMETRY.engine.telemetry");
  EXPECT_EQ(rendered("{key}", record), "msg:7");
  EXPECT_EQ(rendered("fixed", record), "fixed");
  EXPECT_EQ(rendered("a{3}b", record), "a1b");
}

TEST(SubjectTemplate, WithoutAValue_GivesNothing) {
  DueRecord record = made_record(7, "x", "telemetry.engine");
  record.envelope.origin.stream.clear();
  EXPECT_EQ(rendered("a.{3}", record), std::nullopt);
  EXPECT_EQ(rendered("{stream}", record), std::nullopt);
}

TEST(SubjectTemplate, RefusesWhatIsNone) {
  for (const char* text : {"", "{", "}", "a{", "a}b", "{subject", "subject}", "{other}", "{0}", "{01}", "{100}", "{}",
                           "{{subject}}", "{-1}", "{ site }"}) {
    EXPECT_FALSE(SubjectTemplate::parse(text)) << text;
  }
}

// --- Keys

TEST(NatsBucket, Keys_AreTheNameWithWhatAKeyMayNotHaveEscaped) {
  EXPECT_EQ(bucket_subject("S", "seq:truck-07:T_1:12:17"), "$KV.S.seq=3Atruck-07=3AT_1=3A12=3A17");
  EXPECT_EQ(bucket_subject("S", "a.b/c"), "$KV.S.a.b/c");
  EXPECT_EQ(bucket_subject("S", ".a..b."), "$KV.S.=2Ea.=2Eb=2E");
  EXPECT_EQ(bucket_subject("S", "a=3Ab"), "$KV.S.a=3D3Ab");
  EXPECT_EQ(bucket_subject("S", "_kv1"), "$KV.S.=5Fkv1");
  EXPECT_EQ(bucket_subject("S", "a*>\r\n b"), "$KV.S.a=2A=3E=0D=0A=20b");
  EXPECT_EQ(bucket_subject("S", ""), std::nullopt);
  EXPECT_EQ(bucket_subject("S", std::string(5000, 'a')), std::nullopt);
}

TEST(NatsBucket, TwoNames_NeverGetOneKey) {
  Dice dice(11);
  std::set<std::string> names, keys;
  for (int n = 0; n < 20'000; ++n) {
    std::string name(1 + dice.below(4), ' ');
    constexpr std::string_view kLikely = "ab.=3A_kv:/%\xc3";
    for (char& c : name) c = kLikely[dice.below(kLikely.size())];
    const auto key = bucket_subject("S", name);
    ASSERT_TRUE(key);
    names.insert(name);
    keys.insert(*key);
    const std::string_view own = std::string_view(*key).substr(6);
    EXPECT_EQ(own.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=/."),
              std::string_view::npos)
        << own;
    EXPECT_NE(own.front(), '.');
    EXPECT_NE(own.back(), '.');
    EXPECT_EQ(own.find(".."), std::string_view::npos);
  }
  EXPECT_EQ(names.size(), keys.size());
}

TEST(NatsBucket, NamesAndTemplatesThatMayBeConfigured) {
  EXPECT_TRUE(valid_bucket_name("STATE_of-7"));
  for (const char* name : {"", "a.b", "a b", "a*", "KV>", "a/b"}) EXPECT_FALSE(valid_bucket_name(name)) << name;
  for (const char* text : {"{key}", "{site}/{2}", "state.{subject}", "last"}) EXPECT_TRUE(valid_key_template(text));
  for (const char* text : {"a:{key}", ".{key}", "{key}.", "a..{1}", "_kv{1}", "{nothing}", "a b"})
    EXPECT_FALSE(valid_key_template(text)) << text;
}

// --- A real bucket

class Bucket : public ::testing::Test {
 protected:
  void SetUp() override {
    StreamRequest request;
    request.name = "KV_STATE";
    request.subjects = {"$KV.STATE.>"};
    request.duplicate_window = milliseconds(100);
    client.make_stream(request);
  }
  NatsTarget target(ExistingValue existing, std::string_view key = {}) {
    NatsTargetOptions options;
    options.site = "truck-07";
    options.nats.url = server.url();
    options.to.bucket = NatsBucket{"STATE", SubjectTemplate::parse(key), existing};
    return NatsTarget(std::move(options));
  }
  // Until the server has forgotten the ids of all that was published so far.
  void forget_ids() {
    const auto put = [&] { client.publish("$KV.STATE.probe", "", {{"Nats-Msg-Id", "probe"}}); };
    put();
    const std::uint64_t before = client.stream("KV_STATE").messages;
    ASSERT_TRUE(eventually([&] {
      put();
      return client.stream("KV_STATE").messages > before;
    }));
    client.delete_messages("KV_STATE", "$KV.STATE.probe");
  }
  std::vector<SeenMessage> values() { return client.read_all("KV_STATE"); }

  NatsServer server;
  JetStreamClient client{server.url()};
};

TEST_F(Bucket, ARecordIsAValueOfItsKey_ByteForByte) {
  NatsTarget bucket = target(ExistingValue::fail);
  DueRecord record = made_record(1, std::string("\0\r\n\xff", 4));
  record.envelope.headers = {{"KV-Operation", "DEL"}, {"Nats-TTL", "1s"}, {"X", "1"}};
  ASSERT_EQ(deliver(bucket, {record}).kinds(), (Kinds{OutcomeKind::delivered}));
  const auto seen = values();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].subject, "$KV.STATE.msg=3A1");
  EXPECT_EQ(seen[0].payload, std::string("\0\r\n\xff", 4));
  EXPECT_EQ(seen[0].header("Nats-Msg-Id"), "msg:1");
  EXPECT_EQ(seen[0].header("Holdfast-Subject"), "telemetry.a");
  EXPECT_EQ(seen[0].header("KV-Operation"), "");
  EXPECT_EQ(seen[0].header("Holdfast-KV-Operation"), "DEL");
  EXPECT_EQ(seen[0].header("Holdfast-TTL"), "1s");
  EXPECT_EQ(seen[0].header("X"), "1");
}

TEST_F(Bucket, TheSameRecordLater_IsADuplicate_AndStaysOne) {
  NatsTarget bucket = target(ExistingValue::fail);
  std::vector<DueRecord> records;
  for (std::uint64_t n = 1; n <= 300; ++n) records.push_back(made_record(n, "value " + std::to_string(n)));
  ASSERT_EQ(deliver(bucket, records).count(OutcomeKind::delivered), 300u);
  forget_ids();
  EXPECT_EQ(deliver(bucket, records).count(OutcomeKind::duplicate), 300u);
  EXPECT_EQ(values().size(), 300u);
}

TEST_F(Bucket, AnotherValue_IsRejected_OrSkipped_OrReplaced_AsThePolicySays) {
  client.publish("$KV.STATE.telemetry.a", "theirs");
  NatsTarget fails = target(ExistingValue::fail, "{subject}");
  const Delivered refused = deliver(fails, {made_record(1, "ours"), made_record(2, "b", "telemetry.b")});
  EXPECT_EQ(refused.kinds(), (Kinds{OutcomeKind::rejected, OutcomeKind::delivered}));
  EXPECT_EQ(refused.outcomes[0]->reason, Reason::exists_otherwise);
  NatsTarget skips = target(ExistingValue::skip, "{subject}");
  EXPECT_EQ(deliver(skips, {made_record(1, "ours")}).kinds(), (Kinds{OutcomeKind::duplicate}));
  EXPECT_EQ(values().size(), 2u);
  NatsTarget replaces = target(ExistingValue::replace, "{subject}");
  EXPECT_EQ(deliver(replaces, {made_record(1, "ours")}).kinds(), (Kinds{OutcomeKind::delivered}));
  EXPECT_EQ(values().back().payload, "ours");
}

TEST_F(Bucket, OtherContentUnderItsOwnKey_IsRejected) {
  NatsTarget bucket = target(ExistingValue::fail);
  ASSERT_EQ(deliver(bucket, {made_record(1, "first")}).kinds(), (Kinds{OutcomeKind::delivered}));
  forget_ids();
  const Delivered other = deliver(bucket, {made_record(1, "second")});
  EXPECT_EQ(other.kinds(), (Kinds{OutcomeKind::rejected}));
  EXPECT_EQ(other.outcomes[0]->reason, Reason::exists_otherwise);
  EXPECT_EQ(values().back().payload, "first");
}

TEST_F(Bucket, AKeyThatWasDeletedOrPurged_IsCreatedAgain) {
  for (const char* operation : {"DEL", "PURGE"}) {
    for (const ExistingValue existing : {ExistingValue::fail, ExistingValue::skip}) {
      const std::string subject = std::string("deleted.") + operation + std::to_string(static_cast<int>(existing));
      client.publish("$KV.STATE." + subject, "", {{"KV-Operation", operation}});
      NatsTarget bucket = target(existing, "{subject}");
      const auto number = static_cast<std::uint64_t>(100 + values().size());
      EXPECT_EQ(deliver(bucket, {made_record(number, "again", subject)}).kinds(), (Kinds{OutcomeKind::delivered}));
      EXPECT_EQ(values().back().payload, "again");
    }
  }
}

TEST_F(Bucket, ARecordWithoutAKey_IsRejected_AndHoldsNobodyUp) {
  NatsTarget bucket = target(ExistingValue::fail, "{3}");
  const Delivered delivered = deliver(bucket, {made_record(1, "a"), made_record(2, "b", "x.y.z")});
  EXPECT_EQ(delivered.kinds(), (Kinds{OutcomeKind::rejected, OutcomeKind::delivered}));
  EXPECT_EQ(delivered.outcomes[0]->reason, Reason::unencodable);
}

TEST_F(Bucket, WithoutTheBucket_RecordsWait) {
  client.delete_stream("KV_STATE");
  NatsTarget bucket = target(ExistingValue::fail);
  const Delivered waits = deliver(bucket, {made_record(1, "a")});
  EXPECT_EQ(waits.kinds(), (Kinds{OutcomeKind::hold_lane}));
  EXPECT_STREQ(waits.outcomes[0]->state, "no_stream");
  SetUp();
  EXPECT_EQ(deliver(bucket, {made_record(1, "a")}).kinds(), (Kinds{OutcomeKind::delivered}));
}

TEST_F(Bucket, AStreamThatOnlyTakesItsSubjects_IsNotTheBucket) {
  client.delete_stream("KV_STATE");
  client.make_stream("OTHER", {"$KV.STATE.>"});
  NatsTarget bucket = target(ExistingValue::fail);
  const Delivered waits = deliver(bucket, {made_record(1, "a")});
  EXPECT_EQ(waits.kinds(), (Kinds{OutcomeKind::hold_lane}));
  EXPECT_STREQ(waits.outcomes[0]->state, "wrong_stream");
  EXPECT_EQ(client.stream("OTHER").messages, 0u);
}

TEST(BucketPermissions, AUserWhoMayNotLook_HoldsTheTarget) {
  NatsServerOptions with_users;
  with_users.extra =
      "authorization { users = [ { user: all, password: p }, { user: puts, password: p, "
      "permissions: { publish: [\"$KV.STATE.>\"], subscribe: \"_INBOX.>\" } } ] }";
  NatsServer server(with_users);
  const std::string place = server.url().substr(std::string("nats://").size());
  JetStreamClient client("nats://all:p@" + place);
  client.make_stream("KV_STATE", {"$KV.STATE.>"});
  client.publish("$KV.STATE.telemetry.a", "theirs");
  NatsTargetOptions options;
  options.nats.url = "nats://puts:p@" + place;
  options.to.bucket = NatsBucket{"STATE", SubjectTemplate::parse("{subject}"), ExistingValue::fail};
  NatsTarget bucket(std::move(options));
  const Delivered waits = deliver(bucket, {made_record(1, "a"), made_record(2, "b", "telemetry.b")});
  ASSERT_EQ(waits.kinds(), (Kinds{OutcomeKind::hold_target, OutcomeKind::delivered}));
  EXPECT_STREQ(waits.outcomes[0]->state, "look_not_permitted");
}

// --- Streams

TEST(NatsStream, OfAnotherNameThanIsExpected_TakesNothing) {
  NatsServer server;
  JetStreamClient client(server.url());
  client.make_stream("OTHER", {"telemetry.>"});
  NatsTargetOptions options;
  options.nats.url = server.url();
  options.to.stream = "HUB";
  NatsTarget target(std::move(options));
  const Delivered waits = deliver(target, {made_record(1, "a")});
  EXPECT_EQ(waits.kinds(), (Kinds{OutcomeKind::hold_lane}));
  EXPECT_STREQ(waits.outcomes[0]->state, "wrong_stream");
  EXPECT_EQ(client.stream("OTHER").messages, 0u);
  client.delete_stream("OTHER");
  client.make_stream("HUB", {"telemetry.>"});
  EXPECT_EQ(deliver(target, {made_record(1, "a")}).kinds(), (Kinds{OutcomeKind::delivered}));
}

TEST(NatsStream, ATemplateSaysWhereARecordGoes) {
  NatsServer server;
  JetStreamClient client(server.url());
  client.make_stream("HUB", {"site.>"});
  NatsTargetOptions options;
  options.site = "truck-07";
  options.nats.url = server.url();
  options.to.subject = SubjectTemplate::parse("site.{site}.{2}");
  NatsTarget target(std::move(options));
  const Delivered delivered = deliver(target, {made_record(1, "a", "telemetry.engine"), made_record(2, "b", "one")});
  EXPECT_EQ(delivered.kinds(), (Kinds{OutcomeKind::delivered, OutcomeKind::rejected}));
  EXPECT_EQ(delivered.outcomes[1]->reason, Reason::unencodable);
  const auto seen = client.read_all("HUB");
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].subject, "site.truck-07.engine");
  EXPECT_EQ(seen[0].header("Holdfast-Subject"), "telemetry.engine");
}

// The URL's host is nobody's; only the way there is.
TEST(NatsConnectTo, GoesThereInPlaceOfTheUrl) {
  NatsServer server;
  NatsOptions options;
  options.url = "nats://nobody.invalid:1";
  options.connect_to = "127.0.0.1:" + std::to_string(server.port());
  EXPECT_TRUE(NatsConnection::connect(options).ok());
}

}  // namespace
}  // namespace holdfast
