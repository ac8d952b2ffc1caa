// What lies in the spool's directory is not always what was put there: strangers, torn and rotten files, an index or a
// manifest that is gone. It costs what was damaged, it is said, and the rest flows.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "tests/integration/scene.h"

namespace holdfast {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kBacklog = 400;

void flip_a_bit(const std::string& path, std::size_t at) {
  std::string bytes = file_text(path);
  ASSERT_LT(at, bytes.size());
  bytes[at] = static_cast<char>(bytes[at] ^ 4);
  std::ofstream(path, std::ios::binary) << bytes;
}

// A backlog in files, and nobody at work.
class Damage : public testing::Test {
 protected:
  Damage() {
    scene.hub.kill();
    scene.publish(1, kBacklog, 600);
    scene.box.start();
    EXPECT_TRUE(in_files(scene.box, kBacklog));
    EXPECT_EQ(scene.box.terminate(), 0) << scene.box.log();
    files = scene.box.record_files();
    EXPECT_EQ(files.size(), kBacklog);
  }

  std::string records() const { return scene.box.spool() + "/records"; }

  Scene scene;
  std::vector<std::string> files;
};

TEST_F(Damage, StrangersAmongTheRecords_AreLeftAlone) {
  std::ofstream(records() + "/notes.txt") << "an operator was here";
  fs::create_directories(records() + "/zz/deeper");
  fs::create_symlink("/etc", records() + "/link");
  const std::string copy = files[0] + ".old";
  fs::copy(files[0], copy);
  fs::create_symlink(files[1], fs::path(files[1]).parent_path().string() + "/" + std::string(64, 'a') + ".rec");

  scene.hub.start();
  scene.box.start();
  ASSERT_TRUE(delivered(scene.box, kBacklog)) << pretty_json_text(scene.box.status());
  EXPECT_EQ(arrivals(scene.hub, kHubStream, kBacklog), kEachOnce);
  EXPECT_EQ(file_text(records() + "/notes.txt"), "an operator was here");
  EXPECT_TRUE(fs::exists(records() + "/zz/deeper"));
  EXPECT_TRUE(fs::is_symlink(records() + "/link"));
  EXPECT_TRUE(fs::exists(copy));
  EXPECT_TRUE(eventually([&] { return scene.box.status()["disk"]["ignored_names"].count() >= 5; }));
  EXPECT_EQ(scene.box.status()["accounting"]["lost"].count(), 0u);
}

// Each in its own way unreadable. What the spool cannot deliver it accounts for, as quarantined or lost; never
// silently.
TEST_F(Damage, ZeroLengthTruncatedAndBitFlippedFiles_CostThemselvesOnly) {
  fs::resize_file(files[0], 0);
  fs::resize_file(files[1], fs::file_size(files[1]) / 2);
  fs::resize_file(files[2], 20);
  flip_a_bit(files[3], 9);                             // in the header
  flip_a_bit(files[4], fs::file_size(files[4]) - 40);  // in the sealed body
  std::ofstream(files[5], std::ios::binary) << std::string(fs::file_size(files[5]), '\0');
  fs::remove(files[6]);
  constexpr std::uint64_t kDamaged = 7;

  scene.hub.start();
  scene.box.start();
  const auto settled = [&] {
    const Json status = scene.box.status();
    return status["accounting"]["in_custody"].count() == 0 && !status["reconciling"].flag() &&
           status["accounting"]["delivered"].count() >= kBacklog - kDamaged;
  };
  ASSERT_TRUE(eventually(settled, kPatience)) << pretty_json_text(scene.box.status());
  EXPECT_EQ(arrivals(scene.hub, kHubStream, kBacklog), (Arrivals{kDamaged, 0, 0}));
  const Json audit = scene.box.audit();
  EXPECT_TRUE(audit["balanced"].flag()) << pretty_json_text(audit);
  EXPECT_EQ(audit["delivered"].count(), kBacklog - kDamaged);
  EXPECT_EQ(audit["quarantined"].count() + audit["lost"].count(), kDamaged) << pretty_json_text(audit);
  EXPECT_GE(audit["lost"].count(), 1u) << "a file that is gone is a loss alarm";
  EXPECT_TRUE(needs_attention(scene.box, "lost"));
  EXPECT_TRUE(eventually([&] { return scene.box.log_has("needs attention"); })) << scene.box.log_of_this_start();
}

// Found while it runs, in the middle of delivering.
TEST_F(Damage, WhileItRuns_CostsTheFileOnly) {
  scene.box.start();
  ASSERT_TRUE(in_files(scene.box, kBacklog));
  flip_a_bit(files[10], fs::file_size(files[10]) - 30);
  fs::resize_file(files[11], 100);
  scene.hub.start();
  ASSERT_TRUE(eventually([&] { return scene.box.status()["accounting"]["in_custody"].count() == 0; }, kPatience))
      << pretty_json_text(scene.box.status());
  const Json audit = scene.box.audit();
  EXPECT_TRUE(audit["balanced"].flag()) << pretty_json_text(audit);
  // What the forwarder had read into its window before the damage arrives all the same.
  const std::uint64_t cost = audit["quarantined"].count() + audit["lost"].count();
  EXPECT_LE(cost, 2u);
  EXPECT_EQ(arrivals(scene.hub, kHubStream, kBacklog), (Arrivals{cost, 0, 0}));
}

TEST_F(Damage, VerifyNamesWhatCannotBeOpened) {
  flip_a_bit(files[20], fs::file_size(files[20]) - 30);
  const ProgramAnswer verify = scene.box.command({"spool", "verify", "--json"});
  EXPECT_EQ(verify.code, 1) << verify.err;
  const auto answer = parse_json(verify.out);
  ASSERT_TRUE(answer.has_value()) << verify.out;
  EXPECT_EQ((*answer)["bad_records"].count(), 1u);
  const std::string id = fs::path(files[20]).stem().string();
  EXPECT_EQ((*answer)["bad"].list().at(0)["id"].text(), id.substr(0, 16));
}

TEST_F(Damage, OneCopyOfTheManifestDestroyed_IsRepairedAndSaid) {
  for (const std::string copy : {"/manifest.0", "/manifest.1"}) {
    SCOPED_TRACE(copy);
    const std::string path = scene.box.spool() + copy;
    const auto size = fs::file_size(path);
    std::ofstream(path, std::ios::binary) << std::string(size, 'x');
    scene.box.start();
    EXPECT_TRUE(eventually([&] { return scene.box.log_has("one copy of the manifest"); })) << scene.box.log();
    EXPECT_EQ(scene.box.status()["backlog"]["records"].count(), kBacklog);
    EXPECT_EQ(file_text(path).substr(0, 4), "HFM1");
    ASSERT_EQ(scene.box.terminate(), 0);
  }
  scene.hub.start();
  scene.box.start();
  ASSERT_TRUE(delivered(scene.box, kBacklog));
  EXPECT_EQ(arrivals(scene.hub, kHubStream, kBacklog), kEachOnce);
}

TEST_F(Damage, BothCopiesOfTheManifestGone_IsARefusalThatTouchesNothing) {
  fs::remove(scene.box.spool() + "/manifest.0");
  fs::remove(scene.box.spool() + "/manifest.1");
  const int code = scene.box.run_to_the_end();
  EXPECT_NE(code, 0);
  EXPECT_NE(code, -1);
  EXPECT_TRUE(scene.box.log_has("manifest")) << scene.box.log_of_this_start();
  EXPECT_FALSE(fs::exists(scene.box.spool() + "/manifest.0"));
  EXPECT_EQ(scene.box.record_files().size(), kBacklog);
}

TEST_F(Damage, GarbageForAnIndex_IsRebuiltFromTheFiles) {
  std::ofstream(scene.box.spool() + "/index.sqlite3", std::ios::binary) << std::string(100'000, '#');
  scene.hub.start();
  scene.box.start();
  ASSERT_TRUE(eventually([&] { return scene.box.status()["accounting"]["in_custody"].count() == 0; }, kPatience));
  EXPECT_EQ(arrivals(scene.hub, kHubStream, kBacklog), kEachOnce);
  EXPECT_TRUE(scene.box.log_has("the index was missing or damaged")) << scene.box.log_of_this_start();
  EXPECT_TRUE(fs::exists(scene.box.spool() + "/index.bad"));
  EXPECT_TRUE(scene.box.audit()["balanced"].flag());
}

std::set<std::string> subjects_on(const NatsServer& server) {
  std::set<std::string> subjects;
  for (const SeenMessage& message : JetStreamClient(server.url()).read_all(kHubStream))
    subjects.insert(message.subject);
  return subjects;
}

// Which record waits for whom is known without the index: none goes to a target that is not its own.
TEST(LostIndex, WithRecordsForDifferentTargets_DeliversEachToItsOwn) {
  NatsServer edge, one, two;
  JetStreamClient(edge.url()).make_stream(kEdgeStream, {"telemetry.>"});
  for (NatsServer* hub : {&one, &two}) {
    JetStreamClient(hub->url()).make_stream(kHubStream, {"telemetry.>"});
    hub->kill();
  }
  Appliance box(HOLDFAST_BINARY, {nats_source(edge.url(), kEdgeStream) + nats_target("one", one.url()) +
                                  nats_target("two", two.url()) + route({"telemetry.one"}, {"one"}) +
                                  route({"telemetry.two"}, {"two"}) + route({"telemetry.both"}, {"one", "two"})});
  JetStreamClient publisher(edge.url());
  for (const std::string which : {"one", "two", "both"}) publisher.publish_many("telemetry." + which, 1, 150, 300);
  box.start();
  ASSERT_TRUE(in_files(box, 450));
  box.kill9();
  for (const char* part : {"", "-wal", "-shm", "-journal"}) fs::remove(box.spool() + "/index.sqlite3" + part);

  one.start();
  two.start();
  box.start();
  ASSERT_TRUE(eventually([&] { return box.status()["accounting"]["in_custody"].count() == 0; }, kPatience))
      << pretty_json_text(box.status());
  EXPECT_EQ(subjects_on(one), (std::set<std::string>{"telemetry.one", "telemetry.both"}));
  EXPECT_EQ(subjects_on(two), (std::set<std::string>{"telemetry.two", "telemetry.both"}));
  EXPECT_EQ(JetStreamClient(one.url()).stream(kHubStream).messages, 300u);
  EXPECT_EQ(JetStreamClient(two.url()).stream(kHubStream).messages, 300u);
  EXPECT_TRUE(eventually([&] { return box.record_files().empty(); }));
  EXPECT_TRUE(box.audit()["balanced"].flag()) << pretty_json_text(box.audit());
}

}  // namespace
}  // namespace holdfast
