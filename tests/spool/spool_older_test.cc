// A manifest that is older than what lies beside it: a copy that was put back, or one of the two that rotted.
#include <gtest/gtest.h>

#include "tests/support/spool_world.h"

namespace holdfast {
namespace {

// All that is left of the later lives is the base up to which segments were given back: new ones must lie above it.
TEST(SpoolOlder, OlderManifest_AndNothingLeft_NewCommitsAreFoundAgain) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  const Bytes copies[2] = {world.fs.bytes("manifest.0"), world.fs.bytes("manifest.1")};
  ASSERT_TRUE(world.close());
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 5));
  ASSERT_EQ(world.deliver(world.hub), 5);
  ASSERT_TRUE(world.close());
  world.fs.plant("manifest.0", copies[0]);
  world.fs.plant("manifest.1", copies[1]);
  ASSERT_TRUE(world.open()) << world.last_error;
  ASSERT_TRUE(world.put(6, 3));
  world.forget();
  world.fs.lose_power(Loss::drop_all);
  ASSERT_TRUE(world.open()) << world.last_error;
  EXPECT_EQ(world.due_count(world.hub), 3u);
  world.expect_promises("an older manifest, nothing left");
}

TEST(SpoolOlder, OlderManifest_AndRecordsInTheJournal_DoesNotRepeatSequences) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  const Bytes copies[2] = {world.fs.bytes("manifest.0"), world.fs.bytes("manifest.1")};
  ASSERT_TRUE(world.close());
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 5));
  const Sequence given = world.spool->status().next_sequence;
  world.forget();
  world.fs.lose_power(Loss::keep_all);
  world.fs.plant("manifest.0", copies[0]);
  world.fs.plant("manifest.1", copies[1]);
  ASSERT_TRUE(world.open()) << world.last_error;
  auto verdicts = world.spool->put_batch(std::vector<Arrival>{world.message(6)});
  ASSERT_TRUE(verdicts.ok());
  EXPECT_GE(verdicts->front().sequence, given);
  world.acknowledged.insert(6);
  world.expect_promises("an older manifest and a journal");
}

// Nothing but the files knew how far sequences had come, and they are looked at while new ones are given.
TEST(SpoolOlder, OlderManifestAndNoIndex_FilesOfTheSameSequencesAreDeliveredLater) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  const Bytes copies[2] = {world.fs.bytes("manifest.0"), world.fs.bytes("manifest.1")};
  ASSERT_TRUE(world.close());
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.put(1, 5));
  ASSERT_TRUE(world.close());
  world.fs.plant("manifest.0", copies[0]);
  world.fs.plant("manifest.1", copies[1]);
  world.fs.erase("index.sqlite3");
  world.fs.erase("journal");
  ASSERT_TRUE(world.open()) << world.last_error;
  ASSERT_TRUE(world.put(6, 5)) << world.last_error;
  ASSERT_TRUE(world.settle_down());
  EXPECT_EQ(world.fs.files("records/").size(), 5u) << "another record of the same sequence is no reason to remove one";
  EXPECT_FALSE(world.spool->status().notices.empty());
  while (world.deliver(world.hub) > 0) {
  }
  ASSERT_TRUE(world.close()) << world.last_error;
  ASSERT_TRUE(world.open()) << world.last_error;
  world.expect_promises("an older manifest and no index");
}

TEST(SpoolOlder, OlderManifestAndNoIndex_SequencesGoOnAboveTheFilesThatWereFound) {
  SpoolWorld world;
  ASSERT_TRUE(world.open());
  const Bytes copies[2] = {world.fs.bytes("manifest.0"), world.fs.bytes("manifest.1")};
  ASSERT_TRUE(world.close());
  ASSERT_TRUE(world.open());
  auto first = world.spool->put_batch(std::vector<Arrival>{world.message(1), world.message(2), world.message(3)});
  ASSERT_TRUE(first.ok());
  world.acknowledged = {1, 2, 3};
  ASSERT_TRUE(world.close());
  world.fs.plant("manifest.0", copies[0]);
  world.fs.plant("manifest.1", copies[1]);
  world.fs.erase("index.sqlite3");
  world.fs.erase("journal");
  ASSERT_TRUE(world.open()) << world.last_error;
  ASSERT_TRUE(world.settle_down());  // the files are found
  auto later = world.spool->put_batch(std::vector<Arrival>{world.message(6)});
  ASSERT_TRUE(later.ok());
  EXPECT_GT(later->front().sequence, first->back().sequence);
  world.acknowledged.insert(6);
  world.expect_promises("sequences after files were found");
}

}  // namespace
}  // namespace holdfast
