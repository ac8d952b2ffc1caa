// One contract for every target (forwarder/target.h).
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <set>
#include <thread>

#include "forwarder/file_name.h"
#include "forwarder/file_target.h"
#include "forwarder/nats_target.h"
#include "tests/forwarder/delivered.h"
#include "tests/forwarder/file_worlds.h"
#include "tests/forwarder/nats_bucket_world.h"
#include "tests/forwarder/sql_worlds.h"
#include "tests/forwarder/target_worlds.h"
#include "tests/forwarder/worlds_http.h"
#include "tests/forwarder/worlds_s3.h"
#include "tests/support/jetstream_client.h"
#include "tests/support/nats_server.h"
#include "tests/support/scripted_target.h"
#include "tests/support/temporary_directory.h"

namespace holdfast {
namespace {

// --- The worlds

// Two scripted targets over one upstream would need shared state: this world has one, which outlives its processes.
class ScriptedWorld : public TargetWorld {
 public:
  std::unique_ptr<Target> target() override { return std::make_unique<Way>(upstream_); }
  std::multimap<std::string, std::string> upstream() override {
    std::multimap<std::string, std::string> copies;
    for (const auto& [key, record] : upstream_.taken()) copies.emplace(key, as_text(record.payload));
    return copies;
  }
  void break_upstream() override { upstream_.cut_off(true); }
  void repair_upstream() override { upstream_.cut_off(false); }
  bool hang(Target&) override {
    upstream_.hang();
    return true;
  }

 private:
  class Way : public Target {
   public:
    explicit Way(ScriptedTarget& to) : to_(to) {}
    Result<void> deliver(std::span<const Delivery> window, const Report& report) override {
      return to_.deliver(window, report);
    }
    Result<void> probe() override { return to_.probe(); }
    void interrupt() override { to_.interrupt(); }

   private:
    ScriptedTarget& to_;
  };
  ScriptedTarget upstream_;
};

class FileWorld : public TargetWorld {
 public:
  explicit FileWorld(FileFormat format) : format_(format) { repair_upstream(); }

  std::unique_ptr<Target> target() override {
    return std::make_unique<FileTarget>([this] { return open_posix_file_system(path()); },
                                        FileTargetOptions{format_, "contract"});
  }
  // By the names that are asked for in the tests: the wire keys msg:<number>.
  std::multimap<std::string, std::string> upstream() override {
    std::multimap<std::string, std::string> copies;
    auto fs = open_posix_file_system(path());
    if (!fs.ok()) return copies;
    EXPECT_TRUE((*fs)
                    ->list("",
                           [&](std::string_view name, NameType) {
                             EXPECT_NE(name.front(), '.');
                             const auto bytes = read_file(**fs, std::string(name), 64 << 20);
                             EXPECT_TRUE(bytes.ok());
                             const std::string key = "msg:" + std::string(name.substr(6, name.find('.') - 6));
                             if (bytes.ok()) copies.emplace(key, payload(as_text(*bytes)));
                             return true;
                           })
                    .ok());
    return copies;
  }
  void break_upstream() override { ASSERT_EQ(std::rename(path().c_str(), (path() + ".away").c_str()), 0); }
  void repair_upstream() override {
    if (std::rename((path() + ".away").c_str(), path().c_str()) != 0) {
      ASSERT_EQ(::mkdir(path().c_str(), 0700), 0);
    }
  }

 private:
  std::string path() const { return directory_ / "out"; }
  // Of the JSON only that it is there: what is in it is a matter of file_target_test.
  std::string payload(std::string_view content) const {
    if (format_ == FileFormat::raw) return std::string(content);
    const std::size_t begin = content.find("\"payload\":\"") + 11;
    return "base64:" + std::string(content.substr(begin, content.find('"', begin) - begin));
  }

  const FileFormat format_;
  const TemporaryDirectory directory_;
};

// A stream of a real server. It knows records by their message ids, and looks at nothing else.
class NatsWorld : public TargetWorld {
 public:
  NatsWorld() { JetStreamClient(server_.url()).make_stream("HUB", {"telemetry.>"}); }

  std::unique_ptr<Target> target() override {
    NatsTargetOptions options;
    options.site = "truck-07";
    options.nats.url = server_.url();
    options.nats.connect_limit = std::chrono::minutes(2);  // a test that waits for it has failed
    options.progress_limit = std::chrono::minutes(2);
    return std::make_unique<NatsTarget>(std::move(options));
  }
  std::multimap<std::string, std::string> upstream() override {
    std::multimap<std::string, std::string> copies;
    for (const SeenMessage& message : JetStreamClient(server_.url()).read_all("HUB")) {
      copies.emplace(message.header("Nats-Msg-Id"), message.payload);
    }
    return copies;
  }
  bool tells_conflicts() const override { return false; }
  void break_upstream() override { server_.stop(); }
  void repair_upstream() override { server_.start(); }
  bool hang(Target&) override {
    server_.freeze();
    return true;
  }

 private:
  NatsServer server_;
};

}  // namespace

std::vector<TargetCase> all_targets() {
  std::vector<TargetCase> all{
      {"Scripted", [] { return std::make_unique<ScriptedWorld>(); }},
      {"RawFiles", [] { return std::make_unique<FileWorld>(FileFormat::raw); }},
      {"JsonFiles", [] { return std::make_unique<FileWorld>(FileFormat::json); }},
      {"BySubject", [] { return std::make_unique<LayoutWorld>(FileLayout::subject, Compression::none); }},
      {"ByDateInGzip", [] { return std::make_unique<LayoutWorld>(FileLayout::date, Compression::gzip); }},
      {"Zstd", [] { return std::make_unique<LayoutWorld>(FileLayout::flat, Compression::zstd); }},
      {"Archive", [] { return std::make_unique<ArchiveWorld>(); }},
      {"Nats", [] { return std::make_unique<NatsWorld>(); }},
      {"HttpRaw", [] { return std::make_unique<HttpWorld>(HttpInbox::Takes::raw); }},
      {"HttpEnvelope", [] { return std::make_unique<HttpWorld>(HttpInbox::Takes::envelope); }},
      {"HttpBatch", [] { return std::make_unique<HttpWorld>(HttpInbox::Takes::batch); }},
      {"NatsBucket", [] { return std::make_unique<NatsBucketWorld>(); }},
      {"S3", [] { return std::make_unique<S3StubWorld>(S3Stub::Condition::kept); }},
      {"S3WithoutConditions", [] { return std::make_unique<S3StubWorld>(S3Stub::Condition::ignored); }},
  };
  // Where it is missing, s3_target_test says so.
  if (why_no_swift().empty()) all.push_back({"S3Swift", [] { return std::make_unique<SwiftWorld>(); }});
  for (TargetCase& one : sql_worlds()) all.push_back(std::move(one));
  return all;
}

namespace {

// --- The contract

class TargetContract : public ::testing::TestWithParam<TargetCase> {
 protected:
  void SetUp() override {
    const std::string why = GetParam().why_not ? GetParam().why_not() : "";
    if (!why.empty()) GTEST_SKIP() << why;
    world = GetParam().make();
  }

  static std::vector<DueRecord> records(std::uint64_t count) {
    std::vector<DueRecord> made;
    for (std::uint64_t n = 1; n <= count; ++n) made.push_back(made_record(n, "payload " + std::to_string(n)));
    return made;
  }
  // Everything was reported, as one of the two.
  static void expect_all(const Delivered& delivered, std::size_t count, OutcomeKind kind) {
    ASSERT_TRUE(delivered.result.ok()) << delivered.result.error().text;
    EXPECT_EQ(delivered.count(kind), count);
    EXPECT_EQ(delivered.kinds().size(), count);
  }
  std::set<std::string> keys() {
    std::set<std::string> found;
    for (const auto& [key, payload] : world->upstream()) {
      EXPECT_TRUE(found.insert(key).second) << key << " is there twice";
    }
    return found;
  }

  std::unique_ptr<TargetWorld> world;
};

TEST_P(TargetContract, EveryRecordIsReportedOnce_AndIsUpstream) {
  const auto target = world->target();
  expect_all(deliver(*target, records(300)), 300, OutcomeKind::delivered);
  EXPECT_EQ(keys().size(), 300U);
}

TEST_P(TargetContract, AnEmptyWindowIsWell) {
  const auto target = world->target();
  EXPECT_TRUE(deliver(*target, {}).result.ok());
}

TEST_P(TargetContract, DeliveredAgain_IsADuplicate_AndThereIsOneCopy) {
  const auto target = world->target();
  expect_all(deliver(*target, records(50)), 50, OutcomeKind::delivered);
  expect_all(deliver(*target, records(50)), 50, OutcomeKind::duplicate);
  EXPECT_EQ(keys().size(), 50U);
}

TEST_P(TargetContract, DeliveredAgainByAnotherProcess_IsADuplicate_AndThereIsOneCopy) {
  expect_all(deliver(*world->target(), records(50)), 50, OutcomeKind::delivered);
  const auto target = world->target();
  const Delivered again = deliver(*target, records(80));
  ASSERT_TRUE(again.result.ok()) << again.result.error().text;
  EXPECT_EQ(again.count(OutcomeKind::duplicate), 50U);
  EXPECT_EQ(again.count(OutcomeKind::delivered), 30U);
  EXPECT_EQ(keys().size(), 80U);
}

TEST_P(TargetContract, OtherContentUnderAKeyItHas_IsNeverTakenForTheRecord) {
  const auto target = world->target();
  expect_all(deliver(*target, {made_record(1, "first")}), 1, OutcomeKind::delivered);
  const auto before = world->upstream();
  const Delivered other = deliver(*target, {made_record(1, "second")});
  EXPECT_EQ(world->upstream(), before);
  if (!world->tells_conflicts()) GTEST_SKIP() << "this target knows keys alone";
  EXPECT_EQ(other.kinds(), (Kinds{OutcomeKind::rejected}));
  EXPECT_EQ(other.outcomes[0]->reason, Reason::exists_otherwise);
}

TEST_P(TargetContract, PayloadsOfAllKinds_ArriveAsTheyAre) {
  const auto target = world->target();
  std::vector<DueRecord> made{made_record(1, ""), made_record(2, std::string(1, '\0')),
                              made_record(3, std::string(200'000, 'x')), made_record(4, "\xff\xfe\r\n\r\n")};
  expect_all(deliver(*target, made), made.size(), OutcomeKind::delivered);
  const auto upstream = world->upstream();
  for (const DueRecord& record : made) {
    const auto found = upstream.find(wire_key(record.key));
    ASSERT_NE(found, upstream.end()) << record.key;
    if (found->second.starts_with("base64:")) continue;
    EXPECT_EQ(found->second, as_text(record.envelope.payload));
  }
}

TEST_P(TargetContract, LongKeys_AreKeptApart) {
  const auto target = world->target();
  std::vector<DueRecord> made{made_record(1, "a"), made_record(2, "b"), made_record(3, "c")};
  for (DueRecord& record : made) record.key = "msg:" + std::string(400, 'K') + std::to_string(record.sequence);
  expect_all(deliver(*target, made), 3, OutcomeKind::delivered);
  expect_all(deliver(*target, made), 3, OutcomeKind::duplicate);
}

TEST_P(TargetContract, ABrokenUpstream_RejectsNothing_AndTakesEverythingWhenItIsBack) {
  const auto target = world->target();
  expect_all(deliver(*target, records(5)), 5, OutcomeKind::delivered);
  world->break_upstream();
  const Delivered broken = deliver(*target, records(20));
  for (const auto& outcome : broken.outcomes) {
    EXPECT_TRUE(outcome || !broken.result.ok()) << "not reported, and all is said to be well";
    if (!outcome) continue;
    EXPECT_FALSE(is_accepted(outcome));
    EXPECT_NE(outcome->kind, OutcomeKind::rejected);
    EXPECT_STRNE(outcome->state, "");
  }
  if (!broken.result.ok()) {
    EXPECT_EQ(broken.result.error().kind, ErrorKind::unavailable);
  }
  world->repair_upstream();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  std::set<std::size_t> accepted;
  while (accepted.size() < 20 && std::chrono::steady_clock::now() < deadline) {
    const Delivered again = deliver(*target, records(20));
    for (std::size_t place = 0; place < again.outcomes.size(); ++place) {
      if (is_accepted(again.outcomes[place])) accepted.insert(place);
    }
    if (accepted.size() < 20) (void)target->probe();
  }
  EXPECT_EQ(accepted.size(), 20U);
  EXPECT_EQ(keys().size(), 20U);
}

TEST_P(TargetContract, Interrupted_ReturnsSoon) {
  const auto target = world->target();
  if (!world->hang(*target)) GTEST_SKIP() << "this upstream cannot be made to hang";
  std::atomic<bool> returned = false;
  Delivered delivered;
  std::thread delivering([&] {
    delivered = deliver(*target, records(10));
    returned = true;
  });
  const auto began = std::chrono::steady_clock::now();
  while (!returned && std::chrono::steady_clock::now() - began < std::chrono::seconds(20)) {
    target->interrupt();
    std::this_thread::yield();
  }
  delivering.join();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(20));
  ASSERT_FALSE(delivered.result.ok());
  EXPECT_EQ(delivered.result.error().kind, ErrorKind::unavailable);
}

TEST_P(TargetContract, InterruptedWhileIdle_ItWorksSoonAfter) {
  const auto target = world->target();
  target->interrupt();
  std::size_t accepted = 0;
  for (int tries = 0; tries < 10 && accepted < 5; ++tries) {
    const Delivered delivered = deliver(*target, records(5));
    accepted = delivered.count(OutcomeKind::delivered) + delivered.count(OutcomeKind::duplicate);
  }
  EXPECT_EQ(accepted, 5U);
}

INSTANTIATE_TEST_SUITE_P(Targets, TargetContract, ::testing::ValuesIn(all_targets()),
                         [](const auto& chosen) { return chosen.param.name; });

}  // namespace
}  // namespace holdfast
