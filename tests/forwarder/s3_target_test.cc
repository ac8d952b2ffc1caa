// The S3 target against a store with the documented semantics (s3_stub.h) and a real one (swift_server.h), and what is
// in the bucket after anything has gone wrong.
#include "forwarder/s3_target.h"

#include <gtest/gtest.h>

#include <set>

#include "crypto/digest.h"
#include "forwarder/s3_error.h"
#include "tests/forwarder/delivered.h"
#include "tests/forwarder/worlds_s3.h"
#include "tests/support/certificates.h"
#include "tests/support/nats_server.h"
#include "tests/support/odd_peer.h"
#include "tests/support/patience.h"
#include "tests/support/program.h"
#include "tests/support/simulated_clock.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using Condition = S3Stub::Condition;

std::vector<DueRecord> records(std::uint64_t count) {
  std::vector<DueRecord> made;
  for (std::uint64_t n = 1; n <= count; ++n) made.push_back(made_record(n, "payload " + std::to_string(n)));
  return made;
}

// The codes of all that was said.
std::set<std::string> states(const Delivered& delivered) {
  std::set<std::string> found;
  for (const auto& outcome : delivered.outcomes) {
    if (outcome) found.insert(outcome->state);
  }
  return found;
}

using Codes = std::set<std::string>;

class S3TargetTest : public ::testing::Test {
 protected:
  S3TargetTest() { write_s3_credentials(credentials, "AKIDEXAMPLE", "secret"); }

  S3TargetOptions options() const { return s3_options(store.url(), credentials); }
  void behave(const std::function<void(S3Stub::Manners& manners)>& change) { store.behave(change); }
  // All requests, and those of a method, are answered so.
  void answer_all(const StubAnswer& answer, const std::string& method = "") {
    store.first_ask([=](const StubRequest& request) {
      return method.empty() || request.method == method ? std::optional(answer) : std::nullopt;
    });
  }
  void well() { store.first_ask(nullptr); }

  const TemporaryDirectory directory;
  const std::string credentials = directory / "credentials";
  S3Stub store;
};

// --- What is stored

TEST_F(S3TargetTest, AnObject_IsThePayload_AndAllElseIsMetadata) {
  DueRecord record = made_record(7, std::string("\0\r\n\xff", 4), "telemetry.caf\xc3\xa9");
  S3TargetOptions with = options();
  with.headers = {{"x-amz-storage-class", "STANDARD_IA"}};
  std::string storage_class, type;
  store.first_ask([&](const StubRequest& request) -> std::optional<StubAnswer> {
    if (request.method == "PUT") storage_class = request.header("x-amz-storage-class");
    if (request.method == "PUT") type = request.header("content-type");
    return std::nullopt;
  });
  S3Target target(with);
  EXPECT_EQ(deliver(target, {record}).kinds(), (Kinds{OutcomeKind::delivered}));
  const auto objects = store.objects();
  ASSERT_EQ(objects.size(), 1u);
  EXPECT_EQ(objects.begin()->first, "in/msg_3A7");
  EXPECT_EQ(objects.begin()->second.content, std::string("\0\r\n\xff", 4));
  EXPECT_EQ(objects.begin()->second.metadata.at("x-amz-meta-holdfast-subject"), "telemetry.caf%C3%A9");
  EXPECT_EQ(storage_class, "STANDARD_IA");
  EXPECT_EQ(type, "application/octet-stream");
}

TEST_F(S3TargetTest, TheSameRecord_IsTheSameRequest_ButForItsDateAndSignature) {
  std::vector<std::map<std::string, std::string>> seen;
  store.first_ask([&](const StubRequest& request) -> std::optional<StubAnswer> {
    if (request.method != "PUT") return std::nullopt;
    auto headers = request.headers;
    headers["body"] = request.body;
    for (const char* own : {"x-amz-date", "authorization"}) headers.erase(own);
    seen.push_back(headers);
    return std::nullopt;
  });
  S3TargetOptions json = options();
  json.naming.format = FileFormat::json;
  deliver(*std::make_unique<S3Target>(json), records(1));
  store.erase("in/msg_3A1");
  deliver(*std::make_unique<S3Target>(json), records(1));
  ASSERT_EQ(seen.size(), 4u);  // each was put twice: the first of a life
  for (const auto& one : seen) EXPECT_EQ(one, seen.front());
}

// --- The condition

TEST_F(S3TargetTest, TheCondition_IsProvedOnce) {
  S3Target target(options());
  EXPECT_EQ(deliver(target, records(20)).count(OutcomeKind::delivered), 20u);
  EXPECT_EQ(store.puts("in/msg_3A1"), 2u);
  for (int n = 2; n <= 20; ++n) EXPECT_EQ(store.puts("in/msg_3A" + std::to_string(n)), 1u);
}

TEST_F(S3TargetTest, AfterAStart_WhatWasSentBeforeProvesItToo) {
  deliver(*std::make_unique<S3Target>(options()), records(20));
  S3Target target(options());
  EXPECT_EQ(deliver(target, records(20)).count(OutcomeKind::duplicate), 20u);
  EXPECT_EQ(store.puts("in/msg_3A1"), 3u);
  EXPECT_EQ(store.puts("in/msg_3A2"), 2u);
  behave([](auto& manners) { manners.condition = Condition::ignored; });
  S3Target later(options());
  EXPECT_EQ(deliver(later, records(20)).kinds()[0], OutcomeKind::duplicate);
  EXPECT_EQ(states(deliver(later, records(20))), (Codes{"condition_ignored"}));
  behave([](auto& manners) { manners.condition = Condition::not_implemented; });
  EXPECT_EQ(states(deliver(*std::make_unique<S3Target>(options()), records(20))), (Codes{"condition_unsupported"}));
}

TEST_F(S3TargetTest, AStoreThatIgnoresTheCondition_HoldsATargetThatRequiresIt) {
  behave([](auto& manners) { manners.condition = Condition::ignored; });
  S3Target target(options());
  const Delivered first = deliver(target, records(20));
  EXPECT_EQ(first.count(OutcomeKind::delivered), 1u);
  EXPECT_EQ(first.count(OutcomeKind::hold_target), 19u);
  EXPECT_EQ(states(deliver(target, records(20))), (Codes{"condition_ignored"}));
  EXPECT_EQ(store.objects().size(), 1u);
}

TEST_F(S3TargetTest, AStoreThatDoesNotKnowTheCondition_HoldsATargetThatRequiresIt_UntilItDoes) {
  behave([](auto& manners) { manners.condition = Condition::not_implemented; });
  S3Target target(options());
  EXPECT_EQ(states(deliver(target, records(20))), (Codes{"condition_unsupported"}));
  EXPECT_EQ(store.objects().size(), 0u);
  behave([](auto& manners) { manners.condition = Condition::kept; });
  EXPECT_EQ(deliver(target, records(20)).count(OutcomeKind::delivered), 20u);
}

TEST_F(S3TargetTest, WithoutTheCondition_WhatIsThereIsLookedAtFirst) {
  for (const Condition condition : {Condition::not_implemented, Condition::ignored}) {
    behave([&](auto& manners) { manners.condition = condition; });
    store.put("in/msg_3A2", {"other", {}});
    S3TargetOptions lenient = options();
    lenient.conditional = S3Conditional::if_supported;
    S3Target target(lenient);
    EXPECT_EQ(deliver(target, records(3)).kinds(),
              (Kinds{OutcomeKind::delivered, OutcomeKind::rejected, OutcomeKind::delivered}));
    EXPECT_EQ(deliver(target, records(1)).kinds(), (Kinds{OutcomeKind::duplicate}));
    EXPECT_EQ(store.objects().at("in/msg_3A2").content, "other");
    for (const char* key : {"in/msg_3A1", "in/msg_3A2", "in/msg_3A3"}) store.erase(key);
  }
}

// --- What has the name already

TEST_F(S3TargetTest, OtherContentUnderTheName_IsRejected_AndNotTouched) {
  S3Target target(options());
  deliver(target, {made_record(1, "first")});
  const Delivered other = deliver(target, {made_record(1, "second"), made_record(1, "first", "telemetry.b")});
  EXPECT_EQ(other.kinds(), (Kinds{OutcomeKind::rejected, OutcomeKind::rejected}));
  EXPECT_EQ(other.outcomes[0]->reason, Reason::exists_otherwise);
  EXPECT_EQ(store.objects().at("in/msg_3A1").content, "first");
}

TEST_F(S3TargetTest, AnObjectWithoutOurMetadata_IsComparedByteForByte) {
  store.put("in/msg_3A1", {"payload 1", {}});
  store.put("in/msg_3A2", {"payload x", {}});
  store.put("in/msg_3A3", {"another size", {}});
  S3Target target(options());
  EXPECT_EQ(deliver(target, records(3)).kinds(),
            (Kinds{OutcomeKind::duplicate, OutcomeKind::rejected, OutcomeKind::rejected}));
}

TEST_F(S3TargetTest, Replace_PutsItAnew_AndLooksAtNothing) {
  S3TargetOptions replacing = options();
  replacing.on_existing = S3OnExisting::replace;
  behave([](auto& manners) { manners.may_read = false, manners.condition = Condition::not_implemented; });
  S3Target target(replacing);
  EXPECT_EQ(deliver(target, {made_record(1, "first")}).kinds(), (Kinds{OutcomeKind::delivered}));
  EXPECT_EQ(deliver(target, {made_record(1, "second")}).kinds(), (Kinds{OutcomeKind::delivered}));
  EXPECT_EQ(store.objects().at("in/msg_3A1").content, "second");
}

TEST_F(S3TargetTest, Fail_TakesItsOwnRepeatForADuplicate_AndNothingElse) {
  S3TargetOptions strict = options();
  strict.on_existing = S3OnExisting::fail;
  S3Target target(strict);
  deliver(target, records(1));
  EXPECT_EQ(deliver(target, records(1)).kinds(), (Kinds{OutcomeKind::duplicate}));
  DueRecord another = records(1)[0];
  another.sequence = 77;
  const Delivered same_content = deliver(target, {another});
  EXPECT_EQ(same_content.kinds(), (Kinds{OutcomeKind::rejected}));
  EXPECT_EQ(same_content.outcomes[0]->reason, Reason::exists_otherwise);
}

TEST_F(S3TargetTest, WhoMayOnlyWrite_IsHeldWhereItHadToLook_OrBelievesTheName) {
  behave([](auto& manners) { manners.may_read = false; });
  S3Target careful(options());
  EXPECT_EQ(deliver(careful, records(20)).count(OutcomeKind::delivered), 20u);
  EXPECT_EQ(states(deliver(careful, records(1))), (Codes{"read_refused"}));
  S3TargetOptions blind = options();
  blind.compare = false;
  S3Target trusting(blind);
  EXPECT_EQ(deliver(trusting, records(20)).count(OutcomeKind::duplicate), 20u);
}

// An answer that was lost: the object is there, nobody knows, and it is sent again.
TEST_F(S3TargetTest, ALostAnswer_IsADuplicateTheNextTime) {
  S3Target target(options());
  deliver(target, records(1));
  const std::vector<DueRecord> two{made_record(2, "lost")};
  StubAnswer lost;
  lost.manner = Manner::close_unanswered;
  bool once = false;
  store.first_ask([&](const StubRequest& request) -> std::optional<StubAnswer> {
    if (request.method != "HEAD" || std::exchange(once, true)) return std::nullopt;
    return lost;
  });
  store.put("in/msg_3A2", {"lost", {}});
  const Delivered first = deliver(target, two);
  EXPECT_EQ(first.count(OutcomeKind::delivered), 0u);
  EXPECT_EQ(deliver(target, two).kinds(), (Kinds{OutcomeKind::duplicate}));
}

// --- Clock and credentials

TEST_F(S3TargetTest, AWrongClock_IsLearntFromTheStore_AndReported) {
  for (const std::int64_t now : {std::int64_t{0}, std::int64_t{1'000'000'000}, std::int64_t{5'000'000'000}}) {
    SimulatedClock clock;
    clock.set_wall(std::chrono::seconds(now), false);
    S3TargetOptions lost_in_time = options();
    lost_in_time.clock = &clock;
    S3Target target(lost_in_time);
    EXPECT_TRUE(states(deliver(target, records(20))).contains("clock_skew"));
    const Delivered again = deliver(target, records(20));
    EXPECT_EQ(again.count(OutcomeKind::delivered) + again.count(OutcomeKind::duplicate), 20u) << now;
    // Set right, or wrong again: requests go by the store's clock now.
    clock.set_wall(std::chrono::seconds(7), true);
    EXPECT_EQ(deliver(target, records(20)).count(OutcomeKind::duplicate), 20u) << now;
  }
}

TEST_F(S3TargetTest, AStoreWhoseClockMoves_IsFollowed_AndOneWithoutADateHoldsTheTarget) {
  S3Target target(options());
  deliver(target, records(20));
  behave([](auto& manners) { manners.clock_shift = std::chrono::hours(24 * 400); });
  const Delivered moved = deliver(target, records(20));
  EXPECT_EQ(moved.count(OutcomeKind::rejected) + moved.count(OutcomeKind::hold_target), 0u);
  EXPECT_EQ(deliver(target, records(20)).count(OutcomeKind::duplicate), 20u);
  answer_all(S3Stub::refusal(403, "RequestTimeTooSkewed"));  // its Date is ours
  EXPECT_EQ(states(deliver(target, records(20))), (Codes{"clock_skew"}));
}

TEST_F(S3TargetTest, AnExpiredToken_HoldsTheTarget_UntilTheFileIsRenewed) {
  behave([](auto& manners) { manners.token = "second"; });
  write_s3_credentials(credentials, "AKIDEXAMPLE", "secret", "first");
  S3Target target(options());
  EXPECT_EQ(states(deliver(target, records(20))), (Codes{"token_expired"}));
  write_s3_credentials(credentials, "AKIDEXAMPLE", "secret", "second");
  EXPECT_EQ(deliver(target, records(20)).count(OutcomeKind::delivered), 20u);
  behave([](auto& manners) { manners.access_key = "OTHER"; });
  EXPECT_EQ(states(deliver(target, {made_record(99, "x")})), (Codes{"credentials_refused"}));
  std::remove(credentials.c_str());
  EXPECT_EQ(states(deliver(target, records(20))), (Codes{"file_unusable"}));
}

// --- Everything else that goes wrong

StubAnswer badly(Manner manner, int status = 200) {
  return {status, {{"ETag", "\"1\""}}, std::string(100, 'x'), 0ns, manner};
}

// Each answer that is no acceptance: nothing is delivered, nothing is rejected, and when the store is well again
// everything arrives.
TEST_F(S3TargetTest, WhateverGoesWrong_NothingIsLost_NothingFalselyDelivered_AndItRecovers) {
  S3TargetOptions hasty = options();
  hasty.client.deadline = 1s;
  const std::vector<StubAnswer> faults = {
      S3Stub::refusal(500, "InternalError"),
      S3Stub::refusal(503, "SlowDown"),
      S3Stub::refusal(403, "AccessDenied"),
      S3Stub::refusal(400, "WhoKnows"),
      S3Stub::refusal(404, "NoSuchBucket"),
      S3Stub::refusal(301, "PermanentRedirect"),
      S3Stub::refusal(409, "ConditionalRequestConflict"),
      S3Stub::refusal(400, "XAmzContentSHA256Mismatch"),
      {302, {{"Location", "http://portal.example/login"}}, "<html>"},
      {200, {}, "<html>Please log in</html>"},
      {200, {{"ETag", "\"page\""}}, "<html>Please log in</html>"},
      {200, {}, ""},
      {204, {}, ""},
      {200, {{"ETag", "\"1\""}, {"x-amz-checksum-crc32c", "AAAAAA=="}}, ""},
      badly(Manner::close_unanswered),
      badly(Manner::cut_in_head),
      badly(Manner::cut_in_body),
      badly(Manner::wrong_length),
      badly(Manner::hang),
      badly(Manner::trickle),
      badly(Manner::endless),
      badly(Manner::no_http),
  };
  for (std::size_t at = 0; at < faults.size(); ++at) {
    SCOPED_TRACE(at);
    for (const auto& [key, object] : store.objects()) store.erase(key);
    S3Target target(hasty);
    EXPECT_EQ(deliver(target, records(5)).count(OutcomeKind::delivered), 5u);
    for (const char* method : {"PUT", ""}) {
      answer_all(faults[at], method);
      const Delivered broken = deliver(target, records(40));
      EXPECT_EQ(broken.count(OutcomeKind::delivered) + broken.count(OutcomeKind::duplicate), 0u);
      EXPECT_EQ(broken.count(OutcomeKind::rejected), 0u);
      EXPECT_TRUE(!broken.result.ok() || broken.kinds().size() == 40u);
    }
    well();
    std::size_t accepted = 0;
    for (int tries = 0; tries < 5 && accepted < 40; ++tries) {
      const Delivered again = deliver(target, records(40));
      accepted = again.count(OutcomeKind::delivered) + again.count(OutcomeKind::duplicate);
    }
    EXPECT_EQ(accepted, 40u);
    EXPECT_EQ(store.objects().size(), 40u);
  }
}

TEST_F(S3TargetTest, AStoreThatOnlyFails_IsNotSentTheWholeWindow) {
  S3Target target(options());
  deliver(target, records(1));
  answer_all(S3Stub::refusal(500, "InternalError"));
  const int before = store.stub().requests();
  EXPECT_EQ(states(deliver(target, records(1000))), (Codes{"server_error"}));
  EXPECT_LE(store.stub().requests() - before, 64);
}

TEST_F(S3TargetTest, PoisonAmongAThousand_DoesNotHoldTheOthers) {
  S3TargetOptions hasty = options();
  hasty.client.deadline = 2s;
  for (const StubAnswer& poison : {S3Stub::refusal(400, "EntityTooLarge"), S3Stub::refusal(500, "InternalError"),
                                   badly(Manner::close_unanswered), badly(Manner::hang)}) {
    for (const auto& [key, object] : store.objects()) store.erase(key);
    store.first_ask([=](const StubRequest& request) {
      return request.path.ends_with("msg_3A500") ? std::optional(poison) : std::nullopt;
    });
    S3Target target(hasty);
    const Delivered delivered = deliver(target, records(1000));
    EXPECT_EQ(delivered.count(OutcomeKind::delivered), 999u);
    EXPECT_TRUE(delivered.outcomes[499]);
  }
}

TEST_F(S3TargetTest, NobodyThere_NothingIsKnown) {
  store.stub().stop();
  S3Target target(options());
  const Delivered delivered = deliver(target, records(100));
  ASSERT_FALSE(delivered.result.ok());
  EXPECT_EQ(delivered.kinds().size(), 0u);
  S3Target nowhere(s3_options("https://nowhere.invalid", credentials));
  EXPECT_FALSE(deliver(nowhere, records(100)).result.ok());
}

TEST_F(S3TargetTest, APeerThatTakesConnectionsAndSaysNothing_EndsWithTheDeadline) {
  const OddPeer silent("");
  S3TargetOptions hasty = s3_options(silent.url("http"), credentials);
  hasty.client.deadline = 1s;
  S3Target target(hasty);
  const Delivered delivered = deliver(target, records(100));
  EXPECT_EQ(delivered.count(OutcomeKind::delivered) + delivered.count(OutcomeKind::rejected), 0u);
  EXPECT_FALSE(delivered.result.ok());
}

TEST_F(S3TargetTest, ACertificateOfAnotherName_HoldsTheTarget) {
  CertificateAuthority authority;
  const auto pair = authority.issue("other", "DNS:other.example");
  const int port = free_port();
  Program server;
  const std::string log = directory / "s_server.log";
  server.start({"openssl", "s_server", "-accept", "127.0.0.1:" + std::to_string(port), "-cert", pair.certificate,
                "-key", pair.key, "-quiet"},
               {log, log});
  S3TargetOptions secure = s3_options("https://127.0.0.1:" + std::to_string(port), credentials);
  secure.client.tls_ca = authority.ca();
  secure.client.https_only = true;
  S3Target target(secure);
  EXPECT_TRUE(eventually([&] { return states(deliver(target, records(3))) == Codes{"certificate_refused"}; }));
}

TEST_F(S3TargetTest, AProxyThatRefuses_HoldsTheTarget) {
  HttpStub proxy([](const StubRequest&) { return StubAnswer{407, {}, "no"}; });
  S3TargetOptions behind = s3_options("https://store.example", credentials);
  behind.client.proxy = proxy.url("");
  S3Target target(behind);
  EXPECT_EQ(states(deliver(target, records(3))), (Codes{"proxy_refused"}));
}

TEST_F(S3TargetTest, ALargeObject_GoesWhole) {
  S3Target target(options());
  const DueRecord large = made_record(1, std::string(32u << 20, 'x'));
  EXPECT_EQ(deliver(target, {large}).kinds(), (Kinds{OutcomeKind::delivered}));
  EXPECT_EQ(store.objects().begin()->second.content.size(), 32u << 20);
}

// --- Certification

TEST_F(S3TargetTest, Readback_TellsWhatIsThere) {
  S3Target target(options());
  deliver(target, records(2));
  store.put("in/msg_3A2", {"payload x", store.objects().at("in/msg_3A2").metadata});
  const auto readback = make_s3_readback(options());
  const std::vector<DueRecord> three = records(3);
  std::vector<Delivery> asked;
  for (const DueRecord& record : three) asked.push_back({&record, wire_key(record.key)});
  auto held = readback->look(asked);
  ASSERT_TRUE(held.ok()) << held.error().text;
  EXPECT_EQ((*held)[0].copies, 1u);
  EXPECT_TRUE((*held)[0].as_sent);
  EXPECT_EQ((*held)[1].copies, 1u);
  EXPECT_FALSE((*held)[1].as_sent);
  EXPECT_EQ((*held)[2].copies, 0u);
  EXPECT_TRUE(readback->remove(asked).ok());
  EXPECT_EQ(store.objects().size(), 0u);
  behave([](auto& manners) { manners.has_bucket = false; });
  EXPECT_FALSE(readback->look(asked).ok());
}

// --- A real store: signatures, digests, regions and clocks as others understand them

class S3SwiftTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_swift(); !why.empty()) GTEST_SKIP() << why;
    world = std::make_unique<SwiftWorld>();
  }
  std::unique_ptr<SwiftWorld> world;
};

TEST_F(S3SwiftTest, SignaturesAreUnderstood_WhateverTheKeyAndTheMetadata) {
  DueRecord odd = made_record(1, "\xff\xfe", "telemetry.caf\xc3\xa9 %");
  odd.key = "msg:a/b%2F+ =~'*&?#";
  S3TargetOptions with = world->options();
  with.naming.prefix = "site=truck-07/a_b~/";
  S3Target target(with);
  EXPECT_EQ(deliver(target, {odd}).kinds(), (Kinds{OutcomeKind::delivered}));
  EXPECT_EQ(deliver(target, {odd}).kinds(), (Kinds{OutcomeKind::duplicate}));
  const auto readback = make_s3_readback(with);
  const std::vector<Delivery> asked{{&odd, wire_key(odd.key)}};
  const auto held = readback->look(asked);
  ASSERT_TRUE(held.ok()) << held.error().text;
  EXPECT_EQ((*held)[0].copies, 1u);
  EXPECT_TRUE((*held)[0].as_sent);
  EXPECT_TRUE(readback->remove(asked).ok());
  EXPECT_EQ((*readback->look(asked))[0].copies, 0u);
}

TEST_F(S3SwiftTest, RequiredConditions_AreSaidToBeUnsupported) {
  S3TargetOptions required = world->options();
  required.conditional = S3Conditional::required;
  S3Target target(required);
  EXPECT_EQ(states(deliver(target, records(3))), (Codes{"condition_unsupported"}));
}

TEST_F(S3SwiftTest, WrongSecretRegionBucketOrClock_EachSaysWhatItIs) {
  S3TargetOptions wrong = world->options();
  wrong.place.region = "mars-1";
  EXPECT_EQ(states(deliver(*std::make_unique<S3Target>(wrong), records(2))), (Codes{"wrong_region"}));
  wrong = world->options();
  wrong.place.bucket = "no-such-bucket";
  EXPECT_EQ(states(deliver(*std::make_unique<S3Target>(wrong), records(2))), (Codes{"no_bucket"}));
  SimulatedClock clock;
  clock.set_wall(1h, false);
  wrong = world->options();
  wrong.clock = &clock;
  S3Target in_1970(wrong);
  EXPECT_TRUE(states(deliver(in_1970, records(2))).contains("clock_skew"));
  const Delivered again = deliver(in_1970, records(2));
  EXPECT_EQ(again.count(OutcomeKind::delivered) + again.count(OutcomeKind::duplicate), 2u);
  write_s3_credentials(world->credentials_file(), "test:tester", "wrong");
  EXPECT_EQ(states(deliver(in_1970, {made_record(9, "x")})), (Codes{"credentials_refused"}));
}

TEST_F(S3SwiftTest, ADamagedUpload_IsRefused) {
  const S3Bucket bucket({SwiftWorld::server().url(), world->options().place.bucket, "us-east-1", false},
                        system_clock());
  HttpClientOptions plain;
  plain.https_only = false;
  HttpClient client(plain);
  const std::string digest = to_hex(sha256(as_bytes("as it was")));
  const auto response = client.exchange(
      bucket.request("PUT", "damaged", {"test:tester", "testing", ""}, {}, as_bytes("as it is!"), digest));
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->status, 400);
  EXPECT_STREQ(outcome_of_s3_refusal(*response).state, "upload_damaged");
}

}  // namespace
}  // namespace holdfast
