// The same message again is recognised; another message under the same number is not taken for it.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/integration/scene.h"

namespace holdfast {
namespace {

std::uint64_t duplicates(const Json& status) {
  const Json& verdicts = status["verdicts"];
  return verdicts["duplicates_in_batch"].count() + verdicts["duplicates_in_custody"].count() +
         verdicts["duplicates_in_ledger"].count();
}

// As after acknowledgements that were lost: the consumer hands out everything again.
void expect_all_recognised(Scene& scene, std::uint64_t count) {
  JetStreamClient(scene.edge.url()).delete_consumer(kEdgeStream, "holdfast");
  scene.box.start();
  ASSERT_TRUE(eventually([&] { return duplicates(scene.box.status()) == count; }, kPatience))
      << pretty_json_text(scene.box.status());
  const Json status = scene.box.status();
  EXPECT_EQ(status["accounting"]["taken"].count(), count);
  EXPECT_EQ(status["verdicts"]["conflicts"].count(), 0u);
  EXPECT_EQ(status["sources"].list()[0]["pending"].count(), 0u);
}

TEST(Redelivery, OfWhatHasLeft_IsRecognised) {
  Scene scene;
  scene.publish(1, 1200);
  scene.box.start();
  ASSERT_TRUE(delivered(scene.box, 1200));
  ASSERT_EQ(scene.box.terminate(), 0);
  expect_all_recognised(scene, 1200);
  EXPECT_EQ(JetStreamClient(scene.hub.url()).stream(kHubStream).messages, 1200u);
}

TEST(Redelivery, OfWhatWaitsInFiles_IsRecognised) {
  Scene scene;
  scene.hub.kill();
  scene.publish(1, 1200);
  scene.box.start();
  ASSERT_TRUE(in_files(scene.box, 1200));
  scene.box.kill9();
  expect_all_recognised(scene, 1200);
  EXPECT_EQ(scene.box.record_files().size(), 1200u);
  scene.hub.start();
  ASSERT_TRUE(delivered(scene.box, 1200));
  EXPECT_EQ(arrivals(scene.hub, kHubStream, 1200), kEachOnce);
}

// Killed with everything still in the journal, and nothing of it in the index.
TEST(Redelivery, OfWhatWaitsInTheJournal_IsRecognised) {
  Scene scene("linger = \"1h\"");
  scene.hub.kill();
  scene.publish(1, 1200);
  scene.box.start();
  ASSERT_TRUE(taken(scene.box, 1200));
  EXPECT_EQ(scene.box.status()["backlog"]["in_journal"].count(), 1200u);
  scene.box.kill9();
  expect_all_recognised(scene, 1200);
  scene.hub.start();
  ASSERT_TRUE(delivered(scene.box, 1200));
  EXPECT_EQ(arrivals(scene.hub, kHubStream, 1200), kEachOnce);
}

void make_the_edge_stream_again(Scene& scene) {
  JetStreamClient edge(scene.edge.url());
  edge.delete_stream(kEdgeStream);
  edge.make_stream(kEdgeStream, {"telemetry.>"});
}

TEST(StreamMadeAgain, WhileTheApplianceRuns_NothingNewIsTakenForADuplicate) {
  Scene scene;
  scene.box.start();
  scene.publish(1, 500);
  ASSERT_TRUE(delivered(scene.box, 500));
  make_the_edge_stream_again(scene);
  scene.publish(501, 800);
  ASSERT_TRUE(delivered(scene.box, 1300)) << pretty_json_text(scene.box.status());
  EXPECT_EQ(arrivals(scene.hub, kHubStream, 1300), kEachOnce);
}

TEST(StreamMadeAgain, WhileTheApplianceIsAway_NothingNewIsTakenForADuplicate) {
  Scene scene;
  scene.box.start();
  scene.publish(1, 500);
  ASSERT_TRUE(delivered(scene.box, 500));
  ASSERT_EQ(scene.box.terminate(), 0);
  make_the_edge_stream_again(scene);
  scene.publish(501, 500);
  scene.box.start();
  ASSERT_TRUE(delivered(scene.box, 1000)) << pretty_json_text(scene.box.status());
  EXPECT_EQ(arrivals(scene.hub, kHubStream, 1000), kEachOnce);
}

// The edge server comes back with an older copy of its store, and its consumer, and gives numbers again.
TEST(StreamRolledBack, NothingNewIsTakenForADuplicateOrSkipped) {
  namespace fs = std::filesystem;
  Scene scene;
  scene.box.start();
  scene.publish(1, 400);
  ASSERT_TRUE(delivered(scene.box, 400));
  scene.edge.stop();
  const std::string copy = scene.box.directory() + "/copy";
  fs::copy(scene.edge.store(), copy, fs::copy_options::recursive);
  scene.edge.start();
  scene.publish(401, 300);
  ASSERT_TRUE(delivered(scene.box, 700));

  scene.edge.stop();
  fs::remove_all(scene.edge.store());
  fs::copy(copy, scene.edge.store(), fs::copy_options::recursive);
  scene.edge.start();
  scene.publish(701, 500);
  ASSERT_TRUE(delivered(scene.box, 1200)) << pretty_json_text(scene.box.status());
  EXPECT_EQ(arrivals(scene.hub, kHubStream, 1200), kEachOnce);
}

}  // namespace
}  // namespace holdfast
